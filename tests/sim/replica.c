#include "replica.h"

#include "base/bug.h"
#include "base/clock.h"
#include "faults.h"
#include "messages.h"

/* No failover is faster, and a block of tokens may be a millisecond ahead of the clock. */
#define TAKE_OVER_NS_MIN (4 * SNK_NS_PER_MS)
#define BLOCK_AHEAD_NS (2 * SNK_NS_PER_MS)
#define RATE_PPM_MAX 50000

void replica_draw_plan(sim_random *random, sim_plan *plan)
{
    plan->follows = sim_random_chance(random, 300) ? 1000 : 200 + sim_random_below(random, 800);
    plan->clocks_skew = sim_random_chance(random, 500) ? 700 : 0;
    plan->every_ns[SIM_FAULT_TAKE_OVER] = sim_random_octaves(random, plan->lease_ns / 2, plan->lease_ns * 8);
    if (sim_random_chance(random, 500))
        plan->every_ns[SIM_FAULT_CUT] = sim_random_octaves(random, plan->lease_ns / 4, plan->lease_ns * 4);
}

void replica_follow(sim_world *world)
{
    if (world->has_replica && world->now_ns >= world->cut_until_ns &&
        sim_random_chance(&world->faults, world->plan.follows))
        model_store_save(&world->store);
}

void replica_cut(sim_world *world)
{
    world->cut_until_ns = world->now_ns + sim_random_octaves(&world->faults, SNK_NS_PER_MS, world->plan.lease_ns * 2);
    sim_record(world, "cut", 0, 0, (uint64_t)world->cut_until_ns, 0);
}

/*
 * The limit of tokens that are floored by a clock: the new master's may be behind the old one's by less than it took until
 * the new one began.
 */
static int64_t draw_skew_ns(sim_world *world, int64_t took_ns)
{
    sim_random *random = &world->faults;
    if (SNK_BUGGY(64))
        return -took_ns - sim_random_range(random, 1, world->plan.lease_ns);
    if (!sim_random_chance(random, world->plan.clocks_skew))
        return 0;
    int64_t behind_ns = took_ns - took_ns * RATE_PPM_MAX / SIM_PPM - BLOCK_AHEAD_NS;
    return sim_random_range(random, behind_ns > 0 ? -behind_ns : 0, world->plan.lease_ns);
}

/* From now on the store's clock is another one, which shows so much more now. */
static void change_clock(sim_world *world, int64_t skew_ns)
{
    sim_clock *clock = &world->store_clock;
    int64_t shows_ns = sim_clock_local(clock, world->now_ns) + skew_ns;
    if (clock->rate_ppm != 0)
        clock->rate_ppm = sim_random_range(&world->faults, -RATE_PPM_MAX, RATE_PPM_MAX);
    clock->offset_ns = 0;
    clock->offset_ns = shows_ns - sim_clock_local(clock, world->now_ns);
}

static bool is_held_in_both(const model_lock *one, const model_lock *other)
{
    return one->held && other->held && snk_id_equal(&one->holder.claim, &other->holder.claim) &&
           one->holder.expires_at_ns == other->holder.expires_at_ns && one->token_last == other->token_last;
}

void replica_take_over(sim_world *world)
{
    int64_t took_ns = sim_random_octaves(&world->faults, TAKE_OVER_NS_MIN, world->plan.lease_ns * 2);
    if (!world->store.is_saved || world->now_ns < world->outage_until_ns || sim_is_time_to_heal(world))
        return;
    int64_t skew_ns = draw_skew_ns(world, took_ns);
    snk_id kept[SIM_LOCKS_MAX];
    uint32_t kept_count = 0;
    uint32_t held_count = 0;
    for (uint32_t i = 0; i < world->plan.lock_count; i++) {
        const model_lock *lock = &world->store.data.locks[i];
        held_count += lock->held;
        /* A clock that is ahead ends leases early. */
        if (is_held_in_both(lock, &world->store.saved.locks[i]) && skew_ns <= 0)
            kept[kept_count++] = lock->holder.claim;
    }
    sim_saw(world, kept_count == held_count ? SIM_PROBE_TAKEN_OVER : SIM_PROBE_TAKEN_OVER_BEHIND);
    if (kept_count > 0)
        sim_saw(world, SIM_PROBE_HELD_ACROSS);
    if (skew_ns < 0)
        sim_saw(world, SIM_PROBE_CLOCK_WENT_BACK);
    sim_record(world, "take over", 0, 0, kept_count, (uint64_t)skew_ns);
    world->taking_over_until_ns = world->now_ns + took_ns;
    world->outage_until_ns = world->taking_over_until_ns;
    model_store_restart(&world->store, true);
    change_clock(world, skew_ns);
    faults_distrust(world, kept, kept_count);
    messages_haunt(world);
}
