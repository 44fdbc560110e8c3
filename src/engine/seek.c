/* Claims that do not hold the lock yet: sent, queued in the store, asked about, passed on, given up. */
#include <assert.h>

#include "base/clock.h"
#include "base/error.h"
#include "engine/parts.h"

/* A claim that the store dropped is replaced at once, but not for ever: after so many times with a pause. */
#define REPLACED_AT_ONCE_MAX 3

bool snk_seek_is_active(const snk_seek *seek)
{
    return seek->state != SNK_SEEK_NONE;
}

static bool is_in_flight(const snk_seek *seek)
{
    return seek->state == SNK_SEEK_ACQUIRING || seek->state == SNK_SEEK_ASKING || seek->state == SNK_SEEK_UNSURE_ASKING;
}

/* Nobody can say whether the store has this claim, or will have it. */
static bool is_unanswered(const snk_seek *seek)
{
    return seek->state == SNK_SEEK_ACQUIRING || seek->state == SNK_SEEK_UNSURE || seek->state == SNK_SEEK_UNSURE_ASKING;
}

static bool is_registered(const snk_seek *seek)
{
    return seek->state == SNK_SEEK_QUEUED || seek->state == SNK_SEEK_ASKING;
}

static bool another_barging_seeks(const snk_machine *machine, const snk_waiter *except)
{
    for (snk_link *link = snk_list_first(&machine->waiters); link != NULL;
         link = snk_list_next(&machine->waiters, link)) {
        const snk_waiter *waiter = SNK_CONTAINER(link, snk_waiter, link);
        if (waiter != except && !waiter->terms.fair && !waiter->once && snk_seek_is_active(&waiter->seek))
            return true;
    }
    return false;
}

bool snk_seek_is_allowed(const snk_step *step, const snk_waiter *waiter)
{
    const snk_machine *machine = step->machine;
    if (machine->closing || waiter->interrupted || snk_seek_is_active(&waiter->seek))
        return false;
    if (waiter->terms.fair)
        return true;
    /* While this client has the lock, or is about to give it back, it comes by hand-off or is sought afterwards. */
    const snk_hold *hold = machine->hold;
    bool comes_by_handoff = hold != NULL && !hold->terms.fair && snk_terms_match(&hold->terms, &waiter->terms);
    return !comes_by_handoff && machine->releasing == 0 && snk_machine_first_barging(machine) == waiter &&
           !another_barging_seeks(machine, waiter);
}

static bool somebody_else_waits(const snk_machine *machine, const snk_waiter *waiter)
{
    for (snk_link *link = snk_list_first(&machine->waiters); link != NULL;
         link = snk_list_next(&machine->waiters, link)) {
        const snk_waiter *other = SNK_CONTAINER(link, snk_waiter, link);
        if (other != waiter && !other->terms.fair && !other->once)
            return true;
    }
    return false;
}

static void back_off(snk_step *step, snk_seek *seek, snk_seek_state state)
{
    seek->failures++;
    seek->state = state;
    seek->look_at_ns = snk_time_add(step->now_ns, snk_backoff_ns(seek->failures, SNK_BACKOFF_NS_MAX));
}

void snk_seek_start(snk_step *step, snk_waiter *waiter)
{
    snk_seek *seek = &waiter->seek;
    const snk_engine *engine = step->machine->engine;
    bool resend = SNK_BUGGY(6) && seek->lease_ns != 0;
    if (!resend && !engine->draw_id(engine->context, &seek->claim)) {
        snk_step_decide_as(step, waiter, SNECK_UNAVAILABLE, "the kernel gives no random bytes for a claim id");
        if (!SNK_BUGGY(28))
            snk_machine_wake_seeker(step);
        return;
    }
    seek->state = SNK_SEEK_ACQUIRING;
    seek->look_at_ns = SNK_NEVER_NS;
    seek->ticket = 0;
    seek->news = false;
    seek->lease_ns = waiter->terms.lease_ns;
    seek->waits_since_ns = step->now_ns;
    seek->run = 0;
    snk_send *send = snk_step_send(step, SNK_ASK_ACQUIRE, &seek->claim, seek->lease_ns);
    send->fair = waiter->terms.fair;
    send->queue = !waiter->once;
    /* As many tokens as hand-offs are likely: none when nobody else is here. */
    bool wants_block = engine->token_blocks && !waiter->terms.fair &&
                       (step->machine->contended || somebody_else_waits(step->machine, waiter));
    send->tokens = wants_block ? SNK_TOKEN_BLOCK_MAX : 1;
}

void snk_seek_look(snk_step *step, snk_waiter *waiter)
{
    snk_seek *seek = &waiter->seek;
    if (is_in_flight(seek)) {
        /* The answer on its way may have been given before what this news is about. */
        seek->news = !SNK_BUGGY(11);
        return;
    }
    if (seek->state != SNK_SEEK_QUEUED && seek->state != SNK_SEEK_UNSURE)
        return;
    seek->state = seek->state == SNK_SEEK_QUEUED ? SNK_SEEK_ASKING : SNK_SEEK_UNSURE_ASKING;
    seek->look_at_ns = SNK_NEVER_NS;
    if (SNK_BUGGY(44))
        seek->waits_since_ns = step->now_ns;
    (void)snk_step_send(step, SNK_ASK_RENEW, &seek->claim, seek->lease_ns);
}

/* ---- Answers ---- */

static void busy(snk_step *step, snk_waiter *waiter)
{
    if (waiter->once) {
        snk_step_decide_as(step, waiter, SNECK_BUSY, "somebody else holds the lock");
        return;
    }
    waiter->seek.contacted = true;
    waiter->seek.failures = 0;
    waiter->seek.state = SNK_SEEK_BACKING_OFF;
    waiter->seek.look_at_ns = snk_time_add(step->now_ns, step->machine->engine->retry_ns);
}

static void granted(snk_step *step, snk_waiter *waiter, const snk_send *send, const snk_answer *answer)
{
    const snk_hold *hold = step->machine->hold;
    if (hold != NULL && answer->token_first < hold->token_first && !SNK_BUGGY(27)) {
        /* This grant was ended by force while its answer was on the way, and the lock came to us by another claim. */
        snk_step_chase(step, &send->claim, send->lease_ns, 0, false);
        busy(step, waiter);
        return;
    }
    /* The store has given the lock away, so the hold that we still believe in was ended there, by force. */
    if (hold != NULL)
        snk_hold_lose(step, SNECK_CAUSE_TAKEN);
    /* After that loss, because it may have been a hold of the same owner. */
    if (snk_hold_find_lost(step->machine, waiter->owner) != NULL && !waiter->reserves) {
        snk_step_chase(step, &send->claim, send->lease_ns, 0, false);
        snk_step_decide_as(step, waiter, SNECK_LOST, SNK_LOST_WITH_LEVELS_LEFT);
        return;
    }
    if (step->machine->closing && !SNK_BUGGY(26)) {
        snk_step_chase(step, &send->claim, send->lease_ns, 0, false);
        snk_step_decide_as(step, waiter, SNECK_CANCELED, "the client is being closed");
        return;
    }
    if (snk_deadline_of(send->sent_at_ns, send->lease_ns) > step->now_ns || SNK_BUGGY(13)) {
        snk_hold_begin(step, waiter,
                       &(snk_gift){ .claim = send->claim,
                                    .token_first = answer->token_first,
                                    .token_last = answer->token_last,
                                    .units = answer->units,
                                    .lease_ns = send->lease_ns,
                                    .counts_from_ns = send->sent_at_ns });
        return;
    }
    /* Too late: the lease is over, or nearly, before it could be used. */
    snk_step_chase(step, &send->claim, send->lease_ns, 0, false);
    if (waiter->once) {
        snk_step_decide_as(step, waiter, SNECK_UNAVAILABLE, "the store took longer to answer than the lease lasts");
        return;
    }
    waiter->seek.contacted = true;
    back_off(step, &waiter->seek, SNK_SEEK_BACKING_OFF);
}

static void queued(snk_step *step, snk_waiter *waiter, const snk_send *send, const snk_answer *answer)
{
    snk_seek *seek = &waiter->seek;
    const snk_engine *engine = step->machine->engine;
    int64_t pause_ns = engine->pushes_wakeups ? seek->lease_ns / 3 : engine->retry_ns;
    if (answer->look_after_ns > 0 && answer->look_after_ns < pause_ns)
        pause_ns = answer->look_after_ns;
    /* Another thread may have asked for this one, which sleeps on the ticket of an older answer, or of another claim. */
    if (seek->contacted && seek->ticket != answer->ticket)
        snk_step_wake(step, waiter);
    seek->state = SNK_SEEK_QUEUED;
    seek->look_at_ns = snk_time_add(step->now_ns, pause_ns);
    seek->ticket = answer->ticket;
    seek->waits_since_ns = send->sent_at_ns;
    seek->run = answer->run;
    seek->contacted = true;
    seek->failures = 0;
    if (seek->news) {
        seek->news = false;
        snk_seek_look(step, waiter);
    }
}

/*
 * The store does not know the claim. If its acquire was never answered it may still be on its way, so it is chased; a
 * new try needs a new claim in any case.
 */
static void gone(snk_step *step, snk_waiter *waiter)
{
    snk_seek *seek = &waiter->seek;
    if (seek->state == SNK_SEEK_UNSURE_ASKING)
        snk_step_chase(step, &seek->claim, seek->lease_ns, 0, true);
    seek->contacted = true;
    if (seek->failures < REPLACED_AT_ONCE_MAX && !waiter->once) {
        seek->failures++;
        snk_seek_start(step, waiter);
    } else if (waiter->once) {
        snk_step_decide_as(step, waiter, SNECK_UNAVAILABLE, "the store refused the claim");
    } else {
        back_off(step, seek, SNK_SEEK_BACKING_OFF);
    }
}

static void failed(snk_step *step, snk_waiter *waiter, const snk_send *send, const snk_answer *answer)
{
    snk_seek *seek = &waiter->seek;
    bool waits_it_out = answer->error.status == SNECK_UNAVAILABLE && seek->contacted && !waiter->once;
    if (send->ask == SNK_ASK_ACQUIRE) {
        if (waits_it_out)
            back_off(step, seek, SNK_SEEK_BACKING_OFF);
        else
            snk_step_decide(step, waiter, &answer->error);
        return;
    }
    bool registered = is_registered(seek);
    if (waits_it_out) {
        back_off(step, seek, registered ? SNK_SEEK_QUEUED : SNK_SEEK_UNSURE);
        return;
    }
    snk_step_chase(step, &seek->claim, seek->lease_ns, 0, !registered);
    sneck_error error = answer->error;
    if (!registered && !SNK_BUGGY(35)) /* the question was refused; what became of the acquire nobody knows */
        error.status = SNECK_UNKNOWN;
    snk_step_decide(step, waiter, &error);
}

static void uncertain(snk_step *step, snk_waiter *waiter, const snk_send *send, const snk_answer *answer)
{
    snk_seek *seek = &waiter->seek;
    if (send->ask == SNK_ASK_RENEW) {
        back_off(step, seek, is_registered(seek) ? SNK_SEEK_QUEUED : SNK_SEEK_UNSURE);
        return;
    }
    if (seek->contacted && !waiter->once) {
        back_off(step, seek, SNK_BUGGY(6) ? SNK_SEEK_BACKING_OFF : SNK_SEEK_UNSURE);
        return;
    }
    snk_step_chase(step, &seek->claim, seek->lease_ns, 0, true);
    sneck_error unknown = answer->error;
    unknown.status = SNECK_UNKNOWN;
    snk_step_decide(step, waiter, &unknown);
}

void snk_seek_abandoned(snk_step *step, snk_waiter *waiter)
{
    snk_seek *seek = &waiter->seek;
    if (seek->state == SNK_SEEK_ASKING || seek->state == SNK_SEEK_UNSURE_ASKING)
        back_off(step, seek, is_registered(seek) ? SNK_SEEK_QUEUED : SNK_SEEK_UNSURE);
}

void snk_seek_answered(snk_step *step, snk_waiter *waiter, const snk_send *send, const snk_answer *answer)
{
    if (!is_in_flight(&waiter->seek))
        return;
    switch (answer->kind) {
    case SNK_ANSWER_HELD:
        granted(step, waiter, send, answer);
        break;
    case SNK_ANSWER_QUEUED:
        queued(step, waiter, send, answer);
        break;
    case SNK_ANSWER_BUSY:
        busy(step, waiter);
        break;
    case SNK_ANSWER_GONE:
    case SNK_ANSWER_DONE:
        gone(step, waiter);
        break;
    case SNK_ANSWER_FAILED:
        failed(step, waiter, send, answer);
        break;
    case SNK_ANSWER_UNCERTAIN:
        uncertain(step, waiter, send, answer);
        break;
    }
    snk_machine_wake_seeker(step);
}

/* ---- Leaving, time ---- */

/* In barging mode the claim is the client's rather than the thread's: the next waiter goes on from its place. */
static snk_waiter *find_successor(const snk_machine *machine, const snk_waiter *leaver)
{
    if (leaver->terms.fair || leaver->once || machine->closing)
        return NULL;
    for (snk_link *link = snk_list_first(&machine->waiters); link != NULL;
         link = snk_list_next(&machine->waiters, link)) {
        snk_waiter *waiter = SNK_CONTAINER(link, snk_waiter, link);
        if (waiter != leaver && !waiter->terms.fair && !waiter->once && !waiter->interrupted &&
            !snk_seek_is_active(&waiter->seek) && snk_terms_match(&waiter->terms, &leaver->terms))
            return waiter;
    }
    return NULL;
}

void snk_seek_leave(snk_step *step, snk_waiter *waiter)
{
    snk_seek *seek = &waiter->seek;
    if (!snk_seek_is_active(seek))
        return;
    snk_waiter *successor = find_successor(step->machine, waiter);
    if (successor != NULL) {
        successor->seek = *seek;
        snk_step_wake(step, successor);
        /* The one that leaves may have been woken for this claim in the very moment. */
        if (!SNK_BUGGY(34))
            snk_seek_look(step, successor);
    } else if (is_unanswered(seek)) {
        snk_step_chase(step, &seek->claim, seek->lease_ns, 0, true);
    } else if (is_registered(seek) && !SNK_BUGGY(14)) {
        /* The agent itself waits for this answer: when its call returns, the queue is as if it had never been there. */
        (void)snk_step_send(step, SNK_ASK_RELEASE, &seek->claim, seek->lease_ns);
    }
    seek->state = SNK_SEEK_NONE;
}

void snk_seek_on_timer(snk_step *step, snk_waiter *waiter)
{
    snk_seek *seek = &waiter->seek;
    if (!snk_seek_is_active(seek) || seek->look_at_ns > step->now_ns)
        return;
    if (seek->state != SNK_SEEK_BACKING_OFF) {
        snk_seek_look(step, waiter);
        return;
    }
    seek->state = SNK_SEEK_NONE;
    if (snk_seek_is_allowed(step, waiter))
        snk_seek_start(step, waiter);
}
