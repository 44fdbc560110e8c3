/*
 * A lock that was lost and acquired again in the background, for the owner that lost it.
 *
 * It is not the owner's: as long as that one has levels of the lost hold left, every call says LOST, and afterwards only
 * its next acquire makes the new hold its own, with the new token. Until then the hold belongs to nobody (owner 0) and
 * is reserved: renewed, passed on to nobody else, and given back when the owner has not come for it one lease after it
 * has released the last level, when it releases once more, or when it is gone.
 */
#include "base/clock.h"
#include "engine/parts.h"

bool snk_reserve_is_there(const snk_machine *machine)
{
    return machine->hold != NULL && machine->hold->reserved_for != 0;
}

static bool is_for(const snk_machine *machine, uint64_t owner)
{
    return snk_reserve_is_there(machine) && machine->hold->reserved_for == owner;
}

bool snk_reserve_is_takeable(const snk_machine *machine, const snk_waiter *waiter)
{
    bool is_his = is_for(machine, waiter->owner) || (SNK_BUGGY(94) && snk_reserve_is_there(machine));
    return is_his && !waiter->reserves && !snk_seek_is_active(&waiter->seek) &&
           snk_hold_find_lost(machine, waiter->owner) == NULL && snk_terms_match(&waiter->terms, &machine->hold->terms);
}

/* Not for ever: an owner that has nothing to release any more may not want it. */
static void limit(snk_step *step)
{
    snk_hold *hold = step->machine->hold;
    hold->since_ns = SNK_BUGGY(91) ? SNK_NEVER_NS : snk_time_add(step->now_ns, hold->terms.lease_ns);
}

void snk_reserve_begin(snk_step *step, snk_waiter *waiter)
{
    snk_machine *machine = step->machine;
    snk_hold *hold = machine->hold;
    hold->owner = SNK_BUGGY(90) ? waiter->owner : 0;
    hold->reserved_for = waiter->owner;
    hold->since_ns = SNK_NEVER_NS;
    if (snk_hold_find_lost(machine, waiter->owner) == NULL)
        limit(step);
    snk_note *note = snk_step_note(step, SNECK_EVENT_RECOVERED, hold->token, SNECK_OK,
                                   "acquired again; the owner's next acquire takes it over");
    note->owner = waiter->owner;
    snk_machine_wake_owner(step, waiter->owner);
}

void snk_reserve_drop(snk_step *step, uint64_t owner)
{
    if (is_for(step->machine, owner) && snk_hold_find_lost(step->machine, owner) == NULL)
        snk_hold_give_back(step);
}

void snk_reserve_cancel(snk_step *step, uint64_t owner)
{
    const snk_list *waiters = &step->machine->waiters;
    snk_link *next = NULL;
    for (snk_link *link = snk_list_first(waiters); link != NULL; link = next) {
        next = snk_list_next(waiters, link);
        snk_waiter *waiter = SNK_CONTAINER(link, snk_waiter, link);
        if (!waiter->reserves || waiter->owner != owner)
            continue;
        snk_seek_leave(step, waiter);
        snk_step_decide_as(step, waiter, SNECK_CANCELED, "the owner for which it was to be acquired again is gone");
        snk_machine_wake_seeker(step);
    }
}

void snk_reserve_on_debt_paid(snk_step *step, uint64_t owner)
{
    if (is_for(step->machine, owner))
        limit(step);
}

int64_t snk_reserve_timer_ns(const snk_machine *machine)
{
    return snk_reserve_is_there(machine) ? machine->hold->since_ns : SNK_NEVER_NS;
}

void snk_reserve_on_timer(snk_step *step)
{
    if (snk_reserve_timer_ns(step->machine) <= step->now_ns)
        snk_hold_give_back(step);
}

bool snk_reserve_decide(snk_step *step, snk_waiter *waiter)
{
    const snk_hold *hold = step->machine->hold;
    if (hold == NULL || (hold->owner != waiter->owner && hold->reserved_for != waiter->owner))
        return false;
    snk_seek_leave(step, waiter);
    snk_step_decide_as(step, waiter, SNECK_CANCELED, "the owner has the lock again");
    return true;
}
