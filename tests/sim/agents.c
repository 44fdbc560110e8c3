#include "agents.h"

#include "base/clock.h"
#include "model_client.h"
#include "oracle.h"

#define PAUSE_SHORT_NS (2 * SNK_NS_PER_MS)
#define PAUSE_HEALED_NS (400 * SNK_NS_PER_MS) /* long enough to see whether somebody forgets what he should do soon */

static uint32_t thread_number(const sim_process *process, const sim_thread *thread)
{
    return (uint32_t)(thread - process->threads);
}

static void push_for_thread(sim_world *world, sim_process *process, sim_thread *thread, sim_event_kind kind,
                            int64_t at_ns)
{
    sim_push(world, at_ns,
             &(sim_event){ .kind = (uint8_t)kind,
                           .process = (uint8_t)sim_process_number(world, process),
                           .thread = (uint8_t)thread_number(process, thread),
                           .epoch = process->epoch,
                           .generation = thread->generation });
}

void agent_schedule(sim_world *world, sim_process *process, sim_thread *thread, int64_t pause_ns)
{
    thread->generation++;
    thread->wake_pending = false;
    push_for_thread(world, process, thread, SIM_EVENT_ACT, world->now_ns + pause_ns);
}

void agent_wake(sim_world *world, sim_process *process, sim_thread *thread, bool news)
{
    thread->news_pending |= news;
    if (thread->state != SIM_THREAD_WAITING || thread->wake_pending)
        return;
    thread->wake_pending = true;
    int64_t delay_ns = sim_random_range(&world->network, 1, 100 * SNK_NS_PER_US);
    if (sim_random_chance(&world->network, world->plan.slow_wake))
        delay_ns = sim_random_octaves(&world->network, SNK_NS_PER_MS / 2, 10 * SNK_NS_PER_MS);
    push_for_thread(world, process, thread, SIM_EVENT_WAKE, world->now_ns + delay_ns);
}

static bool chance(sim_world *world, uint32_t per_mille)
{
    return sim_random_chance(&world->workload, per_mille);
}

/* Mostly a blink, sometimes a good part of the lease, sometimes more than it. */
static int64_t draw_pause_ns(sim_world *world)
{
    if (world->phase != SIM_PHASE_FAULTS)
        return sim_random_range(&world->workload, 1, chance(world, 50) ? PAUSE_HEALED_NS : PAUSE_SHORT_NS);
    switch (sim_random_below(&world->workload, 8)) {
    case 0:
        return sim_random_range(&world->workload, 1, world->plan.lease_ns * 2);
    case 1:
    case 2:
        return sim_random_range(&world->workload, 1, world->plan.lease_ns / 2);
    default:
        return sim_random_octaves(&world->workload, SNK_NS_PER_US, PAUSE_SHORT_NS * 2);
    }
}

static snk_hold *bring_hold(sim_world *world, sim_process *process)
{
    for (uint32_t i = 0; i < SIM_HOLDINGS_MAX; i++) {
        if (process->holdings[i].state == SIM_HOLDING_FREE) {
            process->holdings[i].state = SIM_HOLDING_BROUGHT;
            return &process->holdings[i].hold;
        }
    }
    sim_violate(world, "I15", "machines keep the memory of %d holds", SIM_HOLDINGS_MAX);
    return NULL;
}

static void draw_terms(sim_world *world, snk_terms *terms)
{
    const sim_plan *plan = &world->plan;
    terms->lease_ns = plan->lease_ns;
    if (chance(world, plan->mixed_terms))
        terms->lease_ns = chance(world, 500) ? plan->lease_ns / 2 : plan->lease_ns * 2;
    if (terms->lease_ns < SNK_LEASE_MS_MIN * SNK_NS_PER_MS)
        terms->lease_ns = SNK_LEASE_MS_MIN * SNK_NS_PER_MS;
    terms->renew_ns = chance(world, plan->unrenewed) ? SNK_NEVER_NS : terms->lease_ns / 3;
    terms->fair = chance(world, plan->fair);
    terms->forget_on_loss = !chance(world, plan->mixed_terms / 2);
    terms->care.threshold = (uint8_t)sim_random_below(&world->workload, 4);
    if (!terms->forget_on_loss)
        terms->care.recovery = SNECK_RECOVER_NOTIFY;
    else
        terms->care.recovery = chance(world, plan->reacquires) ? SNECK_RECOVER_REACQUIRE : SNECK_RECOVER_RELEASE;
}

/* ---- Acquire ---- */

static bool is_held(sim_world *world, const sim_process *process, const sim_thread *thread)
{
    const snk_machine *machine = &process->machines[thread->lock];
    return machine->hold != NULL && machine->hold->owner == thread->owner &&
           snk_deadline_peek(&machine->deadline) > sim_local_now(world, process);
}

static void finish_acquire(sim_world *world, sim_process *process, sim_thread *thread)
{
    snk_waiter *waiter = &thread->waiter;
    if (waiter->hold != NULL)
        SNK_CONTAINER(waiter->hold, sim_holding, hold)->state = SIM_HOLDING_FREE;
    waiter->hold = NULL;
    if (sim_is_rescuer(process, thread)) {
        thread->state = SIM_THREAD_DONE;
        thread->generation++;
        return;
    }
    thread->state = thread->levels > 0 ? SIM_THREAD_HOLDING : SIM_THREAD_IDLE;
    if (process->closing) {
        thread->state = SIM_THREAD_DONE;
        thread->generation++;
        return;
    }
    if (waiter->result.status == SNECK_OK && thread->levels == 1)
        oracle_read(world, thread, waiter->token);
    agent_schedule(world, process, thread, draw_pause_ns(world));
}

static void ask(sim_world *world, sim_process *process, sim_thread *thread, bool once, bool reentrant)
{
    snk_waiter *waiter = &thread->waiter;
    waiter->reserves = sim_is_rescuer(process, thread);
    waiter->owner = thread->owner;
    waiter->tag = thread;
    waiter->once = once;
    waiter->reentrant = reentrant;
    waiter->hold = bring_hold(world, process);
    thread->state = SIM_THREAD_WAITING;
    thread->generation++;
    thread->wake_pending = false;
    thread->news_pending = false;
    thread->grant.run = 0;
    thread->noticed = false;
    thread->asked_at_ns = world->now_ns;
    thread->floor_token = world->ledgers[thread->lock].highest_token;
    thread->owed = sim_owner_levels(process, thread) > 0 && !is_held(world, process, thread);
    thread->saw_other = false;
    thread->was_behind = false;
    thread->told_other = false;
    thread->saw_failure = false;
    snk_event event = { .kind = SNK_EVENT_ASK, .waiter = waiter };
    snk_actions actions;
    client_step_for(world, process, thread, &event, &actions);
}

static void begin_acquire(sim_world *world, sim_process *process, sim_thread *thread)
{
    bool once = chance(world, world->plan.once);
    if (thread->levels == 0) {
        thread->lock = (uint8_t)sim_random_below(&world->workload, world->plan.lock_count);
        draw_terms(world, &thread->waiter.terms);
    }
    int64_t limit_ns = -1;
    if (!once && !chance(world, 200))
        limit_ns = sim_random_octaves(&world->workload, SNK_NS_PER_MS / 4, world->plan.lease_ns * 4);
    ask(world, process, thread, once, !chance(world, 30));
    if (thread->waiter.decided)
        finish_acquire(world, process, thread);
    else if (limit_ns >= 0)
        push_for_thread(world, process, thread, SIM_EVENT_LIMIT, world->now_ns + limit_ns);
}

static void give_up(sim_world *world, sim_process *process, sim_thread *thread, sneck_status status)
{
    snk_event event = { .kind = SNK_EVENT_GIVE_UP, .waiter = &thread->waiter, .status = status };
    snk_actions actions;
    client_step_for(world, process, thread, &event, &actions);
    if (!thread->waiter.decided)
        sim_violate(world, "I6", "a waiter gave up and was not decided");
}

void agent_woken(sim_world *world, sim_process *process, sim_thread *thread)
{
    bool news = thread->news_pending;
    snk_grant grant = thread->grant;
    thread->wake_pending = false;
    thread->news_pending = false;
    thread->grant.run = 0;
    if (thread->state != SIM_THREAD_WAITING)
        return;
    if (!thread->waiter.decided && thread->waiter.interrupted) {
        give_up(world, process, thread, SNECK_CANCELED);
    } else if (!thread->waiter.decided) {
        snk_event event = {
            .kind = SNK_EVENT_RESUME, .waiter = &thread->waiter, .news = news, .grant = grant.run != 0 ? &grant : NULL
        };
        snk_actions actions;
        client_step_for(world, process, thread, &event, &actions);
    }
    if (thread->waiter.decided)
        finish_acquire(world, process, thread);
}

void agent_limit(sim_world *world, sim_process *process, sim_thread *thread)
{
    if (thread->state != SIM_THREAD_WAITING)
        return;
    if (!thread->waiter.decided)
        give_up(world, process, thread, thread->waiter.interrupted ? SNECK_CANCELED : SNECK_TIMEOUT);
    if (thread->waiter.decided)
        finish_acquire(world, process, thread);
}

/* ---- While holding ---- */

static bool has_lost_levels(const snk_machine *machine, uint64_t owner)
{
    for (snk_link *link = snk_list_first(&machine->lost); link != NULL; link = snk_list_next(&machine->lost, link))
        if (SNK_CONTAINER(link, snk_hold, link)->owner == owner)
            return true;
    return false;
}

/* What sneck_hold_count and sneck_token say: exact at the moment of the call. */
static uint64_t look(sim_world *world, sim_process *process, sim_thread *thread)
{
    snk_machine *machine = &process->machines[thread->lock];
    bool held = is_held(world, process, thread);
    unsigned levels = snk_machine_levels(machine, thread->owner, sim_local_now(world, process));
    uint32_t taken = sim_owner_levels(process, thread);
    if (levels != (held ? taken : 0))
        sim_violate(world, held ? "I10" : "I4", "%u levels are reported, %u were taken, held %d", levels, taken, held);
    uint64_t token = levels > 0 ? machine->hold->token : 0;
    if (levels > 0 && token != thread->token)
        sim_violate(world, "I10", "the token changed while the lock was held");
    return token;
}

static void use_resource(sim_world *world, sim_process *process, sim_thread *thread)
{
    uint64_t token = look(world, process, thread);
    /* Half of the programs remember the token, the others ask for it; a few do not care that it is lost. */
    if (chance(world, 500))
        token = thread->token;
    if (token != 0)
        oracle_write(world, thread, token);
}

/* One level back. True when the answer of the store will be the result. */
static bool release_level(sim_world *world, sim_process *process, sim_thread *thread, sneck_status *status_out)
{
    bool held = is_held(world, process, thread);
    uint32_t levels = sim_owner_levels(process, thread);
    thread->extending = false;
    thread->state = SIM_THREAD_PENDING;
    thread->generation++;
    thread->levels--;
    snk_event event = { .kind = SNK_EVENT_RELEASE, .owner = thread->owner };
    snk_actions actions;
    client_step_for(world, process, thread, &event, &actions);
    *status_out = actions.pending ? SNECK_OK : actions.release.status;
    sneck_status expected = held ? SNECK_OK : SNECK_LOST;
    if (*status_out != expected || (actions.pending && (!held || levels > 1)))
        sim_violate(world, held ? "I10" : "I4", "release of level %u, held %d: %s", levels, held,
                    sneck_status_name(*status_out));
    return actions.pending;
}

/* Levels of a lost hold are the program's to give back, also when the client is being closed. */
static void release_lost_levels(sim_world *world, sim_process *process, sim_thread *thread)
{
    sneck_status status;
    while (thread->levels > 0 && !is_held(world, process, thread) && !world->trail.failed)
        (void)release_level(world, process, thread, &status);
}

void agent_answered(sim_world *world, sim_process *process, sim_thread *thread, sneck_status status)
{
    if (status == SNECK_UNKNOWN && !thread->extending)
        sim_saw(world, SIM_PROBE_RELEASE_UNKNOWN);
    if (status == SNECK_OK && thread->extending) {
        sim_saw(world, SIM_PROBE_EXTENDED);
        if (!is_held(world, process, thread))
            sim_violate(world, "I4", "an extend of a hold that is over succeeded");
    }
    if (status == SNECK_LOST && thread->extending && is_held(world, process, thread))
        sim_violate(world, "I16", "an extend says lost, and the hold goes on");
    thread->state = thread->levels > 0 ? SIM_THREAD_HOLDING : SIM_THREAD_IDLE;
    if (!process->closing) {
        agent_schedule(world, process, thread, draw_pause_ns(world));
        return;
    }
    if (has_lost_levels(&process->machines[thread->lock], thread->owner))
        release_lost_levels(world, process, thread);
    thread->state = SIM_THREAD_DONE;
}

static void extend(sim_world *world, sim_process *process, sim_thread *thread)
{
    bool held = is_held(world, process, thread);
    int64_t lease_ns = sim_random_range(&world->workload, SNK_LEASE_MS_MIN * SNK_NS_PER_MS, world->plan.lease_ns * 2);
    thread->extending = true;
    thread->state = SIM_THREAD_PENDING;
    thread->generation++;
    snk_event event = { .kind = SNK_EVENT_EXTEND, .owner = thread->owner, .lease_ns = lease_ns };
    snk_actions actions;
    client_step_for(world, process, thread, &event, &actions);
    if (actions.pending != held || (!held && actions.release.status != SNECK_LOST))
        sim_violate(world, "I4", "extend, held %d: %s", held, sneck_status_name(actions.release.status));
    if (!actions.pending)
        agent_answered(world, process, thread, actions.release.status);
}

/* A release by somebody who has no level: it must say so and change nothing. */
static void release_foreign(sim_world *world, sim_process *process, sim_thread *thread)
{
    uint32_t lock = sim_random_below(&world->workload, world->plan.lock_count);
    for (uint32_t i = 0; i < SIM_THREADS_MAX; i++) {
        const sim_thread *other = &process->threads[i];
        if (other->owner == thread->owner && other->lock == lock && other->levels > 0)
            return;
    }
    snk_event event = { .kind = SNK_EVENT_RELEASE, .owner = thread->owner };
    snk_actions actions;
    const snk_hold *hold = process->machines[lock].hold;
    client_step(world, process, lock, &event, &actions);
    if (actions.release.status != SNECK_NOT_OWNER || actions.pending)
        sim_violate(world, "I3", "release by a stranger: %s", sneck_status_name(actions.release.status));
    if (hold != NULL && process->machines[lock].hold == hold)
        sim_saw(world, SIM_PROBE_NOT_OWNER);
}

/* Down to the last level and one more, and back to the outermost. */
static void go_deep(sim_world *world, sim_process *process, sim_thread *thread)
{
    while (sim_owner_levels(process, thread) < SNK_HOLDS_MAX && !world->trail.failed) {
        ask(world, process, thread, true, true);
        if (!thread->waiter.decided || thread->waiter.result.status != SNECK_OK)
            break;
        SNK_CONTAINER(thread->waiter.hold, sim_holding, hold)->state = SIM_HOLDING_FREE;
    }
    if (sim_owner_levels(process, thread) == SNK_HOLDS_MAX) {
        ask(world, process, thread, true, true);
        if (thread->waiter.result.status == SNECK_LIMIT)
            sim_saw(world, SIM_PROBE_DEEP);
        (void)look(world, process, thread);
    }
    world->plan.deep = false;
    finish_acquire(world, process, thread);
}

static void release_many(sim_world *world, sim_process *process, sim_thread *thread)
{
    uint32_t count = 1 + sim_random_below(&world->workload, thread->levels);
    sneck_status status = SNECK_OK;
    bool pending = false;
    for (uint32_t i = 0; i < count && !world->trail.failed; i++)
        pending = release_level(world, process, thread, &status);
    if (!pending)
        agent_answered(world, process, thread, status);
}

static void act_holding(sim_world *world, sim_process *process, sim_thread *thread)
{
    if (world->plan.deep && is_held(world, process, thread)) {
        go_deep(world, process, thread);
        return;
    }
    uint32_t what = sim_random_below(&world->workload, 100);
    if (what < 20)
        use_resource(world, process, thread);
    else if (what < 25)
        release_foreign(world, process, thread);
    if (what < 10 || (what >= 90 && thread->levels < 4 && chance(world, world->plan.nested)))
        begin_acquire(world, process, thread);
    else if (what >= 85 && what < 90)
        extend(world, process, thread);
    else if (what < 25)
        agent_schedule(world, process, thread, draw_pause_ns(world));
    else
        release_many(world, process, thread);
}

static void rescue(sim_world *world, sim_process *process, sim_thread *thread)
{
    ask(world, process, thread, false, true);
    if (thread->waiter.decided)
        finish_acquire(world, process, thread);
}

void agent_die(sim_world *world, sim_process *process, sim_thread *thread)
{
    uint64_t owner = thread->owner;
    thread->owner = ++process->owners_made;
    thread->levels = 0;
    thread->state = SIM_THREAD_IDLE;
    snk_event event = { .kind = SNK_EVENT_OWNER_GONE, .owner = owner };
    snk_actions actions;
    client_step(world, process, thread->lock, &event, &actions);
    agent_schedule(world, process, thread, draw_pause_ns(world));
}

void agent_act(sim_world *world, sim_process *process, sim_thread *thread)
{
    if (sim_is_rescuer(process, thread)) {
        if (thread->state == SIM_THREAD_IDLE)
            rescue(world, process, thread);
        return;
    }
    if (thread->state == SIM_THREAD_HOLDING) {
        act_holding(world, process, thread);
        return;
    }
    if (thread->state != SIM_THREAD_IDLE)
        return;
    if (world->phase != SIM_PHASE_FAULTS) {
        if (thread->rounds_left == 0) {
            thread->state = SIM_THREAD_DONE;
            return;
        }
        thread->rounds_left--;
    }
    if (chance(world, 30))
        release_foreign(world, process, thread);
    begin_acquire(world, process, thread);
}

/* ---- Close ---- */

void agent_close_client(sim_world *world, sim_process *process)
{
    process->closing = true;
    process->closing_since_ns = world->now_ns;
    for (uint32_t i = 0; i < world->plan.thread_count; i++) {
        sim_thread *thread = &process->threads[i];
        if (thread->state == SIM_THREAD_WAITING)
            sim_saw(world, SIM_PROBE_CLOSED_WAITING);
        if (thread->state != SIM_THREAD_HOLDING)
            continue;
        release_lost_levels(world, process, thread);
        thread->state = SIM_THREAD_HOLDING;
        if (thread->levels > 0)
            sim_saw(world, SIM_PROBE_CLOSED_HOLDING);
    }
    for (uint32_t lock = 0; lock < world->plan.lock_count; lock++) {
        snk_event event = { .kind = SNK_EVENT_CLOSE };
        snk_actions actions;
        client_step(world, process, lock, &event, &actions);
    }
    for (uint32_t i = 0; i < world->plan.thread_count; i++) {
        sim_thread *thread = &process->threads[i];
        if (thread->state == SIM_THREAD_HOLDING || thread->state == SIM_THREAD_IDLE) {
            thread->state = SIM_THREAD_DONE;
            thread->levels = 0;
            thread->generation++;
        }
    }
}
