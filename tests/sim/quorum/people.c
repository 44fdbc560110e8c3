/* The threads of the simulated processes. The simulator of one store has the finer points of what threads can do. */
#include "world.h"

static void push_for_thread(qs_world *world, qs_process *process, const qs_thread *thread, qs_event_kind kind,
                            int64_t at_ns)
{
    qs_push(world, at_ns,
            &(sim_event){ .kind = (uint8_t)kind,
                          .process = qs_number(world, process),
                          .thread = (uint8_t)(thread - process->threads),
                          .epoch = process->epoch,
                          .generation = thread->generation });
}

void qs_schedule(qs_world *world, qs_process *process, qs_thread *thread, int64_t pause_ns)
{
    thread->generation++;
    thread->wake_pending = false;
    push_for_thread(world, process, thread, QS_EVENT_ACT, world->now_ns + pause_ns);
}

void qs_wake(qs_world *world, qs_process *process, qs_thread *thread)
{
    if (thread->state != QS_THREAD_WAITING || thread->wake_pending)
        return;
    thread->wake_pending = true;
    push_for_thread(world, process, thread, QS_EVENT_WAKE,
                    world->now_ns + sim_random_range(&world->network, 1, 100 * SNK_NS_PER_US));
}

/* Mostly a blink, sometimes a good part of the lease, sometimes more than it. */
static int64_t draw_pause_ns(qs_world *world)
{
    if (world->phase != QS_PHASE_FAULTS)
        return sim_random_range(&world->workload, 1, 2 * SNK_NS_PER_MS);
    switch (sim_random_below(&world->workload, 8)) {
    case 0:
        return sim_random_range(&world->workload, 1, world->plan.lease_ns * 3 / 2);
    case 1:
    case 2:
        return sim_random_range(&world->workload, 1, world->plan.lease_ns / 2);
    default:
        return sim_random_octaves(&world->workload, SNK_NS_PER_US, 4 * SNK_NS_PER_MS);
    }
}

static void finish_acquire(qs_world *world, qs_process *process, qs_thread *thread)
{
    snk_waiter *waiter = &thread->waiter;
    if (waiter->hold != NULL)
        SNK_CONTAINER(waiter->hold, qs_holding, hold)->used = false;
    waiter->hold = NULL;
    thread->state = waiter->result.status == SNECK_OK ? QS_THREAD_HOLDING : QS_THREAD_IDLE;
    if (thread->state == QS_THREAD_HOLDING)
        qs_read(world, thread);
    qs_schedule(world, process, thread, draw_pause_ns(world));
}

static snk_hold *bring_hold(qs_world *world, qs_process *process)
{
    for (uint32_t i = 0; i < QS_HOLDINGS_MAX; i++) {
        if (!process->holdings[i].used) {
            process->holdings[i].used = true;
            return &process->holdings[i].hold;
        }
    }
    qs_violate(world, "I15", "a machine keeps the memory of %d holds", QS_HOLDINGS_MAX);
    return NULL;
}

static void begin_acquire(qs_world *world, qs_process *process, qs_thread *thread)
{
    snk_waiter *waiter = &thread->waiter;
    bool once = sim_random_chance(&world->workload, world->plan.once);
    waiter->owner = thread->owner;
    waiter->tag = thread;
    waiter->once = once;
    waiter->reentrant = true;
    waiter->terms = (snk_terms){ .lease_ns = world->plan.lease_ns, .forget_on_loss = true };
    if (sim_random_chance(&world->workload, 200))
        waiter->terms.lease_ns = world->quorum.lease_max_ns;
    waiter->terms.renew_ns =
        sim_random_chance(&world->workload, world->plan.unrenewed) ? SNK_NEVER_NS : waiter->terms.lease_ns / 3;
    waiter->hold = bring_hold(world, process);
    thread->state = QS_THREAD_WAITING;
    thread->generation++;
    thread->wake_pending = false;
    thread->noticed = false;
    thread->floor_token = world->highest_token;
    thread->saw_other = false;
    int64_t limit_ns = sim_random_octaves(&world->workload, SNK_NS_PER_MS, world->plan.lease_ns * 4);
    snk_event event = { .kind = SNK_EVENT_ASK, .waiter = waiter };
    snk_actions actions;
    qs_step(world, process, thread, &event, &actions);
    if (waiter->decided)
        finish_acquire(world, process, thread);
    else if (!once && (world->phase == QS_PHASE_FAULTS || sim_random_chance(&world->workload, 500)))
        push_for_thread(world, process, thread, QS_EVENT_LIMIT, world->now_ns + limit_ns);
}

void qs_woken(qs_world *world, qs_process *process, qs_thread *thread)
{
    thread->wake_pending = false;
    if (thread->state != QS_THREAD_WAITING)
        return;
    if (!thread->waiter.decided) {
        snk_event event = { .kind = SNK_EVENT_RESUME, .waiter = &thread->waiter };
        snk_actions actions;
        qs_step(world, process, thread, &event, &actions);
    }
    if (thread->waiter.decided)
        finish_acquire(world, process, thread);
}

void qs_limit(qs_world *world, qs_process *process, qs_thread *thread)
{
    if (thread->state != QS_THREAD_WAITING)
        return;
    if (!thread->waiter.decided) {
        snk_event event = { .kind = SNK_EVENT_GIVE_UP, .waiter = &thread->waiter, .status = SNECK_TIMEOUT };
        snk_actions actions;
        qs_step(world, process, thread, &event, &actions);
    }
    finish_acquire(world, process, thread);
}

static void release(qs_world *world, qs_process *process, qs_thread *thread)
{
    thread->state = QS_THREAD_PENDING;
    thread->generation++;
    snk_event event = { .kind = SNK_EVENT_RELEASE, .owner = thread->owner };
    snk_actions actions;
    qs_step(world, process, thread, &event, &actions);
    if (!actions.pending)
        qs_released(world, process, thread);
}

void qs_released(qs_world *world, qs_process *process, qs_thread *thread)
{
    thread->state = QS_THREAD_IDLE;
    thread->token = 0;
    qs_schedule(world, process, thread, draw_pause_ns(world));
}

void qs_act(qs_world *world, qs_process *process, qs_thread *thread)
{
    if (thread->state == QS_THREAD_HOLDING) {
        /* Some look whether they still have it, and some do not. */
        bool held = snk_machine_levels(&process->machine, thread->owner, qs_local(world, process)) > 0;
        if (held || sim_random_chance(&world->workload, 500))
            qs_write(world, thread);
        if (sim_random_chance(&world->workload, 300))
            qs_schedule(world, process, thread, draw_pause_ns(world));
        else
            release(world, process, thread);
        return;
    }
    if (world->phase != QS_PHASE_FAULTS && thread->rounds_left-- == 0) {
        thread->state = QS_THREAD_DONE;
        return;
    }
    begin_acquire(world, process, thread);
}
