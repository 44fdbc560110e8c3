#include "world.h"

#include <stdarg.h>

#include "agents.h"
#include "base/clock.h"
#include "faults.h"
#include "messages.h"
#include "model_client.h"
#include "oracle.h"

#define EVENTS_MAX 60000
#define HORIZON_LEASES 60

/* ---- Small things ---- */

void sim_push(sim_world *world, int64_t at_ns, const sim_event *event)
{
    sim_event dated = *event;
    dated.at_ns = at_ns;
    if (!sim_heap_push(&world->heap, &dated))
        sim_violate(world, "SIM", "more than %d events ahead", SIM_HEAP_MAX);
}

uint32_t sim_process_number(const sim_world *world, const sim_process *process)
{
    return (uint32_t)(process - world->processes);
}

uint32_t sim_owner_levels(const sim_process *process, const sim_thread *thread)
{
    uint32_t levels = 0;
    for (uint32_t i = 0; i < SIM_THREADS_MAX; i++)
        if (process->threads[i].owner == thread->owner && process->threads[i].lock == thread->lock)
            levels += process->threads[i].levels;
    return levels;
}

sim_claim *sim_find_claim(sim_world *world, const snk_id *id)
{
    uint32_t number = sim_id_number(id);
    if (number >= world->claim_count || !snk_id_equal(&world->claims[number].id, id))
        return NULL;
    return &world->claims[number];
}

static bool draw_id(void *context, snk_id *id_out)
{
    sim_process *process = context;
    sim_world *world = process->world;
    if (world->phase == SIM_PHASE_FAULTS && sim_random_chance(&world->faults, world->plan.id_fails)) {
        sim_saw(world, SIM_PROBE_NO_ID);
        for (uint32_t i = 0; i < SIM_AGENTS_MAX; i++)
            process->threads[i].saw_failure = true;
        return false;
    }
    if (world->claim_count == SIM_CLAIMS_MAX) {
        sim_violate(world, "SIM", "more than %d claims", SIM_CLAIMS_MAX);
        return false;
    }
    uint32_t number = world->claim_count++;
    sim_id_draw(&world->ids, number, id_out);
    world->claims[number] =
        (sim_claim){ .id = *id_out, .process = (uint8_t)sim_process_number(world, process), .epoch = process->epoch };
    return true;
}

void sim_record(sim_world *world, const char *what, uint32_t process, uint32_t lock, uint64_t a, uint64_t b)
{
    sim_trail_add(&world->trail, &(sim_mark){ world->now_ns, what, process, lock, a, b });
}

void sim_violate(sim_world *world, const char *invariant, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    sim_trail_fail(&world->trail, invariant, format, arguments);
    va_end(arguments);
}

/* ---- A run ---- */

void sim_process_start(sim_world *world, sim_process *process)
{
    process->world = world;
    process->up = true;
    process->closing = false;
    process->engine.draw_id = draw_id;
    process->engine.context = process;
    for (uint32_t i = 0; i < SIM_HOLDINGS_MAX; i++)
        process->holdings[i].state = SIM_HOLDING_FREE;
    for (uint32_t lock = 0; lock < SIM_LOCKS_MAX; lock++) {
        snk_machine_init(&process->machines[lock], &process->engine);
        process->armed_at_ns[lock] = SNK_NEVER_NS;
        process->timer_generation[lock]++;
    }
    for (uint32_t i = 0; i < SIM_AGENTS_MAX; i++) {
        sim_thread *thread = &process->threads[i];
        thread->waiter = (snk_waiter){ 0 };
        if (i < SIM_THREADS_MAX)
            thread->owner = i == 1 && world->plan.shared_owner ? process->owners_made : ++process->owners_made;
        thread->state = i < world->plan.thread_count ? SIM_THREAD_IDLE : SIM_THREAD_DONE;
        thread->levels = 0;
        thread->has_read = false;
        thread->rounds_left = 1;
        if (thread->state == SIM_THREAD_IDLE)
            agent_schedule(world, process, thread,
                           sim_random_octaves(&world->workload, SNK_NS_PER_US, world->plan.lease_ns / 2));
    }
}

static void begin(sim_world *world, uint64_t seed)
{
    world->seed = seed;
    sim_random_init(&world->network, seed, 1);
    sim_random_init(&world->workload, seed, 2);
    sim_random_init(&world->faults, seed, 3);
    sim_random_init(&world->ids, seed, 4);
    sim_heap_clear(&world->heap);
    model_store_clear(&world->store);
    world->phase = SIM_PHASE_FAULTS;
    world->now_ns = 0;
    world->event_count = 0;
    world->outage_until_ns = 0;
    world->cut_until_ns = 0;
    world->taking_over_until_ns = 0;
    world->request_count = 0;
    world->free_request_count = 0;
    world->chase_count = 0;
    world->claim_count = 0;
    sim_trail_begin(&world->trail, seed);
    for (uint32_t i = 0; i < SIM_LOCKS_MAX; i++) {
        sim_ledger *ledger = &world->ledgers[i];
        ledger->highest_token = 0;
        ledger->granted_token = 0;
        ledger->token_count = 0;
        ledger->free_since_ns = -1;
        ledger->resource = (sim_resource){ 0 };
    }
    faults_draw_plan(world);
    for (uint32_t i = 0; i < world->plan.process_count; i++) {
        sim_process *process = &world->processes[i];
        process->epoch = 1;
        process->owners_made = 0;
        process->paused_until_ns = 0;
        sim_process_start(world, process);
    }
    faults_begin(world);
}

static bool is_for_process(const sim_event *event)
{
    return event->kind != SIM_EVENT_REQUEST_ARRIVES && event->kind != SIM_EVENT_FAULT &&
           event->kind != SIM_EVENT_RESTART;
}

/* A process that is stopped finds everything that happened meanwhile at once, in no order that it could rely on. */
static bool put_off(sim_world *world, const sim_event *event)
{
    if (!is_for_process(event) || world->processes[event->process].paused_until_ns <= world->now_ns)
        return false;
    int64_t jitter_ns = sim_random_range(&world->network, 0, 200 * SNK_NS_PER_US);
    sim_push(world, world->processes[event->process].paused_until_ns + jitter_ns, event);
    return true;
}

static void dispatch_to_thread(sim_world *world, const sim_event *event)
{
    sim_process *process = &world->processes[event->process];
    sim_thread *thread = &process->threads[event->thread];
    if (event->generation != thread->generation)
        return;
    if (event->kind == SIM_EVENT_ACT)
        agent_act(world, process, thread);
    else if (event->kind == SIM_EVENT_WAKE)
        agent_woken(world, process, thread);
    else
        agent_limit(world, process, thread);
}

static void dispatch(sim_world *world, const sim_event *event)
{
    bool current = event->kind == SIM_EVENT_FAULT || event->epoch == world->processes[event->process].epoch;
    switch ((sim_event_kind)event->kind) {
    case SIM_EVENT_ACT:
    case SIM_EVENT_WAKE:
    case SIM_EVENT_LIMIT:
        if (current)
            dispatch_to_thread(world, event);
        break;
    case SIM_EVENT_REQUEST_ARRIVES:
        client_on_request_arrives(world, event);
        break;
    case SIM_EVENT_REPLY_ARRIVES:
        client_on_reply_arrives(world, event);
        break;
    case SIM_EVENT_REQUEST_OVER:
        client_on_request_over(world, event);
        break;
    case SIM_EVENT_NEWS:
        if (current && world->processes[event->process].up)
            messages_arrive(world, event);
        break;
    case SIM_EVENT_TIMER:
        if (current)
            client_on_timer(world, event);
        break;
    case SIM_EVENT_CHASE:
        if (current)
            client_on_chase(world, event);
        break;
    case SIM_EVENT_RESTART:
        if (current)
            faults_on_restart(world, event);
        break;
    case SIM_EVENT_FAULT:
        faults_on_event(world, event);
        break;
    }
}

/* Takes the next event; false when there is none, or an invariant was violated. */
static bool advance(sim_world *world)
{
    sim_event event;
    if (world->trail.failed || !sim_heap_pop(&world->heap, &event))
        return false;
    world->now_ns = event.at_ns;
    if (put_off(world, &event))
        return true;
    oracle_check_deadlines(world);
    world->event_count++;
    if (world->event_count > EVENTS_MAX)
        sim_violate(world, "I6", "more than %d events: something runs hot", EVENTS_MAX);
    dispatch(world, &event);
    return !world->trail.failed;
}

static bool everybody_is_done(const sim_world *world)
{
    for (uint32_t i = 0; i < world->plan.process_count; i++) {
        const sim_process *process = &world->processes[i];
        if (!process->up || process->closing || process->paused_until_ns + SNK_NS_PER_MS > world->now_ns)
            return false;
        for (uint32_t j = 0; j < world->plan.thread_count; j++)
            if (process->threads[j].state != SIM_THREAD_DONE)
                return false;
    }
    return true;
}

static bool everybody_is_closed(const sim_world *world)
{
    for (uint32_t i = 0; i < world->plan.process_count; i++)
        if (world->processes[i].up)
            return false;
    return true;
}

/* After healing everybody is served or gives up in bounded time. */
static void run_healed(sim_world *world)
{
    int64_t threads = (int64_t)world->plan.process_count * world->plan.thread_count;
    int64_t bound_ns = world->now_ns + (world->plan.lease_ns * 4 + 5 * SNK_NS_PER_S) * (threads + 4);
    while (!everybody_is_done(world) && advance(world)) {
        oracle_check_progress(world);
        if (world->now_ns > bound_ns)
            sim_violate(world, "I6", "somebody still waits long after healing");
    }
    if (world->heap.count == 0)
        world->now_ns += world->plan.lease_ns * 4; /* nothing happens any more: also pauses are over then */
    if (!world->trail.failed && !everybody_is_done(world))
        sim_violate(world, "I6", "nothing more happens, and somebody waits");
}

static void run_closing(sim_world *world)
{
    world->phase = SIM_PHASE_CLOSING;
    for (uint32_t i = 0; i < world->plan.process_count && !world->trail.failed; i++) {
        sim_process *process = &world->processes[i];
        agent_close_client(world, process);
        sim_push(world, world->now_ns + SNK_NS_PER_MS,
                 &(sim_event){ .kind = SIM_EVENT_RESTART, .process = (uint8_t)i, .epoch = process->epoch });
    }
    /* Also what is still on its way: a late acquire must not come back to life. */
    while (advance(world))
        ;
    if (!world->trail.failed && !everybody_is_closed(world))
        sim_violate(world, "I15", "nothing more happens, and a client is not closed");
    world->now_ns += world->plan.lease_ns * 4 + 2 * SNK_OFFER_NS;
    if (!world->trail.failed)
        oracle_check_end(world);
}

bool sim_is_time_to_heal(const sim_world *world)
{
    return world->event_count >= world->plan.event_budget || world->now_ns >= world->plan.lease_ns * HORIZON_LEASES;
}

bool sim_run(sim_world *world, uint64_t seed)
{
    begin(world, seed);
    while ((!sim_is_time_to_heal(world) || world->now_ns < world->taking_over_until_ns) && advance(world))
        ;
    if (!world->trail.failed) {
        faults_heal(world);
        run_healed(world);
    }
    if (!world->trail.failed)
        run_closing(world);
    return !world->trail.failed;
}

static void run_seed(void *context, uint64_t seed, bool tracing, sim_outcome *outcome)
{
    sim_world *world = context;
    world->trail.tracing = tracing;
    (void)sim_run(world, seed);
    *outcome = sim_trail_outcome(&world->trail, world->event_count, world->probes);
}

static void run_replica_seed(void *context, uint64_t seed, bool tracing, sim_outcome *outcome)
{
    sim_world *world = context;
    world->has_replica = true;
    run_seed(world, seed, tracing, outcome);
}

static const char *const probe_texts[] = {
#define PROBE_TEXT(name, text) [SIM_PROBE_##name] = (text),
    SIM_PROBES(PROBE_TEXT)
#undef PROBE_TEXT
};

const sim_subject sim_subject_one_store = {
    .program = "sneck-sim",
    .seeds_full = 200000,
    .world_size = sizeof(sim_world),
    .run = run_seed,
    .probe_count = SIM_PROBE_ALONE_COUNT,
    .probe_texts = probe_texts,
    .counted_probe = SIM_PROBE_INJECTED,
    .counted_min = 10000,
    .counted_text = "pauses, cuts and freezes: no call says held after the deadline, and the loss is told in time",
};

const sim_subject sim_subject_replica = {
    .program = "sneck-sim-replica",
    .seeds_full = 100000,
    .world_size = sizeof(sim_world),
    .run = run_replica_seed,
    .probe_count = SIM_PROBE_COUNT,
    .probe_texts = probe_texts,
    .counted_probe = SIM_PROBE_TAKEN_OVER_BEHIND,
    .counted_min = 2000,
    .counted_text = "a replica without the last writes takes over: tokens rise, and whose hold vanished is told",
};
