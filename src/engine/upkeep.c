/* Keeping the lock: when to renew the claim that has it, and what the answers to renewals and looks mean. */
#include "base/clock.h"
#include "base/error.h"
#include "engine/parts.h"

/*
 * The claim is released, but not before its lease is over by every clock: so long it shields what its owner has begun in
 * good faith.
 */
static void chase_when_over(snk_step *step)
{
    const snk_hold *hold = step->machine->hold;
    int64_t over_ns = snk_deadline_peek(&step->machine->deadline) + hold->terms.lease_ns / SNK_DRIFT_DIVISOR;
    if (SNK_BUGGY(95))
        over_ns = 0;
    snk_step_chase(step, &hold->claim, hold->terms.lease_ns, over_ns + SNK_MARGIN_NS, false);
}

static void renewal_failed(snk_step *step, const sneck_error *error)
{
    snk_hold *hold = step->machine->hold;
    const snk_care *care = &hold->terms.care;
    snk_renewal_failed(&hold->renewal, hold->terms.renew_ns, step->now_ns);
    if (hold->owner == 0)
        return;
    (void)snk_step_note(step, SNECK_EVENT_RENEWAL_FAILED, hold->token, error->status,
                        "a renewal was not answered in time");
    if (hold->renewal.failures != care->threshold || hold->renewal.is_warned)
        return;
    if (care->threshold > 1 || care->recovery != SNECK_RECOVER_RELEASE) {
        hold->renewal.is_warned = true;
        (void)snk_step_note(step, SNECK_EVENT_AT_RISK, hold->token, error->status, "renewals fail again and again");
        return;
    }
    chase_when_over(step);
    snk_hold_lose(step, SNECK_CAUSE_GIVEN_UP);
}

/* The answer to a look: only a clear one means something. */
static void checked(snk_step *step, const snk_send *send, const snk_answer *answer)
{
    snk_hold *hold = step->machine->hold;
    switch (answer->kind) {
    case SNK_ANSWER_HELD:
        /* A token of 0 is not known to the store. With another one than ours the grant that we know of has ended. */
        if (answer->token_first != 0 && answer->token_first != hold->token_first) {
            chase_when_over(step);
            snk_hold_lose(step, SNECK_CAUSE_GONE);
        } else if (send->sent_at_ns > hold->renewal.confirmed_at_ns)
            hold->renewal.confirmed_at_ns = send->sent_at_ns;
        return;
    case SNK_ANSWER_BUSY:
        snk_hold_lose(step, SNECK_CAUSE_TAKEN);
        return;
    case SNK_ANSWER_QUEUED:
    case SNK_ANSWER_GONE:
    case SNK_ANSWER_DONE:
        snk_hold_lose(step, SNECK_CAUSE_GONE);
        return;
    case SNK_ANSWER_FAILED:
    case SNK_ANSWER_UNCERTAIN:
        if (SNK_BUGGY(93))
            snk_hold_lose(step, SNECK_CAUSE_GONE);
        return;
    }
}

/* How long after it was due a renewal was answered, by what it left of the lease before. */
static int64_t lateness(const snk_hold *hold, int64_t margin_ns)
{
    int64_t late_ns = snk_deadline_of(0, hold->terms.lease_ns) - hold->terms.renew_ns - margin_ns;
    return late_ns > 0 ? late_ns : 0;
}

static void note_renewed(snk_step *step, int64_t margin_ns, bool was_offer)
{
    const snk_hold *hold = step->machine->hold;
    if (hold->owner == 0)
        return;
    snk_note *note = snk_step_note(step, SNECK_EVENT_RENEWED, hold->token, SNECK_OK, "");
    note->took_ns = margin_ns;
    note->of_offer = was_offer;
    if (!note->of_offer && hold->terms.renew_ns != SNK_NEVER_NS)
        note->delay_ns = lateness(hold, margin_ns);
}

/*
 * The grant was announced while a request about the claim was on its way. Whatever the store answered before it made
 * the grant is of no interest any more; only that the claim holds the lock, or is gone, was said after it.
 */
static bool was_overtaken(const snk_hold *hold, const snk_send *send, snk_answer_kind kind)
{
    bool before = send->sent_at_ns <= hold->granted_at_ns && !SNK_BUGGY(39);
    return before && kind != SNK_ANSWER_HELD && kind != SNK_ANSWER_GONE;
}

void snk_hold_answered(snk_step *step, const snk_send *send, const snk_answer *answer)
{
    snk_machine *machine = step->machine;
    snk_hold *hold = machine->hold;
    int64_t margin_ns = snk_deadline_peek(&machine->deadline) - step->now_ns;
    bool was_offer = hold->renewal.is_offer;
    if (was_overtaken(hold, send, answer->kind))
        return;
    if (send->check) {
        checked(step, send, answer);
        return;
    }
    switch (answer->kind) {
    case SNK_ANSWER_HELD:
        if (!snk_deadline_raise(&machine->deadline, step->now_ns,
                                snk_deadline_of(SNK_BUGGY(24) ? step->now_ns : send->sent_at_ns, send->lease_ns))) {
            (void)snk_fail(&step->actions->release, SNECK_LOST, 0, "the lock was lost");
            return;
        }
        /* An extend by less than the hold's own lease says nothing about when that one must be renewed. */
        if (send->lease_ns >= hold->terms.lease_ns)
            snk_renewal_succeeded(&hold->renewal, hold->terms.renew_ns, send->sent_at_ns, step->now_ns);
        note_renewed(step, margin_ns, was_offer);
        return;
    case SNK_ANSWER_QUEUED:
    case SNK_ANSWER_BUSY:
    case SNK_ANSWER_GONE:
    case SNK_ANSWER_DONE:
        (void)snk_fail(&step->actions->release, SNECK_LOST, 0, "the lock was lost");
        if (!SNK_BUGGY(31))
            snk_hold_lose(step, answer->kind == SNK_ANSWER_BUSY ? SNECK_CAUSE_TAKEN : SNECK_CAUSE_GONE);
        return;
    case SNK_ANSWER_FAILED:
    case SNK_ANSWER_UNCERTAIN:
        (void)snk_fail_as(&step->actions->release, &answer->error);
        if (SNK_BUGGY(4))
            snk_hold_lose(step, SNECK_CAUSE_EXPIRED);
        else
            renewal_failed(step, &answer->error);
        return;
    }
}

void snk_hold_on_timer(snk_step *step)
{
    snk_hold *hold = step->machine->hold;
    if (hold == NULL || !snk_renewal_is_due(&hold->renewal, step->now_ns))
        return;
    snk_renewal_sent(&hold->renewal);
    snk_step_send(step, SNK_ASK_RENEW, &hold->claim, hold->terms.lease_ns)->is_hold = true;
}

void snk_hold_abandoned(snk_step *step)
{
    const snk_hold *hold = step->machine->hold;
    if (hold == NULL || !snk_renewal_is_in_flight(&hold->renewal, hold->terms.renew_ns))
        return;
    sneck_error none;
    (void)snk_fail(&none, SNECK_UNKNOWN, 0, "the renewal thread does not come back");
    renewal_failed(step, &none);
}
