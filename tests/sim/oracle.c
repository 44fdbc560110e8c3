/* The clients' side: what machines decide, and when. */
#include "oracle.h"

#include "base/clock.h"

/* ---- Who has it ---- */

static bool store_holder_is_live(const sim_world *world, uint32_t lock)
{
    const model_lock *model = &world->store.data.locks[lock];
    return model->held && model->holder.expires_at_ns > sim_clock_local(&world->store_clock, world->now_ns);
}

/* A claim of this process waits in the store, as far as the process knows: so somebody has the lock. */
static bool is_queued(const sim_process *process, uint32_t lock)
{
    for (uint32_t i = 0; i < SIM_AGENTS_MAX; i++) {
        const sim_thread *thread = &process->threads[i];
        const snk_seek *seek = &thread->waiter.seek;
        if (thread->state == SIM_THREAD_WAITING && thread->lock == lock && !thread->waiter.decided &&
            (seek->state == SNK_SEEK_QUEUED || seek->state == SNK_SEEK_ASKING) && seek->failures == 0)
            return true;
    }
    return false;
}

/* What those of the same client that still wait for the lock know: that somebody is before this one, and how it fares. */
typedef struct sim_company {
    bool ahead;
    bool failing;
} sim_company;

static sim_company company_of(const snk_machine *machine, const snk_waiter *waiter)
{
    sim_company company = { .ahead = machine->releasing > 0 };
    for (snk_link *link = snk_list_first(&machine->waiters); link != NULL;
         link = snk_list_next(&machine->waiters, link)) {
        const snk_waiter *other = SNK_CONTAINER(link, snk_waiter, link);
        if (other == waiter || other->terms.fair || other->once || waiter->terms.fair)
            continue;
        company.ahead = true;
        company.failing |=
            other->seek.state != SNK_SEEK_NONE && (other->seek.failures > 0 || other->seek.state == SNK_SEEK_UNSURE ||
                                                   other->seek.state == SNK_SEEK_UNSURE_ASKING);
    }
    return company;
}

/* Everybody who waits for this lock and sees now that another one has it. */
static void note_others(sim_world *world, uint32_t lock)
{
    const model_lock *model = &world->store.data.locks[lock];
    bool live = store_holder_is_live(world, lock);
    for (uint32_t i = 0; i < world->plan.process_count; i++) {
        sim_process *process = &world->processes[i];
        const snk_machine *machine = &process->machines[lock];
        const snk_hold *hold = machine->hold;
        if (snk_deadline_peek(&machine->deadline) <= sim_local_now(world, process))
            hold = NULL;
        bool queued = is_queued(process, lock);
        for (uint32_t j = 0; j < world->plan.thread_count; j++) {
            sim_thread *thread = &process->threads[j];
            if (thread->state != SIM_THREAD_WAITING || thread->lock != lock)
                continue;
            thread->told_other |= queued || hold != NULL;
            thread->was_behind |= company_of(machine, &thread->waiter).ahead;
            thread->saw_other |= live && !snk_id_equal(&model->holder.claim, &thread->waiter.seek.claim);
        }
    }
}

/* With older data a claim that had been granted may wait again. Whoever hears that must not begin with the old grant. */
void oracle_told(sim_world *world, const sim_request *request, const snk_answer *answer)
{
    const snk_hold *hold = world->processes[request->process].machines[request->lock].hold;
    bool believes = hold != NULL && snk_id_equal(&hold->claim, &request->send.claim);
    sim_claim *claim = sim_find_claim(world, &request->send.claim);
    if (answer->kind != SNK_ANSWER_QUEUED)
        return;
    if (believes && request->send.sent_at_ns <= hold->granted_at_ns)
        sim_saw(world, SIM_PROBE_QUEUED_OVERTAKEN);
    else if (request->applied_at_ns > claim->broken_at_ns)
        claim->broken = false;
}

void oracle_before_step(sim_world *world, const sim_process *process, uint32_t lock, const snk_event *event,
                        oracle_before *before_out)
{
    const snk_machine *machine = &process->machines[lock];
    note_others(world, lock);
    before_out->now_ns = event->now_ns;
    before_out->had_hold = machine->hold != NULL;
    if (before_out->had_hold)
        before_out->hold = *machine->hold;
    before_out->deadline_ns = snk_deadline_peek(&machine->deadline);
    before_out->state = machine->state;
    for (uint32_t i = 0; i < SIM_AGENTS_MAX; i++)
        before_out->seeks[i] = process->threads[i].waiter.seek;
}

/* ---- Loss ---- */

static bool is_same_hold(const snk_machine *machine, const oracle_before *before)
{
    return machine->hold != NULL && snk_id_equal(&machine->hold->claim, &before->hold.claim);
}

static bool has_note(const snk_actions *actions, sneck_event_kind kind)
{
    for (uint32_t i = 0; i < actions->note_count; i++)
        if (actions->notes[i].kind == kind)
            return true;
    return false;
}

/* A hold that the machine had was lost; not one whose release found that out. */
static bool has_lost_hold(const snk_actions *actions)
{
    for (uint32_t i = 0; i < actions->note_count; i++)
        if (actions->notes[i].kind == SNECK_EVENT_LOST && actions->notes[i].hold != NULL)
            return true;
    return false;
}

static const snk_hold *find_lost(const snk_machine *machine, const snk_id *claim)
{
    for (snk_link *link = snk_list_first(&machine->lost); link != NULL; link = snk_list_next(&machine->lost, link)) {
        const snk_hold *hold = SNK_CONTAINER(link, snk_hold, link);
        if (snk_id_equal(&hold->claim, claim))
            return hold;
    }
    return NULL;
}

/* A clear answer is loss at once; a failed renewal, a cut connection or a message alone is not. */
static bool is_clear_answer(const snk_event *event, const oracle_before *before)
{
    if (event->kind != SNK_EVENT_REPLY)
        return event->kind == SNK_EVENT_REVOKE;
    bool own = snk_id_equal(&event->send->claim, &before->hold.claim);
    snk_answer_kind kind = event->answer->kind;
    bool failed = kind == SNK_ANSWER_FAILED || kind == SNK_ANSWER_UNCERTAIN;
    const snk_care *care = &before->hold.terms.care;
    if (own && failed && !event->send->check && care->threshold == 1 && care->recovery == SNECK_RECOVER_RELEASE)
        return true; /* that is what was asked for */
    if (own && event->send->check && kind == SNK_ANSWER_HELD)
        return event->answer->token_first != before->hold.token_first; /* of another grant than ours */
    /* That it waits is said of a claim that holds the lock if it was asked before the grant, or the grant was forgotten. */
    bool asked_after = event->send->sent_at_ns > before->hold.granted_at_ns;
    if (own)
        return event->send->ask == SNK_ASK_RENEW &&
               (kind == SNK_ANSWER_GONE || (kind == SNK_ANSWER_QUEUED && asked_after));
    return kind == SNK_ANSWER_HELD; /* another claim has the lock, so this one was ended by force */
}

static void check_loss(sim_world *world, const sim_process *process, uint32_t lock, const snk_event *event,
                       const snk_actions *actions, const oracle_before *before)
{
    const snk_machine *machine = &process->machines[lock];
    if (!before->had_hold)
        return;
    bool over = before->deadline_ns <= before->now_ns; /* also when a look has marked it LOST already */
    bool owned = before->hold.owner != 0;
    bool same = is_same_hold(machine, before);
    bool noted = has_lost_hold(actions);
    const snk_hold *lost = find_lost(machine, &before->hold.claim);
    if (over && same)
        sim_violate(world, "I4", "the deadline had passed, and the hold went on");
    if (over && owned && !noted)
        sim_violate(world, "I4", "the deadline had passed, and nobody was told");
    if (over && owned && lost == NULL && event->kind != SNK_EVENT_RELEASE && event->kind != SNK_EVENT_OWNER_GONE)
        sim_violate(world, "I4", "a lost hold left no debt");
    if (noted && !over && !is_clear_answer(event, before))
        sim_violate(world, "S1", "lost before the deadline, without a clear answer");
    if (!over && !same && lost == NULL && owned && event->kind != SNK_EVENT_RELEASE && event->kind != SNK_EVENT_CLOSE &&
        event->kind != SNK_EVENT_OWNER_GONE)
        sim_violate(world, "I4", "the hold went away and nobody released it");
    if (!over && same && snk_deadline_peek(&machine->deadline) < before->deadline_ns)
        sim_violate(world, "S2", "the deadline came nearer");
    if (!over && event->kind == SNK_EVENT_REPLY && snk_id_equal(&event->send->claim, &before->hold.claim) &&
        event->send->ask == SNK_ASK_RENEW && event->answer->kind == SNK_ANSWER_GONE && same)
        sim_violate(world, "S1", "the store has no such claim, and the hold goes on");
    if (!noted && lost == NULL && !over)
        return;
    sim_claim *claim = sim_find_claim(world, &before->hold.claim);
    if (!before->hold.terms.forget_on_loss)
        claim->forgotten = true;
    if (over || noted)
        sim_saw(world, over ? SIM_PROBE_LOST_BY_TIME : SIM_PROBE_LOST_BY_ANSWER);
    if (over && !owned)
        sim_saw(world, SIM_PROBE_LOST_WHILE_IDLE);
    if (lost != NULL && lost->levels > 1)
        sim_saw(world, SIM_PROBE_LOST_NESTED);
}

/* How late somebody who runs may notice: a timer, and what else happens at the end of a pause. */
#define LATENESS_NS (300 * SNK_NS_PER_US)

void oracle_check_deadlines(sim_world *world)
{
    for (uint32_t i = 0; i < world->plan.process_count; i++) {
        const sim_process *process = &world->processes[i];
        for (uint32_t lock = 0; lock < world->plan.lock_count && process->up; lock++) {
            const snk_machine *machine = &process->machines[lock];
            int64_t deadline_ns = snk_deadline_peek(&machine->deadline);
            if (machine->hold == NULL || deadline_ns <= 0)
                continue;
            int64_t runs_at_ns = sim_clock_true(&process->clock, deadline_ns);
            if (runs_at_ns < process->paused_until_ns)
                runs_at_ns = process->paused_until_ns;
            if (world->now_ns > runs_at_ns + LATENESS_NS)
                sim_violate(world, "I4", "a deadline has passed, and nobody noticed though the process runs");
        }
    }
}

/* ---- Decisions ---- */

static void check_first_level(sim_world *world, const sim_process *process, sim_thread *thread)
{
    const snk_machine *machine = &process->machines[thread->lock];
    sim_ledger *ledger = &world->ledgers[thread->lock];
    uint64_t token = thread->waiter.token;
    if (machine->closing)
        sim_violate(world, "I15", "granted after close");
    if (snk_deadline_peek(&machine->deadline) <= sim_local_now(world, process))
        sim_violate(world, "I4", "granted after its deadline");
    if (machine->hold == NULL || machine->hold->owner != thread->owner || machine->hold->token != token) {
        sim_violate(world, "I10", "granted, and the machine has no hold for it");
        return;
    }
    /*
     * A hold that was broken by force is handed on inside its process until that hears of it, at most for the time of
     * the hand-off budget. Its tokens are refused by a resource that has seen a later one, and that is all.
     */
    const sim_claim *claim = sim_find_claim(world, &machine->hold->claim);
    if (token <= thread->floor_token && !claim->broken)
        sim_violate(world, "I1", "token %llu, and %llu was returned before this acquire began",
                    (unsigned long long)token, (unsigned long long)thread->floor_token);
    for (uint32_t i = 0; i < ledger->token_count; i++)
        if (ledger->tokens[i] == token)
            sim_violate(world, "I1", "token %llu given to two holds", (unsigned long long)token);
    if (ledger->token_count < SIM_TOKENS_MAX)
        ledger->tokens[ledger->token_count++] = token;
    if (token > ledger->highest_token)
        ledger->highest_token = token;
    if (thread->waiter.terms.fair)
        sim_saw(world, SIM_PROBE_FAIR_GRANT);
    if (thread->saw_failure)
        sim_saw(world, SIM_PROBE_OUTAGE_WAITED_OUT);
}

static uint64_t token_of_owner(const sim_process *process, const sim_thread *thread)
{
    for (uint32_t i = 0; i < SIM_THREADS_MAX; i++) {
        const sim_thread *other = &process->threads[i];
        if (other->owner == thread->owner && other->lock == thread->lock && other->levels > 0)
            return other->token;
    }
    return 0;
}

static void check_granted(sim_world *world, const sim_process *process, sim_thread *thread)
{
    uint32_t levels = sim_owner_levels(process, thread);
    if (levels == 0)
        check_first_level(world, process, thread);
    else if (thread->waiter.token != token_of_owner(process, thread) || levels >= SNK_HOLDS_MAX ||
             !thread->waiter.reentrant)
        sim_violate(world, "I10", "re-entry at level %u", levels);
    if (levels > thread->levels)
        sim_saw(world, SIM_PROBE_SHARED_OWNER);
    thread->token = thread->waiter.token;
    thread->levels++;
}

/* Is it still open whether the claim of this seek has the lock, or will have it? */
static bool is_open(sim_world *world, const snk_seek *seek)
{
    if (seek->state == SNK_SEEK_NONE || seek->state == SNK_SEEK_BACKING_OFF)
        return false;
    const sim_claim *claim = sim_find_claim(world, &seek->claim);
    return claim != NULL && claim->acquire_sent && !claim->acquire_answered;
}

static void check_refused(sim_world *world, const sim_process *process, const sim_thread *thread,
                          const snk_seek *seek_before)
{
    const snk_machine *machine = &process->machines[thread->lock];
    sneck_status status = thread->waiter.result.status;
    bool open = is_open(world, seek_before);
    bool other = thread->saw_other || thread->told_other;
    sim_company company = company_of(machine, &thread->waiter);
    bool sought = seek_before->state != SNK_SEEK_NONE;
    bool honest = false;
    uint32_t levels = sim_owner_levels(process, thread);
    switch (status) {
    case SNECK_BUSY:
        sim_saw(world, SIM_PROBE_BUSY);
        honest = other && !open && thread->waiter.once;
        break;
    case SNECK_TIMEOUT:
        sim_saw(world, SIM_PROBE_TIMED_OUT);
        honest =
            (other || (thread->was_behind && !sought)) && !open && !thread->waiter.once && (sought || !company.failing);
        break;
    case SNECK_CANCELED:
        sim_saw(world, SIM_PROBE_INTERRUPTED);
        honest = thread->waiter.interrupted || machine->closing;
        break;
    case SNECK_UNAVAILABLE:
        sim_saw(world, SIM_PROBE_UNAVAILABLE);
        honest = (thread->saw_failure || seek_before->failures > 0 || company.failing) && !open;
        break;
    case SNECK_DENIED:
        sim_saw(world, SIM_PROBE_DENIED);
        honest = thread->saw_failure && !open;
        break;
    case SNECK_UNKNOWN:
        sim_saw(world, SIM_PROBE_UNKNOWN);
        honest = open;
        break;
    case SNECK_LOST:
        sim_saw(world, SIM_PROBE_ACQUIRE_LOST);
        honest = levels > 0;
        break;
    case SNECK_LIMIT:
        honest = levels == SNK_HOLDS_MAX;
        break;
    case SNECK_DEADLOCK:
        sim_saw(world, SIM_PROBE_DEADLOCK);
        honest = levels > 0 && !thread->waiter.reentrant;
        break;
    default:
        break;
    }
    if (!honest)
        sim_violate(world, "I16", "acquire says %s: another had it %d, a request failed %d, open %d, levels %u",
                    sneck_status_name(status), other, thread->saw_failure, open, levels);
    if (thread->waiter.hold == NULL)
        sim_violate(world, "I15", "acquire ended without the lock, and the memory for the hold is gone");
}

static void check_decision(sim_world *world, sim_process *process, sim_thread *thread, const oracle_before *before)
{
    const snk_waiter *waiter = &thread->waiter;
    if (thread->noticed)
        return;
    thread->noticed = true;
    sim_record(world, sneck_status_name(waiter->result.status), sim_process_number(world, process), thread->lock,
               (uint64_t)(thread - process->threads), waiter->token);
    /* S3: after loss nothing but LOST, until the outermost level is released. */
    bool lost = sim_owner_levels(process, thread) > 0 &&
                snk_machine_levels(&process->machines[thread->lock], thread->owner, before->now_ns) == 0;
    bool says_lost = waiter->result.status == SNECK_LOST;
    if ((says_lost && !lost) || (lost && !says_lost && (thread->owed || waiter->result.status == SNECK_OK)))
        sim_violate(world, "S3", "acquire with levels of a lost hold %d: %s", lost,
                    sneck_status_name(waiter->result.status));
    if (waiter->result.status == SNECK_OK) {
        if (waiter->hold == NULL)
            SNK_CONTAINER(process->machines[thread->lock].hold, sim_holding, hold)->state = SIM_HOLDING_TAKEN;
        check_granted(world, process, thread);
    } else {
        check_refused(world, process, thread, &before->seeks[thread - process->threads]);
    }
}

/*
 * What the watchdog acquired again is nobody's, until the owner that lost it has released its last level and asks; S3.
 */
static void check_reserve(sim_world *world, sim_process *process, uint32_t lock)
{
    sim_thread *rescuer = &process->threads[SIM_THREADS_MAX + lock];
    snk_machine *machine = &process->machines[lock];
    if (rescuer->state != SIM_THREAD_WAITING || !rescuer->waiter.decided || rescuer->noticed)
        return;
    rescuer->noticed = true;
    if (rescuer->waiter.result.status != SNECK_OK)
        return;
    sim_saw(world, SIM_PROBE_RESERVED);
    SNK_CONTAINER(machine->hold, sim_holding, hold)->state = SIM_HOLDING_TAKEN;
    if (machine->hold->reserved_for != rescuer->owner || machine->hold->owner != 0)
        sim_violate(world, "S3", "what was acquired again became somebody's without being asked for");
}

/* ---- Steps ---- */

static const char *const step_names[] = {
    [SNK_EVENT_ASK] = "step ask",
    [SNK_EVENT_RESUME] = "step resume",
    [SNK_EVENT_GIVE_UP] = "step give up",
    [SNK_EVENT_RELEASE] = "step release",
    [SNK_EVENT_EXTEND] = "step extend",
    [SNK_EVENT_REPLY] = "step reply",
    [SNK_EVENT_NEWS] = "step news",
    [SNK_EVENT_TIMER] = "step timer",
    [SNK_EVENT_INTERRUPT] = "step interrupt",
    [SNK_EVENT_ABANDONED] = "step abandoned",
    [SNK_EVENT_REVOKE] = "step revoke",
    [SNK_EVENT_OWNER_GONE] = "step dead",
    [SNK_EVENT_CLOSE] = "step close",
};

static bool is_genuine(sim_world *world, const snk_grant *grant)
{
    const sim_claim *claim = sim_find_claim(world, &grant->claim);
    for (uint32_t i = 0; claim != NULL && i < claim->grant_count && i < SIM_GRANTS_MAX; i++)
        if (claim->grants[i].run == grant->run && claim->grants[i].token_first == grant->token_first &&
            claim->grants[i].token_last == grant->token_last)
            return true;
    return false;
}

/* The hold that this step began, by nothing but a message; NULL when it did not. */
static const snk_hold *find_started(const snk_machine *machine, const snk_event *event, const oracle_before *before)
{
    bool told = event->kind == SNK_EVENT_NEWS || event->kind == SNK_EVENT_RESUME;
    bool began = machine->hold != NULL && (!before->had_hold || !is_same_hold(machine, before));
    return told && began ? machine->hold : NULL;
}

/* Whether the offer lasts as long as it is believed in is seen in the store (oracle_check_lock). */
static void check_start(sim_world *world, const snk_event *event, const snk_hold *hold, const oracle_before *before)
{
    const snk_grant *grant = event->grant;
    sim_claim *claim = sim_find_claim(world, &hold->claim);
    if (grant == NULL || !snk_id_equal(&grant->claim, &hold->claim) || !is_genuine(world, grant) ||
        grant->token_first != hold->token_first || grant->token_last != hold->token_last) {
        sim_violate(world, "I14", "a hold began by a message that the store has not sent");
        return;
    }
    if (before->had_hold && before->deadline_ns > before->now_ns)
        sim_violate(world, "I14", "a message ended a hold");
    sim_saw(world, claim->acquire_answered ? SIM_PROBE_STARTED : SIM_PROBE_STARTED_UNANSWERED);
    claim->acquire_answered = true;
}

static void note_unused_grant(sim_world *world, const snk_event *event, const oracle_before *before)
{
    for (uint32_t i = 0; i < world->plan.thread_count; i++) {
        const snk_seek *seek = &before->seeks[i];
        if ((seek->state != SNK_SEEK_QUEUED && seek->state != SNK_SEEK_ASKING) ||
            !snk_id_equal(&seek->claim, &event->grant->claim))
            continue;
        if (seek->run != event->grant->run)
            sim_saw(world, SIM_PROBE_GRANT_OF_OTHER_RUN);
        else if (snk_deadline_of(seek->waits_since_ns, SNK_OFFER_NS) <= before->now_ns)
            sim_saw(world, SIM_PROBE_GRANT_TOO_OLD);
    }
}

/* A message alone changes nothing: it may lead to a question, or begin the hold that it is about. */
static void check_news(sim_world *world, const sim_process *process, uint32_t lock, const snk_event *event,
                       const snk_actions *actions, const oracle_before *before)
{
    const snk_machine *machine = &process->machines[lock];
    const snk_hold *started = find_started(machine, event, before);
    if (started != NULL)
        check_start(world, event, started, before);
    else if (event->grant != NULL)
        note_unused_grant(world, event, before);
    bool over = before->had_hold && before->deadline_ns <= before->now_ns;
    if (over || started != NULL || event->kind != SNK_EVENT_NEWS)
        return;
    if (machine->state != before->state || snk_deadline_peek(&machine->deadline) != before->deadline_ns ||
        (machine->hold != NULL) != before->had_hold)
        sim_violate(world, "I14", "a message changed the hold");
    if (actions->woken != NULL || actions->freed != NULL || actions->note_count > 0)
        sim_violate(world, "I14", "a message decided something");
    for (uint32_t i = 0; i < actions->send_count; i++)
        if (actions->sends[i].ask != SNK_ASK_RENEW)
            sim_violate(world, "I14", "a message led to more than a question");
}

static void check_sends(sim_world *world, const sim_process *process, uint32_t lock, const snk_event *event,
                        const snk_actions *actions, const oracle_before *before)
{
    for (uint32_t i = 0; i < actions->send_count; i++) {
        const snk_send *send = &actions->sends[i];
        sim_claim *claim = sim_find_claim(world, &send->claim);
        if (claim == NULL || claim->epoch != process->epoch || &world->processes[claim->process] != process) {
            sim_violate(world, "I3", "a request about a claim of somebody else");
            return;
        }
        if (send->sent_at_ns != before->now_ns)
            sim_violate(world, "S1", "a lease does not count from before its request left");
        /* A renewal in flight may have prolonged a lost claim; until its lease is over by every clock it stays. */
        int64_t over_ns = before->deadline_ns + before->hold.terms.lease_ns / SNK_DRIFT_DIVISOR + SNK_MARGIN_NS;
        bool given_up = event->kind == SNK_EVENT_REPLY && before->deadline_ns > before->now_ns;
        if (send->chase && before->had_hold && before->deadline_ns > 0 &&
            (before->deadline_ns <= before->now_ns || given_up) && snk_id_equal(&send->claim, &before->hold.claim) &&
            send->not_before_ns < over_ns)
            sim_violate(world, "S1", "a lost claim is released before its lease is over by every clock");
        if (send->ask != SNK_ASK_ACQUIRE)
            continue;
        if (claim->acquire_sent)
            sim_violate(world, "S4", "an acquire with one id left twice");
        claim->acquire_sent = true;
        claim->lock = (uint8_t)lock;
    }
}

static void note_late_grant(sim_world *world, sim_process *process, uint32_t lock, snk_ask ask)
{
    sim_saw(world, ask == SNK_ASK_ACQUIRE ? SIM_PROBE_LATE_GRANT : SIM_PROBE_RENEWED_LATE);
    for (uint32_t i = 0; i < world->plan.thread_count; i++)
        if (process->threads[i].state == SIM_THREAD_WAITING && process->threads[i].lock == lock)
            process->threads[i].saw_failure = true;
}

static void note_answer(sim_world *world, sim_process *process, uint32_t lock, const snk_event *event,
                        const oracle_before *before)
{
    sim_claim *claim = sim_find_claim(world, &event->send->claim);
    snk_answer_kind kind = event->answer->kind;
    /* Also GONE: it is not there, and what may yet arrive is chased. */
    bool definite = kind == SNK_ANSWER_HELD || kind == SNK_ANSWER_QUEUED || kind == SNK_ANSWER_GONE ||
                    (event->send->ask == SNK_ASK_ACQUIRE && kind != SNK_ANSWER_UNCERTAIN);
    if (event->send->ask == SNK_ASK_RENEW && definite && !claim->acquire_answered)
        sim_saw(world, SIM_PROBE_UNSURE_RESOLVED);
    const snk_hold *hold = process->machines[lock].hold;
    bool began = hold != NULL && snk_id_equal(&hold->claim, &claim->id);
    bool went_on = before->had_hold && snk_id_equal(&before->hold.claim, &claim->id);
    if (kind == SNK_ANSWER_HELD && !began)
        note_late_grant(world, process, lock, event->send->ask);
    if (event->send->ask == SNK_ASK_RENEW && kind == SNK_ANSWER_HELD && began && !went_on)
        sim_saw(world, SIM_PROBE_GRANTED_LATER);
    if (definite)
        claim->acquire_answered = true;
}

static void note_probes(sim_world *world, const sim_process *process, uint32_t lock, const snk_event *event,
                        const snk_actions *actions, const oracle_before *before)
{
    const snk_machine *machine = &process->machines[lock];
    bool was_idle = before->had_hold && before->hold.owner == 0 && before->hold.reserved_for == 0;
    bool was_reserved = before->had_hold && before->hold.reserved_for != 0;
    bool was_offer = before->had_hold && before->hold.renewal.is_offer;
    if (was_offer && is_same_hold(machine, before) && !machine->hold->renewal.is_offer)
        sim_saw(world, SIM_PROBE_CONFIRMED);
    if (was_offer && machine->hold == NULL && event->kind == SNK_EVENT_RELEASE && machine->releasing > 0)
        sim_saw(world, SIM_PROBE_RELEASED_UNCONFIRMED);
    if (was_reserved && is_same_hold(machine, before) && machine->hold->owner == before->hold.reserved_for)
        sim_saw(world, SIM_PROBE_ADOPTED);
    else if (was_reserved && is_same_hold(machine, before) && machine->hold->owner != 0)
        sim_violate(world, "S3", "what was acquired again went to another owner");
    if (was_reserved && machine->hold == NULL && event->kind == SNK_EVENT_TIMER)
        sim_saw(world, SIM_PROBE_RESERVE_LAPSED);
    if (event->kind == SNK_EVENT_REVOKE && has_note(actions, SNECK_EVENT_LOST))
        sim_saw(world, SIM_PROBE_REVOKED);
    if (event->kind == SNK_EVENT_REPLY && event->send->check && has_note(actions, SNECK_EVENT_LOST))
        sim_saw(world, SIM_PROBE_CHECK_FOUND_LOSS);
    for (uint32_t i = 0; i < actions->note_count; i++)
        if (actions->notes[i].kind == SNECK_EVENT_LOST && actions->notes[i].cause == SNECK_CAUSE_GIVEN_UP)
            sim_saw(world, SIM_PROBE_GIVEN_UP);
    if (has_note(actions, SNECK_EVENT_RENEWAL_FAILED))
        sim_saw(world, SIM_PROBE_RENEWAL_FAILED);
    if (machine->hold != NULL && is_same_hold(machine, before) && machine->hold->token != before->hold.token) {
        sim_saw(world, SIM_PROBE_HANDED_OFF);
        if (event->kind == SNK_EVENT_RELEASE)
            sim_saw(world, SIM_PROBE_SERVED_DIRECTLY);
        if (event->kind == SNK_EVENT_ASK && was_idle)
            sim_saw(world, SIM_PROBE_BARGED);
    }
    for (uint32_t i = 0; i < world->plan.thread_count && event->kind == SNK_EVENT_GIVE_UP; i++) {
        const sim_thread *thread = &process->threads[i];
        if (thread->state == SIM_THREAD_WAITING && thread->lock == lock && &thread->waiter != event->waiter &&
            before->seeks[i].state == SNK_SEEK_NONE && thread->waiter.seek.state != SNK_SEEK_NONE)
            sim_saw(world, SIM_PROBE_PLACE_INHERITED);
    }
}

/* What the release found out is told, once, and nothing else is. */
static void check_late_loss(sim_world *world, const snk_event *event, const snk_actions *actions)
{
    bool is_release = event->kind == SNK_EVENT_REPLY && event->send->ask == SNK_ASK_RELEASE && event->send->was_held &&
                      !event->send->chase && event->send->token != 0;
    bool is_gone = is_release && (event->answer->kind == SNK_ANSWER_GONE || event->answer->kind == SNK_ANSWER_BUSY);
    unsigned told = 0;
    for (uint32_t i = 0; i < actions->note_count; i++)
        told += actions->notes[i].kind == SNECK_EVENT_LOST && actions->notes[i].hold == NULL;
    if (told != is_gone)
        sim_violate(world, "I4", "a release found the claim gone, and that was not told, or the other way round");
}

void oracle_after_step(sim_world *world, sim_process *process, uint32_t lock, const snk_event *event,
                       const snk_actions *actions, const oracle_before *before)
{
    if (!snk_machine_is_sound(&process->machines[lock]))
        sim_violate(world, "SOUND", "the machine is not sound after a step");
    check_loss(world, process, lock, event, actions, before);
    check_late_loss(world, event, actions);
    check_sends(world, process, lock, event, actions, before);
    if (event->kind == SNK_EVENT_NEWS || event->kind == SNK_EVENT_RESUME)
        check_news(world, process, lock, event, actions, before);
    if (event->kind == SNK_EVENT_REPLY)
        note_answer(world, process, lock, event, before);
    note_others(world, lock);
    note_probes(world, process, lock, event, actions, before);
    for (uint32_t i = 0; i < world->plan.thread_count; i++) {
        sim_thread *thread = &process->threads[i];
        if (thread->state == SIM_THREAD_WAITING && thread->lock == lock && thread->waiter.decided)
            check_decision(world, process, thread, before);
    }
    check_reserve(world, process, lock);
    sim_record(world, step_names[event->kind], sim_process_number(world, process), lock, process->machines[lock].state,
               actions->send_count);
}
