#include "watchdog.h"

#include "agents.h"
#include "base/clock.h"
#include "model_client.h"

#define RESCUE_AFTER_NS_MAX (5 * SNK_NS_PER_MS)

static void revoke(sim_world *world, sim_process *process, uint32_t lock)
{
    const snk_hold *hold = process->machines[lock].hold;
    snk_event event = {
        .kind = SNK_EVENT_REVOKE,
        .owner = hold->owner,
        .token = hold->token,
        .cause = SNECK_CAUSE_STUCK,
    };
    snk_actions actions;
    client_step(world, process, lock, &event, &actions);
}

/* Only of a thread that is nobody else's owner too, and waits for nothing. */
static void kill_owner(sim_world *world, sim_process *process, uint32_t lock)
{
    uint64_t owner = process->machines[lock].hold->owner;
    if (world->plan.shared_owner)
        return;
    for (uint32_t i = 0; i < SIM_THREADS_MAX; i++) {
        sim_thread *thread = &process->threads[i];
        if (thread->owner == owner && thread->state == SIM_THREAD_HOLDING && thread->lock == lock) {
            sim_saw(world, SIM_PROBE_OWNER_DIED);
            agent_die(world, process, thread);
            return;
        }
    }
}

void watchdog_look(sim_world *world, sim_process *process)
{
    uint32_t lock = sim_random_below(&world->faults, world->plan.lock_count);
    const snk_machine *machine = &process->machines[lock];
    if (!process->up || process->closing || process->paused_until_ns > world->now_ns || machine->hold == NULL)
        return;
    uint32_t what = sim_random_below(&world->faults, 100);
    if (what < 60 || machine->hold->owner == 0)
        client_check(world, process, lock);
    else if (what < 80)
        revoke(world, process, lock);
    else
        kill_owner(world, process, lock);
}

void watchdog_after_step(sim_world *world, sim_process *process, uint32_t lock, const snk_actions *actions,
                         const oracle_before *before)
{
    sim_thread *rescuer = &process->threads[SIM_THREADS_MAX + lock];
    if (!before->had_hold || before->hold.terms.care.recovery != SNECK_RECOVER_REACQUIRE || process->closing ||
        rescuer->state != SIM_THREAD_DONE)
        return;
    for (uint32_t i = 0; i < actions->note_count; i++) {
        if (actions->notes[i].kind != SNECK_EVENT_LOST || actions->notes[i].hold == NULL)
            continue;
        rescuer->owner = actions->notes[i].owner;
        rescuer->lock = (uint8_t)lock;
        rescuer->waiter.terms = before->hold.terms;
        rescuer->state = SIM_THREAD_IDLE;
        agent_schedule(world, process, rescuer, sim_random_range(&world->network, 1, RESCUE_AFTER_NS_MAX));
        return;
    }
}
