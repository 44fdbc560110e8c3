/* The claim that has the lock: beginning, re-entry, local hand-off, loss, release. */
#include <assert.h>

#include "base/clock.h"
#include "base/error.h"
#include "engine/parts.h"

static void set_state(snk_machine *machine, bool held, uint32_t levels, uint32_t handoffs)
{
    machine->state = (held ? UINT32_C(1) << SNK_STATE_HELD_SHIFT : 0) | levels << SNK_STATE_LEVELS_SHIFT |
                     (handoffs & SNK_STATE_HANDOFFS_MASK);
}

uint32_t snk_state_levels(const snk_machine *machine)
{
    return machine->state >> SNK_STATE_LEVELS_SHIFT & UINT32_C(0xFF);
}

static uint32_t state_handoffs(const snk_machine *machine)
{
    return machine->state & SNK_STATE_HANDOFFS_MASK;
}

bool snk_hold_is_idle(const snk_machine *machine)
{
    return machine->hold != NULL && machine->hold->owner == 0 && machine->hold->reserved_for == 0;
}

int64_t snk_hold_lease_ns(const snk_hold *hold)
{
    return hold->renewal.is_offer ? snk_offer_life_ns(hold->terms.lease_ns) : hold->terms.lease_ns;
}

static void end_hold(snk_machine *machine, int64_t deadline)
{
    machine->hold = NULL;
    snk_deadline_set(&machine->deadline, deadline);
    set_state(machine, false, 0, 0);
}

/* ---- Loss ---- */

snk_hold *snk_hold_find_lost(const snk_machine *machine, uint64_t owner)
{
    for (snk_link *link = snk_list_first(&machine->lost); link != NULL; link = snk_list_next(&machine->lost, link)) {
        snk_hold *hold = SNK_CONTAINER(link, snk_hold, link);
        if (hold->owner == owner)
            return hold;
    }
    return NULL;
}

static const char *text_of_loss(sneck_cause cause)
{
    switch (cause) {
    case SNECK_CAUSE_NONE:
        break;
    case SNECK_CAUSE_EXPIRED:
        return "the lease ended before a renewal was answered";
    case SNECK_CAUSE_PAUSED:
        return "the lease ended while the process, or its renewal, did not run";
    case SNECK_CAUSE_GONE:
        return "the store no longer has the claim: it was broken, deleted, or its lease ended there";
    case SNECK_CAUSE_TAKEN:
        return "the store gave the lock to another claim";
    case SNECK_CAUSE_GIVEN_UP:
        return "a renewal failed, and the hold was to be given up then";
    case SNECK_CAUSE_STUCK:
        return "its owner was blocked or stopped for longer than stuck_ms";
    case SNECK_CAUSE_OVERDUE:
        return "it was held for longer than max_hold_ms";
    case SNECK_CAUSE_OWNER_DIED:
        return "its owner ended without releasing it";
    }
    return "";
}

/*
 * The owner keeps its levels as a debt: each release says LOST, and so does each acquire, until the outermost level is
 * released. Otherwise a thread that read under token 10 would go on to write with token 12 over somebody's 11.
 */
void snk_hold_lose(snk_step *step, sneck_cause cause)
{
    snk_machine *machine = step->machine;
    snk_hold *hold = machine->hold;
    uint32_t levels = snk_state_levels(machine);
    end_hold(machine, SNK_DEADLINE_LOST);
    if (hold->owner != 0 || hold->reserved_for != 0) {
        snk_note *note = snk_step_note(step, SNECK_EVENT_LOST, hold->token, SNECK_LOST, text_of_loss(cause));
        note->cause = cause;
        note->token_first = hold->token_first;
        note->is_watched = hold->terms.care.watchdog_ms > 0;
        note->owner = hold->owner != 0 ? hold->owner : hold->reserved_for;
        note->took_ns = hold->owner != 0 ? step->now_ns - hold->since_ns : 0;
        note->hold = hold;
    }
    if (hold->owner == 0) {
        snk_step_free_hold(step, hold);
    } else {
        hold->levels = (uint16_t)levels;
        snk_list_append(&machine->lost, &hold->link);
        snk_machine_wake_owner(step, hold->owner);
    }
    if (!SNK_BUGGY(21))
        snk_machine_wake_seeker(step);
}

void snk_hold_settle(snk_step *step)
{
    snk_machine *machine = step->machine;
    snk_hold *hold = machine->hold;
    if (hold == NULL || snk_deadline_holds(&machine->deadline, step->now_ns))
        return;
    /*
     * The store may keep the claim for a while yet, because a renewal in flight may have prolonged it. It is told to
     * forget it, but only when the lease that we believed in is over by every clock: until then it shields writes that
     * the holder began in good faith.
     */
    if (hold->terms.forget_on_loss)
        snk_step_chase(step, &hold->claim, hold->terms.lease_ns,
                       SNK_BUGGY(33) ? 0 : step->now_ns + hold->terms.lease_ns / SNK_DRIFT_DIVISOR + SNK_MARGIN_NS,
                       false);
    /* A renewal that was due and not even sent: nobody was there to send it. */
    bool paused = hold->renewal.failures == 0 && hold->renewal.next_at_ns <= step->now_ns;
    snk_hold_lose(step, paused ? SNECK_CAUSE_PAUSED : SNECK_CAUSE_EXPIRED);
}

static void release_lost(snk_step *step, snk_hold *hold)
{
    hold->levels = SNK_BUGGY(20) ? 0 : (uint16_t)(hold->levels - 1);
    if (hold->levels == 0) {
        snk_list_remove(&hold->link);
        snk_reserve_on_debt_paid(step, hold->owner);
        snk_step_free_hold(step, hold);
    }
    (void)snk_fail(&step->actions->release, SNECK_LOST, 0,
                   "the lock was lost before it was released; somebody else may have held it since");
}

void snk_hold_revoke(snk_step *step, uint64_t owner, uint64_t token, sneck_cause cause)
{
    const snk_hold *hold = step->machine->hold;
    if (hold == NULL || hold->owner != owner || owner == 0 || hold->token != token)
        return;
    /* Its owner is told, and may yet write something: from here on only the token protects. That was asked for. */
    if (!SNK_BUGGY(92)) {
        snk_step_chase(step, &hold->claim, hold->terms.lease_ns, 0, false);
        step->actions->sends[step->actions->send_count - 1].is_remedy = true;
    }
    snk_hold_lose(step, cause);
}

/* ---- Beginning, re-entry ---- */

void snk_hold_reenter(snk_step *step, snk_waiter *waiter)
{
    snk_machine *machine = step->machine;
    uint32_t levels = snk_state_levels(machine);
    if (!waiter->reentrant) {
        static const char why[] = "the caller holds this lock already; waiting would never end";
        snk_step_decide_as(step, waiter, SNECK_DEADLOCK, why);
        (void)snk_step_note(step, SNECK_EVENT_DEADLOCK, machine->hold->token, SNECK_DEADLOCK, why);
        return;
    }
    if (levels >= SNK_HOLDS_MAX && !SNK_BUGGY(16)) {
        snk_step_decide_as(step, waiter, SNECK_LIMIT, "the caller holds this lock 255 times already");
        return;
    }
    set_state(machine, true, levels + 1, state_handoffs(machine));
    waiter->token = machine->hold->token;
    snk_step_decide_as(step, waiter, SNECK_OK, "");
}

void snk_hold_begin(snk_step *step, snk_waiter *waiter, const snk_gift *gift)
{
    snk_machine *machine = step->machine;
    snk_hold *hold = waiter->hold;
    assert(hold != NULL && machine->hold == NULL);
    waiter->hold = NULL;
    *hold = (snk_hold){
        .claim = gift->claim,
        .terms = waiter->terms,
        .owner = waiter->owner,
        .token = gift->token_first,
        .token_first = gift->token_first,
        .token_last = gift->token_last,
        .units = gift->units,
        .granted_at_ns = step->now_ns,
        .since_ns = step->now_ns,
        .thread = waiter->thread,
    };
    machine->hold = hold;
    int64_t counts_from_ns = SNK_BUGGY(3) ? step->now_ns : gift->counts_from_ns;
    snk_deadline_set(&machine->deadline, snk_deadline_of(counts_from_ns, gift->lease_ns));
    if (gift->offered && !SNK_BUGGY(40))
        snk_renewal_begin_offer(&hold->renewal, waiter->terms.renew_ns,
                                step->now_ns + gift->lease_ns / SNK_CONFIRM_DIVISOR);
    else
        snk_renewal_begin(&hold->renewal, waiter->terms.renew_ns, gift->counts_from_ns);
    set_state(machine, true, waiter->reserves && !SNK_BUGGY(90) ? 0 : 1, 0);
    waiter->token = hold->token;
    snk_step_decide_as(step, waiter, SNECK_OK, "");
    if (waiter->reserves) {
        snk_reserve_begin(step, waiter);
        return;
    }
    snk_step_note(step, SNECK_EVENT_ACQUIRED, hold->token, SNECK_OK, "")->took_ns = step->now_ns - waiter->asked_at_ns;
    snk_machine_wake_owner(step, hold->owner);
}

/* ---- Local hand-off ---- */

/* The first waiter that could have this hold by hand-off: one whose claim is in the store already gets it from there. */
static snk_waiter *find_heir(const snk_machine *machine)
{
    for (snk_link *link = snk_list_first(&machine->waiters); link != NULL;
         link = snk_list_next(&machine->waiters, link)) {
        snk_waiter *waiter = SNK_CONTAINER(link, snk_waiter, link);
        if (!waiter->terms.fair && !waiter->once && !waiter->interrupted && !waiter->reserves &&
            !snk_seek_is_active(&waiter->seek) && snk_terms_match(&waiter->terms, &machine->hold->terms) &&
            snk_hold_find_lost(machine, waiter->owner) == NULL)
            return waiter;
    }
    return NULL;
}

static bool has_handoff_budget(const snk_step *step)
{
    const snk_machine *machine = step->machine;
    const snk_hold *hold = machine->hold;
    int64_t left_ns = snk_deadline_peek(&machine->deadline) - step->now_ns;
    int64_t lease_ns = snk_hold_lease_ns(hold);
    return !machine->closing && !hold->terms.fair && (hold->token < hold->token_last || SNK_BUGGY(25)) &&
           step->now_ns - hold->granted_at_ns < SNK_HANDOFF_TIME_NS && left_ns > lease_ns / 3;
}

bool snk_hold_is_takeable(const snk_step *step, const snk_waiter *waiter)
{
    const snk_machine *machine = step->machine;
    if (snk_reserve_is_takeable(machine, waiter))
        return true;
    if (!snk_hold_is_idle(machine) || waiter->terms.fair || waiter->reserves || snk_seek_is_active(&waiter->seek) ||
        !snk_terms_match(&waiter->terms, &machine->hold->terms))
        return false;
    const snk_waiter *heir = find_heir(machine);
    return heir == NULL || heir == waiter || step->now_ns - heir->passed_over_since_ns < SNK_BARGE_TIME_NS;
}

void snk_hold_take(snk_step *step, snk_waiter *waiter)
{
    snk_machine *machine = step->machine;
    snk_hold *hold = machine->hold;
    bool reserved = snk_reserve_is_there(machine); /* its token has not been anybody's yet */
    int64_t idle_ns = step->now_ns - hold->since_ns;
    hold->owner = waiter->owner;
    hold->reserved_for = 0;
    hold->thread = waiter->thread;
    hold->terms.care = waiter->terms.care;
    hold->since_ns = step->now_ns;
    if (!reserved && !SNK_BUGGY(9))
        hold->token++;
    set_state(machine, true, 1, state_handoffs(machine) + (reserved ? 0 : 1));
    waiter->token = hold->token;
    snk_step_decide_as(step, waiter, SNECK_OK, "");
    snk_note *note = snk_step_note(step, SNECK_EVENT_ACQUIRED, hold->token, SNECK_OK, "");
    note->took_ns = step->now_ns - waiter->asked_at_ns;
    note->delay_ns = reserved ? -1 : idle_ns;
    snk_machine_wake_owner(step, hold->owner);
}

/* Keeps the claim for the first waiter and wakes it; one that was passed over for long enough is served at once. */
static bool hand_off(snk_step *step)
{
    snk_machine *machine = step->machine;
    snk_waiter *heir = find_heir(machine);
    if (heir == NULL || !has_handoff_budget(step))
        return false;
    machine->hold->owner = 0;
    machine->hold->since_ns = step->now_ns;
    set_state(machine, true, 0, state_handoffs(machine));
    if (heir->passed_over_since_ns == 0)
        heir->passed_over_since_ns = step->now_ns;
    if (step->now_ns - heir->passed_over_since_ns >= SNK_BARGE_TIME_NS)
        snk_hold_take(step, heir);
    else
        snk_step_wake(step, heir);
    return true;
}

void snk_hold_pass_idle(snk_step *step)
{
    if (!snk_hold_is_idle(step->machine) || SNK_BUGGY(12))
        return;
    snk_waiter *heir = find_heir(step->machine);
    if (heir == NULL) {
        snk_hold_give_back(step);
        return;
    }
    if (heir->passed_over_since_ns == 0)
        heir->passed_over_since_ns = step->now_ns;
    snk_step_wake(step, heir);
}

/* ---- Release, extension ---- */

void snk_hold_give_back(snk_step *step)
{
    snk_machine *machine = step->machine;
    snk_hold *hold = machine->hold;
    snk_send *send = snk_step_send(step, SNK_ASK_RELEASE, &hold->claim, hold->terms.lease_ns);
    send->was_held = true;
    send->ends_hold = !hold->terms.is_unused || SNK_BUGGY(152);
    send->token = hold->owner != 0 ? hold->token : 0;
    send->token_first = hold->token_first;
    send->is_watched = hold->terms.care.watchdog_ms > 0;
    machine->contended = state_handoffs(machine) > 0;
    machine->releasing++;
    end_hold(machine, SNK_DEADLINE_NONE);
    snk_step_free_hold(step, hold);
}

void snk_hold_release(snk_step *step, uint64_t owner)
{
    snk_machine *machine = step->machine;
    snk_hold *lost = snk_hold_find_lost(machine, owner);
    if (lost != NULL && !SNK_BUGGY(5)) {
        release_lost(step, lost);
        return;
    }
    if (machine->hold == NULL || (machine->hold->owner != owner && !SNK_BUGGY(5))) {
        (void)snk_fail(&step->actions->release, SNECK_NOT_OWNER, 0, "the caller does not hold this lock");
        snk_reserve_drop(step, owner);
        return;
    }
    uint32_t levels = snk_state_levels(machine);
    if (levels > 1) {
        set_state(machine, true, levels - 1, state_handoffs(machine));
        return;
    }
    snk_step_note(step, SNECK_EVENT_RELEASED, machine->hold->token, SNECK_OK, "")->took_ns =
        step->now_ns - machine->hold->since_ns;
    if (hand_off(step))
        return;
    snk_hold_give_back(step);
    step->actions->pending = true;
}

void snk_hold_forget_owner(snk_step *step, uint64_t owner)
{
    snk_machine *machine = step->machine;
    snk_reserve_cancel(step, owner);
    snk_hold *lost = snk_hold_find_lost(machine, owner);
    if (lost != NULL) {
        snk_list_remove(&lost->link);
        snk_step_free_hold(step, lost);
    }
    snk_reserve_drop(step, owner);
    if (machine->hold == NULL || machine->hold->owner != owner)
        return;
    snk_note *note =
        snk_step_note(step, SNECK_EVENT_RELEASED, machine->hold->token, SNECK_OK, text_of_loss(SNECK_CAUSE_OWNER_DIED));
    note->cause = SNECK_CAUSE_OWNER_DIED;
    note->took_ns = step->now_ns - machine->hold->since_ns;
    if (hand_off(step))
        return;
    snk_hold_give_back(step);
    step->actions->pending = true;
}

void snk_hold_extend(snk_step *step, uint64_t owner, int64_t lease_ns)
{
    snk_machine *machine = step->machine;
    if (snk_hold_find_lost(machine, owner) != NULL) {
        (void)snk_fail(&step->actions->release, SNECK_LOST, 0, "the lock was lost; it cannot be prolonged");
        return;
    }
    if (machine->hold == NULL || machine->hold->owner != owner) {
        (void)snk_fail(&step->actions->release, SNECK_NOT_OWNER, 0, "the caller does not hold this lock");
        return;
    }
    (void)snk_step_send(step, SNK_ASK_RENEW, &machine->hold->claim, lease_ns);
    if (SNK_BUGGY(23))
        (void)snk_deadline_raise(&machine->deadline, step->now_ns, snk_deadline_of(step->now_ns, lease_ns));
    step->actions->pending = true;
}
