#include "model_client.h"

#include <string.h>

#include "agents.h"
#include "base/clock.h"
#include "faults.h"
#include "messages.h"
#include "oracle.h"
#include "replica.h"
#include "watchdog.h"

#define TIMER_LATENESS_NS (50 * SNK_NS_PER_US)

/* In the trace: where a request is. */
#define EXECUTED 1
#define ANSWERED 2

/* ---- Requests ---- */

static const char *const send_names[] = {
    [SNK_ASK_ACQUIRE] = "send acquire",
    [SNK_ASK_RENEW] = "send renew",
    [SNK_ASK_RELEASE] = "send release",
};

static const char *const answer_names[] = {
    [SNK_ANSWER_HELD] = "held",           [SNK_ANSWER_QUEUED] = "queued", [SNK_ANSWER_BUSY] = "busy",
    [SNK_ANSWER_GONE] = "gone",           [SNK_ANSWER_DONE] = "done",     [SNK_ANSWER_FAILED] = "failed",
    [SNK_ANSWER_UNCERTAIN] = "uncertain",
};

static sim_request *take_request(sim_world *world)
{
    uint32_t index;
    if (world->free_request_count > 0) {
        index = world->free_requests[--world->free_request_count];
    } else if (world->request_count < SIM_REQUESTS_MAX) {
        index = world->request_count++;
    } else {
        sim_violate(world, "SIM", "more than %d requests at once", SIM_REQUESTS_MAX);
        return NULL;
    }
    return &world->requests[index];
}

static uint32_t request_index(const sim_world *world, const sim_request *request)
{
    return (uint32_t)(request - world->requests);
}

static void unref_request(sim_world *world, sim_request *request)
{
    if (--request->references == 0) {
        request->used = false;
        world->free_requests[world->free_request_count++] = request_index(world, request);
    }
}

static void push_for_request(sim_world *world, sim_request *request, sim_event_kind kind, int64_t at_ns)
{
    request->references++;
    sim_push(world, at_ns,
             &(sim_event){ .kind = (uint8_t)kind,
                           .process = request->process,
                           .lock = request->lock,
                           .epoch = request->epoch,
                           .index = request_index(world, request) });
}

int64_t client_draw_way_ns(sim_world *world)
{
    const sim_plan *plan = &world->plan;
    if (world->phase == SIM_PHASE_FAULTS && sim_random_chance(&world->network, plan->late))
        return sim_random_octaves(&world->network, SNK_NS_PER_MS, plan->late_ns);
    return sim_random_range(&world->network, plan->latency_ns / 2, plan->latency_ns * 3 / 2);
}

bool client_is_lost(sim_world *world, uint32_t chance)
{
    return world->phase == SIM_PHASE_FAULTS && sim_random_chance(&world->network, chance);
}

static void set_answer(snk_answer *answer, snk_answer_kind kind, sneck_status status)
{
    answer->kind = kind;
    answer->token_first = 0;
    answer->token_last = 0;
    answer->look_after_ns = 0;
    answer->ticket = 0;
    answer->run = 0;
    answer->error.status = status;
    answer->error.cause = 0;
    memcpy(answer->error.message, "simulated", sizeof "simulated");
}

static void stop_travelling(sim_world *world, sim_request *request)
{
    if (!request->may_apply)
        return;
    request->may_apply = false;
    sim_find_claim(world, &request->send.claim)->travelling--;
}

static void send_request(sim_world *world, sim_process *process, uint32_t lock, const snk_send *send,
                         const sim_thread *thread, uint32_t chase)
{
    sim_request *request = take_request(world);
    sim_claim *claim = sim_find_claim(world, &send->claim);
    if (request == NULL || claim == NULL)
        return;
    request->used = true;
    request->waited_for = true;
    request->may_apply = true;
    request->applied = false;
    request->process = (uint8_t)sim_process_number(world, process);
    request->lock = (uint8_t)lock;
    request->thread = thread == NULL ? SIM_AGENTS_MAX : (uint8_t)(thread - process->threads);
    request->references = 0;
    request->epoch = process->epoch;
    request->generation = thread == NULL ? 0 : thread->generation;
    request->chase = chase;
    request->send = *send;
    claim->in_flight++;
    claim->travelling++;
    claim->sent_at_ns = world->now_ns;
    sim_record(world, send_names[send->ask], request->process, lock, (uint64_t)(claim - world->claims), send->chase);
    int64_t over_at_ns = sim_clock_true(&process->clock, sim_local_now(world, process) + world->plan.timeout_ns);
    push_for_request(world, request, SIM_EVENT_REQUEST_OVER, over_at_ns);
    int64_t way_ns = client_draw_way_ns(world);
    bool away = world->now_ns < world->outage_until_ns && sim_random_chance(&world->network, 500);
    bool lost = client_is_lost(world, world->plan.request_lost);
    if (away) {
        /* Refused: it is sure that it did not happen. */
        stop_travelling(world, request);
        set_answer(&request->answer, SNK_ANSWER_FAILED, SNECK_UNAVAILABLE);
        push_for_request(world, request, SIM_EVENT_REPLY_ARRIVES, world->now_ns + world->plan.latency_ns);
    } else if (lost) {
        stop_travelling(world, request);
    } else {
        push_for_request(world, request, SIM_EVENT_REQUEST_ARRIVES, world->now_ns + way_ns);
    }
}

void client_check(sim_world *world, sim_process *process, uint32_t lock)
{
    const snk_hold *hold = process->machines[lock].hold;
    snk_send send = {
        .ask = SNK_ASK_RENEW,
        .claim = hold->claim,
        .lease_ns = SNK_CHECK_LEASE_NS,
        .sent_at_ns = sim_local_now(world, process),
        .check = true,
    };
    send_request(world, process, lock, &send, NULL, SIM_CHASES_MAX);
}

void client_on_request_arrives(sim_world *world, const sim_event *event)
{
    sim_request *request = &world->requests[event->index];
    bool executes = request->may_apply && world->now_ns >= world->outage_until_ns;
    stop_travelling(world, request);
    if (executes && client_is_lost(world, world->plan.denied)) {
        set_answer(&request->answer, SNK_ANSWER_FAILED, SNECK_DENIED);
        push_for_request(world, request, SIM_EVENT_REPLY_ARRIVES, world->now_ns + client_draw_way_ns(world));
    } else if (executes) {
        sim_claim *claim = sim_find_claim(world, &request->send.claim);
        model_news news;
        oracle_store_before before;
        request->applied = true;
        request->applied_at_ns = world->now_ns;
        oracle_before_execution(world, request->lock, &before);
        if (request->send.ask == SNK_ASK_ACQUIRE && claim->released)
            sim_saw(world, SIM_PROBE_CHASE_OVERTOOK);
        model_store_execute(&world->store, request->lock, &request->send,
                            sim_clock_local(&world->store_clock, world->now_ns), &request->answer, &news);
        sim_record(world, answer_names[request->answer.kind], request->process, request->lock,
                   (uint64_t)(claim - world->claims), EXECUTED);
        oracle_after_execution(world, request->lock, &request->send, &request->answer, NULL, &before);
        replica_follow(world);
        messages_carry(world, &news);
        if (!client_is_lost(world, world->plan.reply_lost))
            push_for_request(world, request, SIM_EVENT_REPLY_ARRIVES, world->now_ns + client_draw_way_ns(world));
        oracle_check_lock(world, request->lock);
    }
    unref_request(world, request);
}

/* ---- Chases ---- */

static void push_chase(sim_world *world, const sim_chase *chase, int64_t local_ns)
{
    const sim_process *process = &world->processes[chase->process];
    sim_push(world, sim_clock_true(&process->clock, local_ns),
             &(sim_event){ .kind = SIM_EVENT_CHASE,
                           .process = chase->process,
                           .lock = chase->lock,
                           .epoch = chase->epoch,
                           .index = (uint32_t)(chase - world->chases) });
}

static void start_chase(sim_world *world, sim_process *process, uint32_t lock, const snk_send *send)
{
    uint32_t index = 0;
    while (index < world->chase_count && world->chases[index].used)
        index++;
    if (index == SIM_CHASES_MAX) {
        sim_violate(world, "SIM", "more than %d chases at once", SIM_CHASES_MAX);
        return;
    }
    if (index == world->chase_count)
        world->chase_count++;
    int64_t now_ns = sim_local_now(world, process);
    sim_chase *chase = &world->chases[index];
    *chase = (sim_chase){
        .used = true,
        .process = (uint8_t)sim_process_number(world, process),
        .lock = (uint8_t)lock,
        .epoch = process->epoch,
        .send = *send,
        .give_up_at_ns = now_ns + (send->lease_ns > SNK_TOMBSTONE_NS ? send->lease_ns : SNK_TOMBSTONE_NS),
    };
    sim_find_claim(world, &send->claim)->in_flight++;
    push_chase(world, chase, send->not_before_ns > now_ns ? send->not_before_ns : now_ns);
}

void client_on_chase(sim_world *world, const sim_event *event)
{
    const sim_chase *chase = &world->chases[event->index];
    if (chase->used)
        send_request(world, &world->processes[event->process], event->lock, &chase->send, NULL, event->index);
}

static void end_chase(sim_world *world, sim_chase *chase)
{
    chase->used = false;
    sim_find_claim(world, &chase->send.claim)->in_flight--;
    while (world->chase_count > 0 && !world->chases[world->chase_count - 1].used)
        world->chase_count--;
}

static void chase_answered(sim_world *world, sim_process *process, sim_chase *chase, const snk_answer *answer)
{
    bool answered = answer->kind != SNK_ANSWER_FAILED && answer->kind != SNK_ANSWER_UNCERTAIN;
    int64_t now_ns = sim_local_now(world, process);
    if (answer->kind == SNK_ANSWER_DONE)
        sim_saw(world, SIM_PROBE_CHASE_FOUND);
    if (answered || now_ns >= chase->give_up_at_ns) {
        end_chase(world, chase);
        return;
    }
    sim_saw(world, SIM_PROBE_CHASE_REPEATED);
    chase->failures++;
    push_chase(world, chase, now_ns + snk_backoff_ns(chase->failures, SNK_BACKOFF_NS_MAX));
}

bool client_is_busy(const sim_world *world, const sim_process *process)
{
    uint32_t number = sim_process_number(world, process);
    for (uint32_t i = 0; i < world->chase_count; i++)
        if (world->chases[i].used && world->chases[i].process == number)
            return true;
    for (uint32_t i = 0; i < world->request_count; i++)
        if (world->requests[i].used && world->requests[i].waited_for && world->requests[i].process == number)
            return true;
    return false;
}

/* ---- Answers ---- */

/* What the answer tells everybody in this process who waits for the lock. */
static void note_for_waiters(sim_process *process, uint32_t lock, snk_answer_kind kind)
{
    bool taken = kind == SNK_ANSWER_BUSY;
    bool failure = kind == SNK_ANSWER_FAILED || kind == SNK_ANSWER_UNCERTAIN || kind == SNK_ANSWER_GONE;
    for (uint32_t i = 0; i < SIM_AGENTS_MAX; i++) {
        sim_thread *thread = &process->threads[i];
        if (thread->state != SIM_THREAD_WAITING || thread->lock != lock)
            continue;
        thread->saw_other |= taken;
        thread->saw_failure |= failure;
    }
}

static void deliver(sim_world *world, sim_request *request, const snk_answer *answer)
{
    sim_process *process = &world->processes[request->process];
    sim_claim *claim = sim_find_claim(world, &request->send.claim);
    request->waited_for = false;
    claim->in_flight--;
    sim_record(world, answer_names[answer->kind], request->process, request->lock, (uint64_t)(claim - world->claims),
               ANSWERED);
    if (request->chase != SIM_CHASES_MAX) {
        chase_answered(world, process, &world->chases[request->chase], answer);
        return;
    }
    note_for_waiters(process, request->lock, answer->kind);
    oracle_told(world, request, answer);
    snk_event event = { .kind = SNK_EVENT_REPLY, .send = &request->send, .answer = answer };
    snk_actions actions;
    client_step(world, process, request->lock, &event, &actions);
    if (request->thread == SIM_AGENTS_MAX)
        return;
    sim_thread *thread = &process->threads[request->thread];
    if (thread->state == SIM_THREAD_PENDING && thread->generation == request->generation)
        agent_answered(world, process, thread, actions.release.status);
}

void client_on_reply_arrives(sim_world *world, const sim_event *event)
{
    sim_request *request = &world->requests[event->index];
    if (request->waited_for)
        deliver(world, request, &request->answer);
    unref_request(world, request);
}

void client_on_request_over(sim_world *world, const sim_event *event)
{
    sim_request *request = &world->requests[event->index];
    if (request->waited_for) {
        snk_answer answer;
        set_answer(&answer, SNK_ANSWER_UNCERTAIN, SNECK_UNKNOWN);
        deliver(world, request, &answer);
    }
    unref_request(world, request);
}

void client_reset(sim_world *world, sim_process *process)
{
    uint32_t number = sim_process_number(world, process);
    uint32_t count = world->request_count; /* those that answers lead to are on the new connection */
    for (uint32_t i = 0; i < count; i++) {
        sim_request *request = &world->requests[i];
        if (!request->used || !request->waited_for || request->process != number)
            continue;
        snk_answer answer;
        set_answer(&answer, SNK_ANSWER_UNCERTAIN, SNECK_UNKNOWN);
        if (!request->applied && sim_random_chance(&world->faults, 500)) {
            bool unsent = sim_random_chance(&world->faults, 300) || !request->may_apply;
            stop_travelling(world, request);
            if (unsent)
                set_answer(&answer, SNK_ANSWER_FAILED, SNECK_UNAVAILABLE);
        }
        deliver(world, request, &answer);
    }
}

void client_drop_all(sim_world *world, sim_process *process)
{
    uint32_t number = sim_process_number(world, process);
    for (uint32_t i = 0; i < world->request_count; i++) {
        sim_request *request = &world->requests[i];
        if (!request->used || request->process != number)
            continue;
        request->waited_for = false;
        if (request->may_apply && sim_random_chance(&world->faults, 500))
            stop_travelling(world, request);
    }
    for (uint32_t i = 0; i < world->chase_count; i++)
        if (world->chases[i].process == number)
            world->chases[i].used = false;
    for (uint32_t i = 0; i < world->claim_count; i++)
        if (world->claims[i].process == number && world->claims[i].epoch == process->epoch)
            world->claims[i].forgotten = true;
}

/* ---- Steps and timers ---- */

static void arm_timer(sim_world *world, sim_process *process, uint32_t lock)
{
    const snk_machine *machine = &process->machines[lock];
    int64_t due_ns = machine->timer_at_ns;
    int64_t deadline_ns = snk_deadline_peek(&machine->deadline);
    if (machine->hold != NULL && deadline_ns > 0 && deadline_ns < due_ns)
        due_ns = deadline_ns;
    if (due_ns == SNK_NEVER_NS)
        return;
    int64_t at_ns = sim_clock_true(&process->clock, due_ns);
    if (at_ns < world->now_ns)
        at_ns = world->now_ns;
    if (at_ns >= process->armed_at_ns[lock])
        return;
    at_ns += sim_random_range(&world->network, 1, TIMER_LATENESS_NS);
    if (at_ns >= process->armed_at_ns[lock])
        return;
    process->armed_at_ns[lock] = at_ns;
    process->timer_generation[lock]++;
    sim_push(world, at_ns,
             &(sim_event){ .kind = SIM_EVENT_TIMER,
                           .process = (uint8_t)sim_process_number(world, process),
                           .lock = (uint8_t)lock,
                           .epoch = process->epoch,
                           .generation = process->timer_generation[lock] });
}

void client_on_timer(sim_world *world, const sim_event *event)
{
    sim_process *process = &world->processes[event->process];
    snk_machine *machine = &process->machines[event->lock];
    if (event->generation != process->timer_generation[event->lock])
        return;
    process->armed_at_ns[event->lock] = SNK_NEVER_NS;
    int64_t now_ns = sim_local_now(world, process);
    int64_t deadline_ns = snk_deadline_peek(&machine->deadline);
    bool due = machine->timer_at_ns <= now_ns || (machine->hold != NULL && deadline_ns <= now_ns);
    if (!due) {
        arm_timer(world, process, event->lock);
        return;
    }
    snk_actions actions;
    do {
        snk_event step = { .kind = SNK_EVENT_TIMER };
        client_step(world, process, event->lock, &step, &actions);
    } while (actions.more && !world->trail.failed);
}

static void free_holds(sim_world *world, snk_hold *freed)
{
    while (freed != NULL) {
        sim_holding *holding = SNK_CONTAINER(freed, sim_holding, hold);
        freed = freed->next_freed;
        if (holding->state != SIM_HOLDING_TAKEN)
            sim_violate(world, "I15", "memory of a hold came back that the machine did not have");
        holding->state = SIM_HOLDING_FREE;
    }
}

static void step_as(sim_world *world, sim_process *process, uint32_t lock, sim_thread *thread, snk_event *event,
                    snk_actions *actions)
{
    oracle_before before;
    event->now_ns = sim_local_now(world, process);
    oracle_before_step(world, process, lock, event, &before);
    snk_machine_step(&process->machines[lock], event, actions);
    oracle_after_step(world, process, lock, event, actions, &before);
    for (uint32_t i = 0; i < actions->send_count && !world->trail.failed; i++) {
        const snk_send *send = &actions->sends[i];
        bool is_result =
            thread != NULL && actions->pending && !send->chase && (send->was_held || event->kind == SNK_EVENT_EXTEND);
        if (send->chase)
            start_chase(world, process, lock, send);
        else
            send_request(world, process, lock, send, is_result ? thread : NULL, SIM_CHASES_MAX);
    }
    for (snk_waiter *waiter = actions->woken; waiter != NULL; waiter = waiter->next_woken)
        agent_wake(world, process, SNK_CONTAINER(waiter, sim_thread, waiter), false);
    free_holds(world, actions->freed);
    watchdog_after_step(world, process, lock, actions, &before);
    arm_timer(world, process, lock);
    faults_after_step(world, process, lock);
    oracle_check_lock(world, lock);
}

void client_step(sim_world *world, sim_process *process, uint32_t lock, snk_event *event, snk_actions *actions)
{
    step_as(world, process, lock, NULL, event, actions);
}

void client_step_for(sim_world *world, sim_process *process, sim_thread *thread, snk_event *event, snk_actions *actions)
{
    step_as(world, process, thread->lock, thread, event, actions);
}
