#include "faults.h"

#include "agents.h"
#include "base/clock.h"
#include "messages.h"
#include "model_client.h"
#include "oracle.h"
#include "replica.h"
#include "watchdog.h"

#define RATE_PPM_MAX 50000
#define OFFSET_NS_MAX (100 * SNK_NS_PER_S)

/* ---- The plan ---- */

/* Armed in half of the seeds, and then with a chance of its own. */
static uint32_t draw_chance(sim_random *random, uint32_t most)
{
    return sim_random_chance(random, 500) ? 1 + sim_random_below(random, most) : 0;
}

static int64_t draw_every(sim_random *random, uint32_t armed, int64_t low_ns, int64_t high_ns)
{
    int64_t every_ns = sim_random_octaves(random, low_ns, high_ns);
    return sim_random_chance(random, armed) ? every_ns : 0;
}

static void draw_clock(sim_random *random, sim_clock *clock, uint32_t armed)
{
    clock->offset_ns = sim_random_range(random, SNK_NS_PER_S, OFFSET_NS_MAX);
    clock->rate_ppm = 0;
    if (sim_random_chance(random, armed))
        clock->rate_ppm = sim_random_range(random, -RATE_PPM_MAX, RATE_PPM_MAX);
    if (sim_random_chance(random, armed / 3))
        clock->rate_ppm = sim_random_chance(random, 500) ? RATE_PPM_MAX : -RATE_PPM_MAX;
}

static void draw_faults(sim_random *random, sim_plan *plan)
{
    int64_t lease_ns = plan->lease_ns;
    plan->late_ns = lease_ns * 2;
    plan->late = draw_chance(random, 300);
    plan->request_lost = draw_chance(random, 200);
    plan->reply_lost = draw_chance(random, 200);
    plan->news_lost = draw_chance(random, 1000);
    plan->news_repeated = draw_chance(random, 500);
    plan->id_fails = sim_random_chance(random, 200) ? 1 + sim_random_below(random, 400) : 0;
    plan->denied = sim_random_chance(random, 250) ? 1 + sim_random_below(random, 200) : 0;
    plan->slow_wake = draw_chance(random, 700);
    plan->every_ns[SIM_FAULT_PAUSE] = draw_every(random, 500, lease_ns / 2, lease_ns * 8);
    plan->every_ns[SIM_FAULT_CRASH] = draw_every(random, 250, lease_ns * 2, lease_ns * 16);
    plan->every_ns[SIM_FAULT_CLOSE] = draw_every(random, 250, lease_ns, lease_ns * 16);
    plan->every_ns[SIM_FAULT_RESET] = draw_every(random, 450, lease_ns / 8, lease_ns * 8);
    plan->every_ns[SIM_FAULT_OUTAGE] = draw_every(random, 250, lease_ns * 2, lease_ns * 16);
    plan->every_ns[SIM_FAULT_WIPE] = draw_every(random, 50, lease_ns * 4, lease_ns * 16);
    plan->every_ns[SIM_FAULT_RELOAD] = draw_every(random, 250, lease_ns / 4, lease_ns * 8);
    plan->every_ns[SIM_FAULT_SAVE] =
        plan->every_ns[SIM_FAULT_RELOAD] == 0 ? 0 : draw_every(random, 700, lease_ns / 32, lease_ns);
    plan->every_ns[SIM_FAULT_BREAK] = draw_every(random, 250, lease_ns / 8, lease_ns * 4);
    plan->every_ns[SIM_FAULT_FORGE] = draw_every(random, 350, lease_ns / 16, lease_ns * 4);
    plan->every_ns[SIM_FAULT_INTERRUPT] = draw_every(random, 350, lease_ns / 8, lease_ns * 8);
    plan->every_ns[SIM_FAULT_SETTLE] = draw_every(random, 300, lease_ns / 8, lease_ns);
    plan->every_ns[SIM_FAULT_WATCH] = draw_every(random, 400, lease_ns / 16, lease_ns);
}

void faults_draw_plan(sim_world *world)
{
    sim_random *random = &world->faults;
    sim_plan *plan = &world->plan;
    *plan = (sim_plan){ 0 };
    plan->lease_ns = sim_random_octaves(random, SNK_LEASE_MS_MIN * SNK_NS_PER_MS, 5 * SNK_NS_PER_S);
    plan->latency_ns = sim_random_octaves(random, 20 * SNK_NS_PER_US, 4 * SNK_NS_PER_MS);
    plan->timeout_ns = sim_random_octaves(random, 50 * SNK_NS_PER_MS, 2 * SNK_NS_PER_S);
    plan->process_count = 1 + sim_random_below(random, SIM_PROCESSES_MAX);
    plan->thread_count = 1 + sim_random_below(random, SIM_THREADS_MAX);
    if (sim_random_chance(random, 200))
        plan->thread_count = SIM_THREADS_MAX;
    plan->lock_count = sim_random_chance(random, 700) ? 1 : 1 + sim_random_below(random, SIM_LOCKS_MAX);
    plan->event_budget = 150 + sim_random_below(random, 250);
    plan->fair = sim_random_chance(random, 400) ? 0 : sim_random_chance(random, 300) ? 1000 : 300;
    plan->once = draw_chance(random, 500);
    plan->unrenewed = draw_chance(random, 600);
    plan->nested = draw_chance(random, 1000);
    plan->mixed_terms = draw_chance(random, 400);
    plan->reacquires = draw_chance(random, 1000);
    plan->deep = sim_random_chance(random, 10);
    plan->shared_owner = sim_random_chance(random, 250);
    plan->news_by_agent = sim_random_chance(random, 500);
    draw_faults(random, plan);
    if (plan->shared_owner && sim_random_chance(random, 300)) {
        /* Two calls of one owner with a claim each meet only in fair mode, and when somebody is slow. */
        plan->fair = 1000;
        plan->lock_count = 1;
        plan->slow_wake = 1000;
    }
    uint32_t drift = sim_random_chance(random, 500) ? 800 : 0;
    if (world->has_replica)
        replica_draw_plan(random, plan);
    draw_clock(random, &world->store_clock, drift);
    world->store.token_blocks = sim_random_chance(random, 800);
    world->store.wall_offset_us = sim_random_range(random, 0, INT64_C(1) << 50);
    bool pushes = sim_random_chance(random, 800);
    world->store.announces_grants = sim_random_chance(random, 800);
    int64_t retry_ns = sim_random_octaves(random, plan->lease_ns / 16, plan->lease_ns / 2);
    for (uint32_t i = 0; i < SIM_PROCESSES_MAX; i++) {
        sim_process *process = &world->processes[i];
        draw_clock(random, &process->clock, drift);
        process->engine.token_blocks = world->store.token_blocks;
        process->engine.pushes_wakeups = pushes;
        process->engine.retry_ns = retry_ns;
    }
}

/* ---- Faults ---- */

static void push_fault(sim_world *world, sim_fault fault)
{
    int64_t every_ns = world->plan.every_ns[fault];
    if (every_ns == 0 || world->phase != SIM_PHASE_FAULTS)
        return;
    sim_push(world, world->now_ns + sim_random_range(&world->faults, 1, every_ns * 2),
             &(sim_event){ .kind = SIM_EVENT_FAULT, .process = SIM_PROCESSES_MAX, .index = (uint32_t)fault });
}

void faults_begin(sim_world *world)
{
    for (uint32_t i = 0; i < SIM_FAULT_COUNT; i++)
        push_fault(world, (sim_fault)i);
}

static sim_process *draw_process(sim_world *world)
{
    return &world->processes[sim_random_below(&world->faults, world->plan.process_count)];
}

static bool has_hold(const sim_world *world, const sim_process *process)
{
    for (uint32_t lock = 0; lock < world->plan.lock_count; lock++)
        if (process->machines[lock].hold != NULL)
            return true;
    return false;
}

static void note_injected(sim_world *world, const sim_process *process)
{
    if (has_hold(world, process))
        sim_saw(world, SIM_PROBE_INJECTED);
}

static void push_restart(sim_world *world, const sim_process *process, int64_t pause_ns)
{
    sim_push(world, world->now_ns + pause_ns,
             &(sim_event){ .kind = SIM_EVENT_RESTART,
                           .process = (uint8_t)sim_process_number(world, process),
                           .epoch = process->epoch });
}

static void pause_process(sim_world *world, sim_process *process)
{
    int64_t pause_ns = sim_random_octaves(&world->faults, SNK_NS_PER_MS, world->plan.lease_ns * 3);
    if (process->paused_until_ns > world->now_ns)
        return;
    process->paused_until_ns = world->now_ns + pause_ns;
    note_injected(world, process);
    if (pause_ns > world->plan.lease_ns && has_hold(world, process))
        sim_saw(world, SIM_PROBE_PAUSED_PAST_LEASE);
    sim_record(world, "pause", sim_process_number(world, process), 0, (uint64_t)pause_ns, 0);
}

static void crash_process(sim_world *world, sim_process *process)
{
    if (!process->up)
        return;
    if (has_hold(world, process))
        sim_saw(world, SIM_PROBE_CRASHED_HOLDING);
    sim_record(world, "crash", sim_process_number(world, process), 0, 0, 0);
    client_drop_all(world, process);
    process->up = false;
    process->epoch++;
    process->paused_until_ns = 0;
    push_restart(world, process, sim_random_octaves(&world->faults, SNK_NS_PER_MS, world->plan.lease_ns * 2));
}

static void close_process(sim_world *world, sim_process *process)
{
    if (!process->up || process->closing || process->paused_until_ns > world->now_ns)
        return;
    sim_record(world, "close", sim_process_number(world, process), 0, 0, 0);
    agent_close_client(world, process);
    push_restart(world, process, world->plan.latency_ns * 4);
}

static void set_outage(sim_world *world, int64_t until_ns)
{
    world->outage_until_ns = until_ns > world->taking_over_until_ns ? until_ns : world->taking_over_until_ns;
}

/* A token block reaches a millisecond ahead of the clock, and no server restarts faster than that. */
static void restart_store(sim_world *world, bool saved)
{
    set_outage(world, world->now_ns + sim_random_octaves(&world->faults, 2 * SNK_NS_PER_MS, world->plan.lease_ns));
    model_store_restart(&world->store, saved);
}

static void break_claim(const sim_world *world, sim_claim *claim)
{
    claim->broken = true;
    claim->broken_at_ns = world->now_ns;
}

void faults_distrust(sim_world *world, const snk_id kept[], uint32_t kept_count)
{
    for (uint32_t i = 0; i < world->claim_count; i++) {
        sim_claim *claim = &world->claims[i];
        bool is_kept = false;
        for (uint32_t j = 0; j < kept_count; j++)
            is_kept = is_kept || snk_id_equal(&claim->id, &kept[j]);
        if (claim->granted && !is_kept)
            break_claim(world, claim);
        claim->forgotten = true; /* its tombstone is lost too */
        claim->buried = false;
    }
}

static void wipe_store(sim_world *world)
{
    sim_saw(world, SIM_PROBE_WIPED);
    sim_record(world, "wipe", 0, 0, 0, 0);
    uint64_t run = world->store.run;
    restart_store(world, false);
    model_store_wipe(&world->store);
    if (sim_random_chance(&world->faults, 500))
        world->store.run = run; /* as FLUSHALL does */
    faults_distrust(world, NULL, 0);
}

static void reload_store(sim_world *world)
{
    bool saved = world->store.is_saved && sim_random_chance(&world->faults, 700);
    sim_saw(world, saved ? SIM_PROBE_ROLLED_BACK : SIM_PROBE_RESTARTED);
    sim_record(world, "restart", 0, 0, saved, 0);
    restart_store(world, saved);
    if (saved) {
        faults_distrust(world, NULL, 0);
        messages_haunt(world);
    }
}

static void break_lock(sim_world *world)
{
    uint32_t lock = sim_random_below(&world->faults, world->plan.lock_count);
    oracle_store_before before;
    model_news news;
    snk_id claim;
    if (world->now_ns < world->outage_until_ns)
        return;
    oracle_before_execution(world, lock, &before);
    bool broke =
        model_store_break(&world->store, lock, sim_clock_local(&world->store_clock, world->now_ns), &claim, &news);
    if (broke) {
        sim_saw(world, SIM_PROBE_BROKEN);
        break_claim(world, sim_find_claim(world, &claim));
        sim_record(world, "break", 0, lock, (uint64_t)(sim_find_claim(world, &claim) - world->claims), 0);
    }
    oracle_after_execution(world, lock, NULL, NULL, broke ? &claim : NULL, &before);
    messages_carry(world, &news);
    oracle_check_lock(world, lock);
}

static void settle_store(sim_world *world)
{
    for (uint32_t lock = 0; lock < world->plan.lock_count && world->now_ns >= world->outage_until_ns; lock++) {
        oracle_store_before before;
        model_news news;
        oracle_before_execution(world, lock, &before);
        model_store_settle(&world->store, lock, sim_clock_local(&world->store_clock, world->now_ns), &news);
        oracle_after_execution(world, lock, NULL, NULL, NULL, &before);
        messages_carry(world, &news);
        oracle_check_lock(world, lock);
    }
}

static void forge_news(sim_world *world)
{
    sim_process *process = draw_process(world);
    bool foreign = world->claim_count > 0 && sim_random_chance(&world->faults, 500);
    sim_saw(world, foreign ? SIM_PROBE_FOREIGN_NEWS : SIM_PROBE_FORGED_NEWS);
    sim_push(world, world->now_ns,
             &(sim_event){ .kind = SIM_EVENT_NEWS,
                           .process = (uint8_t)sim_process_number(world, process),
                           .lock = (uint8_t)sim_random_below(&world->faults, world->plan.lock_count),
                           .epoch = process->epoch,
                           .index = foreign ? sim_random_below(&world->faults, world->claim_count) : SIM_CLAIMS_MAX,
                           .generation = sim_random_chance(&world->faults, 500) ? SIM_NEWS_FORGED : SIM_NEWS_LOOK });
}

static void interrupt_somebody(sim_world *world)
{
    sim_process *process = draw_process(world);
    if (!process->up || process->paused_until_ns > world->now_ns)
        return;
    uint32_t lock = sim_random_below(&world->faults, world->plan.lock_count);
    const sim_thread *thread = &process->threads[sim_random_below(&world->faults, world->plan.thread_count)];
    snk_event event = { .kind = SNK_EVENT_INTERRUPT, .tag = sim_random_chance(&world->faults, 300) ? NULL : thread };
    snk_actions actions;
    client_step(world, process, lock, &event, &actions);
}

void faults_after_step(sim_world *world, sim_process *process, uint32_t lock)
{
    const snk_hold *hold = process->machines[lock].hold;
    if (hold == NULL || hold->owner != 0 || world->phase != SIM_PHASE_FAULTS ||
        world->plan.every_ns[SIM_FAULT_PAUSE] == 0)
        return;
    if (sim_random_chance(&world->faults, 20))
        pause_process(world, process);
}

void faults_on_event(sim_world *world, const sim_event *event)
{
    if (world->phase != SIM_PHASE_FAULTS)
        return;
    sim_process *process = draw_process(world);
    switch ((sim_fault)event->index) {
    case SIM_FAULT_PAUSE:
        pause_process(world, process);
        break;
    case SIM_FAULT_CRASH:
        crash_process(world, process);
        break;
    case SIM_FAULT_CLOSE:
        close_process(world, process);
        break;
    case SIM_FAULT_RESET:
        note_injected(world, process);
        if (process->up && process->paused_until_ns <= world->now_ns)
            client_reset(world, process);
        break;
    case SIM_FAULT_OUTAGE:
        for (uint32_t i = 0; i < world->plan.process_count; i++)
            note_injected(world, &world->processes[i]);
        set_outage(world, world->now_ns + sim_random_octaves(&world->faults, SNK_NS_PER_MS, world->plan.lease_ns * 2));
        sim_record(world, "outage", 0, 0, (uint64_t)world->outage_until_ns, 0);
        break;
    case SIM_FAULT_WIPE:
        wipe_store(world);
        break;
    case SIM_FAULT_SAVE:
        model_store_save(&world->store);
        break;
    case SIM_FAULT_RELOAD:
        reload_store(world);
        break;
    case SIM_FAULT_BREAK:
        break_lock(world);
        break;
    case SIM_FAULT_FORGE:
        forge_news(world);
        break;
    case SIM_FAULT_INTERRUPT:
        interrupt_somebody(world);
        break;
    case SIM_FAULT_SETTLE:
        settle_store(world);
        break;
    case SIM_FAULT_WATCH:
        watchdog_look(world, process);
        break;
    case SIM_FAULT_CUT:
        replica_cut(world);
        break;
    case SIM_FAULT_TAKE_OVER:
        replica_take_over(world);
        break;
    case SIM_FAULT_COUNT:
        break;
    }
    push_fault(world, (sim_fault)event->index);
}

static bool is_closed(const sim_world *world, const sim_process *process)
{
    for (uint32_t lock = 0; lock < world->plan.lock_count; lock++)
        if (!snk_machine_is_idle(&process->machines[lock]))
            return false;
    return !client_is_busy(world, process);
}

void faults_on_restart(sim_world *world, const sim_event *event)
{
    sim_process *process = &world->processes[event->process];
    if (process->up && process->closing) {
        bool closed = is_closed(world, process);
        if (!closed && world->now_ns - process->closing_since_ns < SNK_CLOSE_WAIT_NS) {
            push_restart(world, process, world->plan.lease_ns / 8);
            return;
        }
        if (closed)
            oracle_check_closed(world, process);
        else if (world->phase == SIM_PHASE_CLOSING)
            sim_violate(world, "I15", "a client does not get closed");
        client_drop_all(world, process);
        process->up = false;
        process->epoch++;
    }
    if (world->phase == SIM_PHASE_CLOSING)
        return;
    sim_process_start(world, process);
}

/* A pause that has begun lasts as long as it was to: what it held up is on its way for then already. */
void faults_heal(sim_world *world)
{
    sim_record(world, "heal", 0, 0, 0, 0);
    world->phase = SIM_PHASE_HEALED;
    world->healed_at_ns = world->now_ns;
    world->outage_until_ns = 0;
}
