#include "engine/machine.h"

#include <assert.h>

#include "base/clock.h"
#include "base/error.h"
#include "engine/parts.h"

void snk_machine_init(snk_machine *machine, const snk_engine *engine)
{
    *machine = (snk_machine){ .engine = engine, .timer_at_ns = SNK_NEVER_NS };
    snk_deadline_set(&machine->deadline, SNK_DEADLINE_NONE);
    snk_list_init(&machine->waiters);
    snk_list_init(&machine->lost);
}

bool snk_machine_is_idle(const snk_machine *machine)
{
    return machine->hold == NULL && machine->releasing == 0 && snk_list_is_empty(&machine->waiters) &&
           snk_list_is_empty(&machine->lost);
}

bool snk_terms_match(const snk_terms *a, const snk_terms *b)
{
    return a->lease_ns == b->lease_ns && a->renew_ns == b->renew_ns && a->fair == b->fair &&
           a->forget_on_loss == b->forget_on_loss;
}

static snk_waiter *first_waiter(const snk_machine *machine)
{
    snk_link *link = snk_list_first(&machine->waiters);
    return link == NULL ? NULL : SNK_CONTAINER(link, snk_waiter, link);
}

static snk_waiter *next_waiter(const snk_machine *machine, const snk_waiter *waiter)
{
    snk_link *link = snk_list_next(&machine->waiters, &waiter->link);
    return link == NULL ? NULL : SNK_CONTAINER(link, snk_waiter, link);
}

snk_waiter *snk_machine_first_barging(const snk_machine *machine)
{
    for (snk_waiter *waiter = first_waiter(machine); waiter != NULL; waiter = next_waiter(machine, waiter))
        if (!waiter->terms.fair && !waiter->once && !waiter->interrupted)
            return waiter;
    return NULL;
}

void snk_machine_wake_seeker(snk_step *step)
{
    snk_waiter *waiter = snk_machine_first_barging(step->machine);
    if (waiter != NULL && snk_seek_is_allowed(step, waiter))
        snk_step_wake(step, waiter);
}

void snk_machine_wake_owner(snk_step *step, uint64_t owner)
{
    const snk_machine *machine = step->machine;
    for (snk_waiter *waiter = first_waiter(machine); waiter != NULL; waiter = next_waiter(machine, waiter))
        if (waiter->owner == owner)
            snk_step_wake(step, waiter);
}

static snk_waiter *find_by_claim(const snk_machine *machine, const snk_id *claim)
{
    for (snk_waiter *waiter = first_waiter(machine); waiter != NULL; waiter = next_waiter(machine, waiter))
        if (snk_seek_is_active(&waiter->seek) && snk_id_equal(&waiter->seek.claim, claim))
            return waiter;
    return NULL;
}

/* Somebody seeks for all the barging waiters of this client, and the store does not answer properly. */
static bool seeker_fails(const snk_machine *machine)
{
    for (const snk_waiter *waiter = first_waiter(machine); waiter != NULL; waiter = next_waiter(machine, waiter)) {
        const snk_seek *seek = &waiter->seek;
        if (!waiter->terms.fair && !waiter->once && snk_seek_is_active(seek) &&
            (seek->failures > 0 || seek->state == SNK_SEEK_UNSURE || seek->state == SNK_SEEK_UNSURE_ASKING))
            return true;
    }
    return false;
}

/* ---- Events ---- */

/* What a waiter can do now: take a hold that is kept for local hand-off, or try once, or seek. */
static void advance(snk_step *step, snk_waiter *waiter)
{
    if (snk_hold_is_takeable(step, waiter)) {
        snk_hold_take(step, waiter);
        return;
    }
    if (!waiter->reserves)
        snk_reserve_drop(step, waiter->owner);
    if (waiter->once && !snk_seek_is_active(&waiter->seek)) {
        if (step->machine->hold != NULL)
            snk_step_decide_as(step, waiter, SNECK_BUSY, "another owner in this process holds the lock");
        else
            snk_seek_start(step, waiter);
    } else if (snk_seek_is_allowed(step, waiter)) {
        snk_seek_start(step, waiter);
    }
}

/*
 * Decides an asker that has a claim on the lock already: levels of a hold, or levels of a lost one. Two calls on one
 * handle that owns for itself may wait side by side; the second one gets here when the first has been served.
 */
static bool decide_owner(snk_step *step, snk_waiter *waiter)
{
    snk_machine *machine = step->machine;
    if (waiter->reserves)
        return snk_reserve_decide(step, waiter);
    bool lost = snk_hold_find_lost(machine, waiter->owner) != NULL && !SNK_BUGGY(17);
    bool holds = machine->hold != NULL && machine->hold->owner == waiter->owner;
    if (!lost && !holds)
        return false;
    snk_seek_leave(step, waiter);
    if (lost)
        snk_step_decide_as(step, waiter, SNECK_LOST, SNK_LOST_WITH_LEVELS_LEFT);
    else
        snk_hold_reenter(step, waiter);
    return true;
}

static void on_ask(snk_step *step, snk_waiter *waiter)
{
    snk_machine *machine = step->machine;
    waiter->link = (snk_link){ NULL, NULL };
    waiter->seek.state = SNK_SEEK_NONE;
    waiter->decided = false;
    waiter->interrupted = false;
    if (machine->closing) {
        snk_step_decide_as(step, waiter, SNECK_CANCELED, "the client is being closed");
        return;
    }
    if (decide_owner(step, waiter))
        return;
    waiter->seek = (snk_seek){ .look_at_ns = SNK_NEVER_NS };
    waiter->asked_at_ns = step->now_ns;
    waiter->passed_over_since_ns = 0;
    waiter->token = 0;
    snk_list_append(&machine->waiters, &waiter->link);
    advance(step, waiter);
}

/* What the store says may be about a claim that the waiter has no more. */
static bool is_for(const snk_grant *grant, const snk_waiter *waiter)
{
    return grant != NULL && snk_seek_is_active(&waiter->seek) &&
           (snk_id_equal(&grant->claim, &waiter->seek.claim) || SNK_BUGGY(41));
}

static void on_resume(snk_step *step, snk_waiter *waiter, bool news, const snk_grant *grant)
{
    if (waiter->decided || waiter->interrupted)
        return;
    if (decide_owner(step, waiter)) {
        snk_machine_wake_seeker(step);
        return;
    }
    if (is_for(grant, waiter))
        snk_offer_heard(step, waiter, grant);
    else if (news)
        snk_seek_look(step, waiter);
    if (!waiter->decided && !snk_seek_is_active(&waiter->seek))
        advance(step, waiter);
}

/*
 * Running out of time is only that if somebody else has the lock, or is before this waiter in the queue. With trouble
 * at the store, its own or that of the one who seeks for it, it is not.
 */
static void decide_given_up(snk_step *step, snk_waiter *waiter, sneck_status status)
{
    snk_seek_state state = waiter->seek.state;
    bool unanswered = state == SNK_SEEK_ACQUIRING || state == SNK_SEEK_UNSURE || state == SNK_SEEK_UNSURE_ASKING;
    bool active = snk_seek_is_active(&waiter->seek);
    bool failing =
        active ? waiter->seek.failures > 0 : !waiter->terms.fair && seeker_fails(step->machine) && !SNK_BUGGY(29);
    snk_seek_leave(step, waiter);
    if (status == SNECK_CANCELED)
        snk_step_decide_as(step, waiter, SNECK_CANCELED, "the wait was interrupted");
    else if (unanswered && !SNK_BUGGY(30))
        snk_step_decide_as(step, waiter, SNECK_UNKNOWN,
                           "the store did not answer in time; should the lock have been acquired, it is released");
    else if (failing)
        snk_step_decide_as(step, waiter, SNECK_UNAVAILABLE, "the store could not be reached before the wait was over");
    else
        snk_step_decide_as(
            step, waiter, waiter->once ? SNECK_BUSY : SNECK_TIMEOUT,
            "somebody else had the lock, or was before the caller in the queue, for as long as it was to wait");
}

static void on_give_up(snk_step *step, snk_waiter *waiter, sneck_status status)
{
    if (waiter->decided)
        return;
    decide_given_up(step, waiter, status);
    snk_hold_pass_idle(step);
    snk_machine_wake_seeker(step);
}

static void result_of_release(snk_step *step, const snk_answer *answer)
{
    sneck_error *result = &step->actions->release;
    switch (answer->kind) {
    case SNK_ANSWER_DONE:
        (void)snk_ok(result);
        return;
    case SNK_ANSWER_HELD:
    case SNK_ANSWER_QUEUED:
    case SNK_ANSWER_BUSY:
    case SNK_ANSWER_GONE:
        (void)snk_fail(result, SNECK_LOST, 0, "the store no longer had the claim: it was broken, or its lease ended");
        return;
    case SNK_ANSWER_FAILED:
    case SNK_ANSWER_UNCERTAIN:
        (void)snk_fail_as(result, &answer->error);
        return;
    }
}

/*
 * The owner has been told that it released the lock, and had lost it by then: somebody else may have held it at the same
 * time. So that is told as loss too.
 */
static void note_lost_before_release(snk_step *step, const snk_send *send, snk_answer_kind kind)
{
    if (send->token == 0 || kind == SNK_ANSWER_DONE || SNK_BUGGY(96))
        return;
    snk_note *note = snk_step_note(step, SNECK_EVENT_LOST, send->token, SNECK_LOST,
                                   "the store no longer had the claim when it was released: it was broken, or its "
                                   "lease ended");
    note->cause = kind == SNK_ANSWER_BUSY ? SNECK_CAUSE_TAKEN : SNECK_CAUSE_GONE;
    note->token_first = send->token_first;
    note->is_watched = send->is_watched;
    note->remaining_ns = 0;
}

static void on_release_answered(snk_step *step, const snk_send *send, const snk_answer *answer)
{
    bool answered = answer->kind != SNK_ANSWER_FAILED && answer->kind != SNK_ANSWER_UNCERTAIN;
    if (!answered && !send->chase)
        snk_step_repeat_release(step, send);
    if (send->was_held && !send->chase) {
        result_of_release(step, answer);
        if (answered)
            note_lost_before_release(step, send, answer->kind);
        assert(step->machine->releasing > 0);
        step->machine->releasing--;
        if (!SNK_BUGGY(22))
            snk_machine_wake_seeker(step);
    }
}

static void on_reply(snk_step *step, const snk_send *send, const snk_answer *answer)
{
    snk_machine *machine = step->machine;
    if (send->ask == SNK_ASK_RELEASE) {
        on_release_answered(step, send, answer);
        return;
    }
    if (machine->hold != NULL && snk_id_equal(&machine->hold->claim, &send->claim)) {
        snk_hold_answered(step, send, answer);
        return;
    }
    snk_waiter *waiter = find_by_claim(machine, &send->claim);
    if (waiter != NULL)
        snk_seek_answered(step, waiter, send, answer);
    else if (send->ask == SNK_ASK_RENEW) /* an extend of a hold that is over */
        (void)snk_fail(&step->actions->release, SNECK_LOST, 0, "the lock was lost");
}

static void on_news(snk_step *step, const snk_id *claim, const snk_grant *grant)
{
    if (SNK_BUGGY(32) && step->machine->hold != NULL && snk_id_equal(&step->machine->hold->claim, claim))
        snk_hold_lose(step, SNECK_CAUSE_GONE);
    snk_waiter *waiter = find_by_claim(step->machine, claim);
    if (waiter == NULL)
        return;
    if (is_for(grant, waiter))
        snk_offer_heard(step, waiter, grant);
    else
        snk_seek_look(step, waiter);
}

static void on_timer(snk_step *step)
{
    snk_machine *machine = step->machine;
    snk_reserve_on_timer(step);
    snk_hold_on_timer(step);
    snk_waiter *waiter = first_waiter(machine);
    while (waiter != NULL) {
        if (!snk_step_has_room(step)) {
            step->actions->more = true;
            return;
        }
        /* Its turn on the timer may decide a waiter, which takes it out of the list. */
        snk_waiter *next = next_waiter(machine, waiter);
        snk_seek_on_timer(step, waiter);
        waiter = next;
    }
    snk_machine_wake_seeker(step);
}

static void on_abandoned(snk_step *step)
{
    snk_hold_abandoned(step);
    for (snk_waiter *waiter = first_waiter(step->machine); waiter != NULL; waiter = next_waiter(step->machine, waiter))
        snk_seek_abandoned(step, waiter);
}

static void on_interrupt(snk_step *step, const void *tag)
{
    snk_machine *machine = step->machine;
    for (snk_waiter *waiter = first_waiter(machine); waiter != NULL; waiter = next_waiter(machine, waiter)) {
        if (tag != NULL && waiter->tag != tag)
            continue;
        waiter->interrupted = true;
        snk_step_wake(step, waiter);
    }
}

static void on_close(snk_step *step)
{
    snk_machine *machine = step->machine;
    machine->closing = true;
    on_interrupt(step, NULL);
    if (machine->hold == NULL)
        return;
    if (machine->hold->owner != 0)
        snk_step_note(step, SNECK_EVENT_RELEASED, machine->hold->token, SNECK_OK, "the client was closed")->took_ns =
            step->now_ns - machine->hold->since_ns;
    snk_hold_give_back(step);
}

static int64_t next_timer(const snk_machine *machine)
{
    int64_t at_ns = machine->hold != NULL ? machine->hold->renewal.next_at_ns : SNK_NEVER_NS;
    int64_t reserve_ns = snk_reserve_timer_ns(machine);
    if (reserve_ns < at_ns)
        at_ns = reserve_ns;
    for (const snk_waiter *waiter = first_waiter(machine); waiter != NULL; waiter = next_waiter(machine, waiter))
        if (snk_seek_is_active(&waiter->seek) && waiter->seek.look_at_ns < at_ns)
            at_ns = waiter->seek.look_at_ns;
    return at_ns;
}

static void clear_wake_marks(const snk_actions *actions)
{
    for (snk_waiter *waiter = actions->woken; waiter != NULL; waiter = waiter->next_woken)
        waiter->woken = false;
}

void snk_machine_step(snk_machine *machine, const snk_event *event, snk_actions *actions)
{
    snk_step step = { .machine = machine, .actions = actions, .now_ns = event->now_ns };
    snk_step_begin(&step);
    if (!SNK_BUGGY(2) || event->kind != SNK_EVENT_REPLY)
        snk_hold_settle(&step);
    switch (event->kind) {
    case SNK_EVENT_ASK:
        on_ask(&step, event->waiter);
        break;
    case SNK_EVENT_RESUME:
        on_resume(&step, event->waiter, event->news, event->grant);
        break;
    case SNK_EVENT_GIVE_UP:
        on_give_up(&step, event->waiter, event->status);
        break;
    case SNK_EVENT_RELEASE:
        snk_hold_release(&step, event->owner);
        break;
    case SNK_EVENT_EXTEND:
        snk_hold_extend(&step, event->owner, event->lease_ns);
        break;
    case SNK_EVENT_REPLY:
        on_reply(&step, event->send, event->answer);
        break;
    case SNK_EVENT_NEWS:
        on_news(&step, &event->claim, event->grant);
        break;
    case SNK_EVENT_TIMER:
        on_timer(&step);
        break;
    case SNK_EVENT_INTERRUPT:
        on_interrupt(&step, event->tag);
        break;
    case SNK_EVENT_ABANDONED:
        on_abandoned(&step);
        break;
    case SNK_EVENT_REVOKE:
        snk_hold_revoke(&step, event->owner, event->token, event->cause);
        break;
    case SNK_EVENT_OWNER_GONE:
        snk_hold_forget_owner(&step, event->owner);
        break;
    case SNK_EVENT_CLOSE:
        on_close(&step);
        break;
    }
    machine->timer_at_ns = next_timer(machine);
    clear_wake_marks(actions);
}

/* ---- Looking ---- */

unsigned snk_machine_levels(snk_machine *machine, uint64_t owner, int64_t now_ns)
{
    if (machine->hold == NULL || machine->hold->owner != owner)
        return 0;
    return snk_deadline_holds(&machine->deadline, now_ns) ? snk_state_levels(machine) : 0;
}

static bool hold_is_sound(const snk_machine *machine)
{
    bool held = machine->state >> SNK_STATE_HELD_SHIFT != 0;
    if (held != (machine->hold != NULL))
        return false;
    if (!held)
        return machine->state == 0 && snk_deadline_peek(&machine->deadline) <= 0;
    const snk_hold *hold = machine->hold;
    return snk_deadline_peek(&machine->deadline) != SNK_DEADLINE_NONE &&
           (hold->owner == 0) == (snk_state_levels(machine) == 0) && hold->token >= hold->token_first &&
           hold->token <= hold->token_last;
}

bool snk_machine_is_sound(const snk_machine *machine)
{
    unsigned barging_seeks = 0;
    for (const snk_waiter *waiter = first_waiter(machine); waiter != NULL; waiter = next_waiter(machine, waiter)) {
        if (waiter->decided)
            return false;
        if (!waiter->terms.fair && !waiter->once && snk_seek_is_active(&waiter->seek))
            barging_seeks++;
    }
    for (snk_link *link = snk_list_first(&machine->lost); link != NULL; link = snk_list_next(&machine->lost, link)) {
        const snk_hold *hold = SNK_CONTAINER(link, snk_hold, link);
        if (hold->levels == 0 || hold->owner == 0)
            return false;
    }
    return barging_seeks <= 1 && hold_is_sound(machine);
}
