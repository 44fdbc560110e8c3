/* What the client and the quorum store are to the engine: requests, answers, timers, chases, messages. */
#include <string.h>

#include "base/clock.h"
#include "shell.h"

/* ---- Answers to the engine ---- */

snk_answer qs_make_answer(snk_answer_kind kind, sneck_status status)
{
    snk_answer answer = { .kind = kind };
    answer.error.status = status;
    memcpy(answer.error.message, "simulated", sizeof "simulated");
    return answer;
}

static void push_chase(qs_world *world, const qs_chase *chase, int64_t local_ns)
{
    qs_push(world, sim_clock_true(&world->processes[chase->process].clock, local_ns),
            &(sim_event){ .kind = QS_EVENT_CHASE,
                          .process = chase->process,
                          .epoch = chase->epoch,
                          .index = (uint32_t)(chase - world->chases) });
}

static void chase_answered(qs_world *world, qs_process *process, qs_chase *chase, const snk_answer *answer)
{
    if (answer->kind != SNK_ANSWER_FAILED && answer->kind != SNK_ANSWER_UNCERTAIN) {
        chase->used = false;
        return;
    }
    chase->failures++;
    push_chase(world, chase, qs_local(world, process) + snk_backoff_ns(chase->failures, SNK_BACKOFF_NS_MAX));
}

void qs_answer(qs_world *world, qs_operation *operation, const snk_answer *given)
{
    static const char *const names[] = { "held", "queued", "busy", "gone", "done", "failed", "uncertain" };
    qs_process *process = qs_process_of(world, operation);
    operation->answered = true;
    qs_record(world, names[given->kind], operation->process, operation->send.ask, given->token_first);
    if (operation->chase != QS_CHASES_MAX) {
        chase_answered(world, process, &world->chases[operation->chase], given);
        return;
    }
    snk_send send = operation->send;
    uint32_t thread_number = operation->thread;
    uint32_t generation = operation->generation;
    snk_event event = { .kind = SNK_EVENT_REPLY, .send = &send, .answer = given };
    snk_actions actions;
    qs_step(world, process, NULL, &event, &actions);
    if (thread_number == QS_THREADS_MAX)
        return;
    qs_thread *thread = &process->threads[thread_number];
    if (thread->state == QS_THREAD_PENDING && thread->generation == generation)
        qs_released(world, process, thread);
}

void qs_settle(qs_world *world, qs_request *request, snk_node_says outcome)
{
    snk_node_says says = outcome == SNK_NODE_OPEN ? request->reply.says : outcome;
    if (request->undo != QS_UNDOS_MAX) {
        qs_undo_settled(world, &world->undos[request->undo], says);
        return;
    }
    if (request->operation == QS_OPERATIONS_MAX) {
        qs_settle_adoption(world, request, says);
        return;
    }
    qs_operation *operation = &world->operations[request->operation];
    operation->open--;
    if (operation->votes)
        qs_settle_vote(world, operation, request, outcome);
    else
        qs_settle_question(world, operation, request, says);
    if (operation->open == 0 && operation->answered)
        operation->used = false;
}

/* ---- The engine's requests ---- */

static qs_operation *take_operation(qs_world *world)
{
    for (uint32_t i = 0; i < QS_OPERATIONS_MAX; i++)
        if (!world->operations[i].used)
            return &world->operations[i];
    qs_violate(world, "SIM", "more than %d operations at once", QS_OPERATIONS_MAX);
    return NULL;
}

/* Answered without asking anybody; but not in the same step of the machine. */
static void answer_later(qs_world *world, qs_operation *operation, snk_answer_kind kind)
{
    operation->answer = qs_make_answer(kind, SNECK_OK);
    operation->open++;
    qs_push(world, world->now_ns + 1,
            &(sim_event){ .kind = QS_EVENT_ANSWER,
                          .process = operation->process,
                          .epoch = operation->epoch,
                          .index = qs_operation_number(world, operation) });
}

void qs_on_answer(qs_world *world, const sim_event *event)
{
    qs_operation *operation = &world->operations[event->index];
    operation->open--;
    qs_answer(world, operation, &operation->answer);
    operation->used = operation->open > 0;
}

static void renew(qs_world *world, qs_operation *operation, qs_claim *claim)
{
    if (claim->state == QS_CLAIM_WAITING) {
        qs_begin_ballot(world, operation, claim);
        return;
    }
    if (claim->state != QS_CLAIM_HELD) {
        answer_later(world, operation, SNK_ANSWER_GONE);
        return;
    }
    qs_question question = {
        .ask = QS_RENEW,
        .claim = claim->id,
        .attempt = claim->held_by,
        .token = claim->token,
        .lease_ns = operation->send.lease_ns,
    };
    qs_ask_all(world, operation, &question, 0);
}

static void release(qs_world *world, qs_operation *operation, qs_claim *claim)
{
    bool waiting = claim->state == QS_CLAIM_WAITING;
    uint32_t bury = operation->send.unanswered ? UINT32_MAX : claim->unanswered;
    claim->state = QS_CLAIM_GONE;
    if (waiting) {
        answer_later(world, operation, SNK_ANSWER_DONE);
        return;
    }
    qs_question question = {
        .ask = QS_RELEASE,
        .claim = claim->id,
        .attempt = QS_ALL_TRIES,
        .lease_ns = operation->send.lease_ns,
        .bury_ns = qs_tombstone_ns(&operation->send),
    };
    qs_ask_all(world, operation, &question, bury);
}

static void start(qs_world *world, qs_process *process, const snk_send *send, const qs_thread *thread, uint32_t chase)
{
    qs_operation *operation = take_operation(world);
    qs_claim *claim = qs_find_claim(world, &send->claim);
    if (operation == NULL || claim == NULL)
        return;
    *operation = (qs_operation){
        .used = true,
        .process = qs_number(world, process),
        .thread = thread == NULL ? QS_THREADS_MAX : (uint8_t)(thread - process->threads),
        .epoch = process->epoch,
        .generation = thread == NULL ? 0 : thread->generation,
        .chase = chase,
        .send = *send,
    };
    switch (send->ask) {
    case SNK_ASK_ACQUIRE:
        claim->state = QS_CLAIM_ACQUIRING;
        qs_begin_ballot(world, operation, claim);
        break;
    case SNK_ASK_RENEW:
        renew(world, operation, claim);
        break;
    case SNK_ASK_RELEASE:
        release(world, operation, claim);
        break;
    }
}

static void start_chase(qs_world *world, qs_process *process, const snk_send *send)
{
    uint32_t index = 0;
    while (index < QS_CHASES_MAX && world->chases[index].used)
        index++;
    if (index == QS_CHASES_MAX) {
        qs_violate(world, "SIM", "more than %d chases at once", QS_CHASES_MAX);
        return;
    }
    int64_t now_ns = qs_local(world, process);
    world->chases[index] =
        (qs_chase){ .used = true, .process = qs_number(world, process), .epoch = process->epoch, .send = *send };
    push_chase(world, &world->chases[index], send->not_before_ns > now_ns ? send->not_before_ns : now_ns);
}

void qs_on_chase(qs_world *world, const sim_event *event)
{
    const qs_chase *chase = &world->chases[event->index];
    if (chase->used)
        start(world, &world->processes[event->process], &chase->send, NULL, event->index);
}

bool qs_is_busy(const qs_world *world, const qs_process *process)
{
    uint8_t number = qs_number(world, process);
    for (uint32_t i = 0; i < QS_CHASES_MAX; i++)
        if (world->chases[i].used && world->chases[i].process == number)
            return true;
    for (uint32_t i = 0; i < QS_OPERATIONS_MAX; i++)
        if (world->operations[i].used && world->operations[i].process == number)
            return true;
    return false;
}

/* ---- Messages ---- */

/* A majority of the nodes says that votes were given back: worth another try. Anything less is waited out. */
void qs_on_message(qs_world *world, const sim_event *event)
{
    qs_process *process = &world->processes[event->process];
    for (uint32_t i = 0; i < world->plan.thread_count && process->up; i++) {
        const qs_thread *thread = &process->threads[i];
        if (thread->state != QS_THREAD_WAITING || thread->waiter.decided || thread->waiter.seek.state == SNK_SEEK_NONE)
            continue;
        qs_claim *claim = qs_find_claim(world, &thread->waiter.seek.claim);
        if (claim->state != QS_CLAIM_WAITING)
            continue;
        claim->heard |= UINT32_C(1) << event->index;
        if ((uint32_t)__builtin_popcount(claim->heard) != snk_quorum_majority(&world->quorum))
            continue;
        qs_saw(world, QS_PROBE_WOKEN);
        snk_event step = { .kind = SNK_EVENT_NEWS, .claim = claim->id };
        snk_actions actions;
        qs_step(world, process, NULL, &step, &actions);
    }
}

/* ---- Steps and timers ---- */

static void arm_timer(qs_world *world, qs_process *process)
{
    const snk_machine *machine = &process->machine;
    int64_t due_ns = machine->timer_at_ns;
    int64_t deadline_ns = snk_deadline_peek(&machine->deadline);
    if (machine->hold != NULL && deadline_ns > 0 && deadline_ns < due_ns)
        due_ns = deadline_ns;
    if (due_ns == SNK_NEVER_NS)
        return;
    int64_t at_ns = sim_clock_true(&process->clock, due_ns);
    if (at_ns < world->now_ns)
        at_ns = world->now_ns;
    at_ns += sim_random_range(&world->network, 1, 50 * SNK_NS_PER_US);
    if (at_ns >= process->armed_at_ns)
        return;
    process->armed_at_ns = at_ns;
    process->timer_generation++;
    qs_push(world, at_ns,
            &(sim_event){ .kind = QS_EVENT_TIMER,
                          .process = qs_number(world, process),
                          .epoch = process->epoch,
                          .generation = process->timer_generation });
}

void qs_on_timer(qs_world *world, const sim_event *event)
{
    qs_process *process = &world->processes[event->process];
    if (event->generation != process->timer_generation)
        return;
    process->armed_at_ns = SNK_NEVER_NS;
    snk_actions actions;
    do {
        snk_event step = { .kind = SNK_EVENT_TIMER };
        qs_step(world, process, NULL, &step, &actions);
    } while (actions.more && !world->trail.failed);
}

static void free_holds(snk_hold *freed)
{
    while (freed != NULL) {
        qs_holding *holding = SNK_CONTAINER(freed, qs_holding, hold);
        freed = freed->next_freed;
        holding->used = false;
    }
}

void qs_step(qs_world *world, qs_process *process, qs_thread *thread, snk_event *event, snk_actions *actions)
{
    event->now_ns = qs_local(world, process);
    snk_machine_step(&process->machine, event, actions);
    if (!snk_machine_is_sound(&process->machine))
        qs_violate(world, "SOUND", "the machine is not sound after a step");
    for (uint32_t i = 0; i < actions->note_count; i++)
        if (actions->notes[i].kind == SNECK_EVENT_LOST)
            qs_saw(world, QS_PROBE_LOST);
    for (uint32_t i = 0; i < world->plan.thread_count; i++)
        if (process->threads[i].state == QS_THREAD_WAITING && process->threads[i].waiter.decided)
            qs_check_decision(world, process, &process->threads[i]);
    for (uint32_t i = 0; i < actions->send_count && !world->trail.failed; i++) {
        const snk_send *send = &actions->sends[i];
        bool is_result = thread != NULL && actions->pending && send->was_held;
        if (send->chase)
            start_chase(world, process, send);
        else
            start(world, process, send, is_result ? thread : NULL, QS_CHASES_MAX);
    }
    for (snk_waiter *waiter = actions->woken; waiter != NULL; waiter = waiter->next_woken)
        qs_wake(world, process, SNK_CONTAINER(waiter, qs_thread, waiter));
    free_holds(actions->freed);
    arm_timer(world, process);
}
