#include "world.h"

#include <stdarg.h>
#include <string.h>

#define EVENTS_MAX 120000

/* ---- Small things ---- */

void qs_push(qs_world *world, int64_t at_ns, const sim_event *event)
{
    sim_event dated = *event;
    dated.at_ns = at_ns;
    if (!sim_heap_push(&world->heap, &dated))
        qs_violate(world, "SIM", "more than %d events ahead", SIM_HEAP_MAX);
}

void qs_record(qs_world *world, const char *what, uint32_t process, uint64_t a, uint64_t b)
{
    sim_trail_add(&world->trail, &(sim_mark){ world->now_ns, what, process, 0, a, b });
}

void qs_violate(qs_world *world, const char *invariant, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    sim_trail_fail(&world->trail, invariant, format, arguments);
    va_end(arguments);
}

qs_claim *qs_find_claim(qs_world *world, const snk_id *id)
{
    uint32_t number = sim_id_number(id);
    if (number >= world->claim_count || !snk_id_equal(&world->claims[number].id, id))
        return NULL;
    return &world->claims[number];
}

static bool draw_id(void *context, snk_id *id_out)
{
    qs_process *process = context;
    qs_world *world = process->world;
    if (world->claim_count == QS_CLAIMS_MAX) {
        qs_violate(world, "SIM", "more than %d claims", QS_CLAIMS_MAX);
        return false;
    }
    uint32_t number = world->claim_count++;
    sim_id_draw(&world->ids, number, id_out);
    world->claims[number] = (qs_claim){ .id = *id_out, .process = qs_number(world, process), .epoch = process->epoch };
    return true;
}

/* ---- A run ---- */

void qs_process_start(qs_world *world, qs_process *process)
{
    process->world = world;
    process->up = true;
    process->last_token = 0;
    process->engine = (snk_engine){
        .draw_id = draw_id,
        .context = process,
        .retry_ns = world->plan.retry_ns,
        .pushes_wakeups = true,
    };
    snk_machine_init(&process->machine, &process->engine);
    process->armed_at_ns = SNK_NEVER_NS;
    process->timer_generation++;
    for (uint32_t i = 0; i < QS_NODES_MAX; i++) {
        uint32_t connection = process->links[i].connection + 1;
        process->links[i] = (qs_link){ .connection = connection };
        snk_node_clock_init(&process->links[i].clock);
    }
    for (uint32_t i = 0; i < QS_HOLDINGS_MAX; i++)
        process->holdings[i].used = false;
    for (uint32_t i = 0; i < QS_THREADS_MAX; i++) {
        qs_thread *thread = &process->threads[i];
        thread->waiter = (snk_waiter){ 0 };
        thread->owner = ++process->owners_made;
        thread->rounds_left = 1;
        thread->has_read = false;
        thread->state = i < world->plan.thread_count ? QS_THREAD_IDLE : QS_THREAD_DONE;
        if (thread->state == QS_THREAD_IDLE)
            qs_schedule(world, process, thread, sim_random_octaves(&world->workload, SNK_NS_PER_US, SNK_NS_PER_MS));
    }
}

static void begin(qs_world *world, uint64_t seed)
{
    sim_random_init(&world->network, seed, 11);
    sim_random_init(&world->workload, seed, 12);
    sim_random_init(&world->faults, seed, 13);
    sim_random_init(&world->ids, seed, 14);
    sim_heap_clear(&world->heap);
    world->phase = QS_PHASE_FAULTS;
    world->now_ns = 0;
    world->event_count = 0;
    world->claim_count = 0;
    world->highest_token = 0;
    world->token_count = 0;
    world->resource_token = 0;
    world->resource_version = 0;
    world->writer_token = 0;
    sim_trail_begin(&world->trail, seed);
    world->request_next = 0;
    memset(world->processes, 0, sizeof world->processes);
    memset(world->operations, 0, sizeof world->operations);
    memset(world->undos, 0, sizeof world->undos);
    memset(world->chases, 0, sizeof world->chases);
    memset(world->requests, 0, sizeof world->requests);
    qs_draw_plan(world);
    for (uint32_t i = 0; i < world->quorum.nodes; i++)
        qs_node_init(&world->nodes[i], &world->quorum, qs_node_now(world, &world->nodes[i]));
    for (uint32_t i = 0; i < world->plan.process_count; i++) {
        qs_process *process = &world->processes[i];
        process->epoch = 1;
        qs_process_start(world, process);
    }
    qs_faults_begin(world);
}

static bool is_for_process(const sim_event *event)
{
    return event->kind != QS_EVENT_REQUEST_ARRIVES && event->kind != QS_EVENT_FAULT && event->kind != QS_EVENT_RESTART;
}

static bool put_off(qs_world *world, const sim_event *event)
{
    if (!is_for_process(event) || world->processes[event->process].paused_until_ns <= world->now_ns)
        return false;
    int64_t jitter_ns = sim_random_range(&world->network, 0, 200 * SNK_NS_PER_US);
    qs_push(world, world->processes[event->process].paused_until_ns + jitter_ns, event);
    return true;
}

static void dispatch_to_thread(qs_world *world, const sim_event *event)
{
    qs_process *process = &world->processes[event->process];
    qs_thread *thread = &process->threads[event->thread];
    if (event->generation != thread->generation || !process->up)
        return;
    if (event->kind == QS_EVENT_ACT)
        qs_act(world, process, thread);
    else if (event->kind == QS_EVENT_WAKE)
        qs_woken(world, process, thread);
    else
        qs_limit(world, process, thread);
}

static void dispatch_to_process(qs_world *world, const sim_event *event)
{
    switch ((qs_event_kind)event->kind) {
    case QS_EVENT_ACT:
    case QS_EVENT_WAKE:
    case QS_EVENT_LIMIT:
        dispatch_to_thread(world, event);
        break;
    case QS_EVENT_ANSWER:
        qs_on_answer(world, event);
        break;
    case QS_EVENT_ROUND:
        qs_on_round(world, event);
        break;
    case QS_EVENT_MESSAGE:
        qs_on_message(world, event);
        break;
    case QS_EVENT_TIMER:
        qs_on_timer(world, event);
        break;
    case QS_EVENT_CHASE:
        qs_on_chase(world, event);
        break;
    case QS_EVENT_UNDO:
        qs_on_undo(world, event);
        break;
    case QS_EVENT_RESTART:
        qs_process_start(world, &world->processes[event->process]);
        break;
    case QS_EVENT_REQUEST_ARRIVES:
    case QS_EVENT_REPLY_ARRIVES:
    case QS_EVENT_REQUEST_OVER:
    case QS_EVENT_FAULT:
        break;
    }
}

static void dispatch(qs_world *world, const sim_event *event)
{
    switch ((qs_event_kind)event->kind) {
    case QS_EVENT_REQUEST_ARRIVES:
        qs_on_request_arrives(world, event);
        return;
    case QS_EVENT_REPLY_ARRIVES:
        qs_on_reply_arrives(world, event);
        return;
    case QS_EVENT_REQUEST_OVER:
        qs_on_request_over(world, event);
        return;
    case QS_EVENT_FAULT:
        qs_on_fault(world, event);
        return;
    default:
        if (event->epoch == world->processes[event->process].epoch)
            dispatch_to_process(world, event);
    }
}

/* Takes the next event; false when there is none, or an invariant was violated. */
static bool advance(qs_world *world)
{
    sim_event event;
    if (world->trail.failed || !sim_heap_pop(&world->heap, &event))
        return false;
    world->now_ns = event.at_ns;
    if (put_off(world, &event))
        return true;
    world->event_count++;
    if (world->event_count > EVENTS_MAX)
        qs_violate(world, "I6", "more than %d events: something runs hot", EVENTS_MAX);
    dispatch(world, &event);
    qs_check(world);
    return !world->trail.failed;
}

static bool everybody_is_done(const qs_world *world)
{
    for (uint32_t i = 0; i < world->plan.process_count; i++) {
        const qs_process *process = &world->processes[i];
        if (!process->up || process->paused_until_ns > world->now_ns || qs_is_busy(world, process))
            return false;
        for (uint32_t j = 0; j < world->plan.thread_count; j++)
            if (process->threads[j].state != QS_THREAD_DONE)
                return false;
    }
    return true;
}

/* After healing everybody is served or gives up in bounded time, nodes that were restarted included. */
static void run_healed(qs_world *world)
{
    int64_t threads = (int64_t)world->plan.process_count * world->plan.thread_count;
    int64_t bound_ns = world->now_ns + world->quorum.lease_max_ns * 3 + 10 * SNK_NS_PER_S +
                       (world->plan.lease_ns * 4 + 3 * SNK_NS_PER_S) * (threads + 4);
    while (!everybody_is_done(world) && advance(world)) {
        if (world->now_ns > bound_ns)
            qs_violate(world, "I6", "somebody still waits long after healing");
    }
    if (world->heap.count == 0)
        world->now_ns += world->plan.lease_ns * 4; /* nothing happens any more: also pauses are over then */
    if (!world->trail.failed && !everybody_is_done(world))
        qs_violate(world, "I6", "nothing more happens, and somebody waits");
}

static void run_closing(qs_world *world)
{
    world->phase = QS_PHASE_CLOSING;
    while (advance(world))
        ;
    world->now_ns += world->plan.lease_ns * 4;
    if (!world->trail.failed)
        qs_check_end(world);
}

static void run(void *context, uint64_t seed, bool tracing, sim_outcome *outcome)
{
    qs_world *world = context;
    world->trail.tracing = tracing;
    begin(world, seed);
    while (world->event_count < world->plan.event_budget && world->now_ns < world->plan.horizon_ns && advance(world))
        ;
    if (!world->trail.failed) {
        qs_heal(world);
        run_healed(world);
    }
    if (!world->trail.failed)
        run_closing(world);
    *outcome = sim_trail_outcome(&world->trail, world->event_count, world->probes);
}

static const char *const probe_texts[] = {
#define PROBE_TEXT(name, text) [QS_PROBE_##name] = (text),
    QS_PROBES(PROBE_TEXT)
#undef PROBE_TEXT
};

const sim_subject qs_subject = {
    .program = "sneck-sim-quorum",
    .seeds_full = 100000,
    .world_size = sizeof(qs_world),
    .run = run,
    .probe_count = QS_PROBE_COUNT,
    .probe_texts = probe_texts,
};
