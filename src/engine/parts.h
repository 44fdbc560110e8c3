/*
 * How the files of the machine work together: machine.c takes events apart, seek.c is about claims that do not hold the
 * lock yet, offer.c about those that the store says it has granted, hold.c about the one that holds, upkeep.c about
 * keeping it, actions.c collects what is to be done. Nobody else includes this.
 */
#ifndef SNK_ENGINE_PARTS_H
#define SNK_ENGINE_PARTS_H

#include "engine/machine.h"

/* One step: the machine, what it wants done, and the time. */
typedef struct snk_step {
    snk_machine *machine;
    snk_actions *actions;
    int64_t now_ns;
} snk_step;

#define SNK_LOST_WITH_LEVELS_LEFT "the caller lost this lock and has levels of it left to release"

/* ---- actions.c ---- */

void snk_step_begin(snk_step *step);
/* The next send of this step, zeroed and with its time set. There is always room: see snk_step_has_room. */
snk_send *snk_step_send(snk_step *step, snk_ask ask, const snk_id *claim, int64_t lease_ns);
/* A release that is repeated until it is answered. */
void snk_step_chase(snk_step *step, const snk_id *claim, int64_t lease_ns, int64_t not_before_ns, bool unanswered);
/* The same for one that was sent and not answered: what it said of the hold still counts. */
void snk_step_repeat_release(snk_step *step, const snk_send *release);
/* Room for what one waiter or hold can need in one go. */
bool snk_step_has_room(const snk_step *step);
/* Something to tell; the caller may add to it. */
snk_note *snk_step_note(snk_step *step, sneck_event_kind kind, uint64_t token, sneck_status status,
                        const char *message);
void snk_step_wake(snk_step *step, snk_waiter *waiter);
void snk_step_free_hold(snk_step *step, snk_hold *hold);
/* The waiter has its result: the machine forgets it. */
void snk_step_decide(snk_step *step, snk_waiter *waiter, const sneck_error *result);
void snk_step_decide_as(snk_step *step, snk_waiter *waiter, sneck_status status, const char *message);

/* ---- machine.c ---- */

bool snk_terms_match(const snk_terms *a, const snk_terms *b);
/* The first waiter that waits (not once) in barging mode, or NULL. */
snk_waiter *snk_machine_first_barging(const snk_machine *machine);
/* Wakes every waiter of an owner: what it has, or has lost, decides them when they resume. */
void snk_machine_wake_owner(snk_step *step, uint64_t owner);
/* Wakes the waiter whose turn it is to seek, if there is one. */
void snk_machine_wake_seeker(snk_step *step);

/* ---- seek.c ---- */

bool snk_seek_is_active(const snk_seek *seek);
/* May this waiter, which has no claim, make one now? */
bool snk_seek_is_allowed(const snk_step *step, const snk_waiter *waiter);
/* Draws an id and sends an acquire. */
void snk_seek_start(snk_step *step, snk_waiter *waiter);
/* Asks the store about the waiter's claim, if it waits there. */
void snk_seek_look(snk_step *step, snk_waiter *waiter);
void snk_seek_answered(snk_step *step, snk_waiter *waiter, const snk_send *send, const snk_answer *answer);
/* The waiter leaves: its claim passes to another waiter, or out of the store. */
void snk_seek_leave(snk_step *step, snk_waiter *waiter);
/* Sends what is due. */
void snk_seek_on_timer(snk_step *step, snk_waiter *waiter);

/* Nobody will bring the answer to a look: it is asked again soon. Should one come after all, it does no harm. */
void snk_seek_abandoned(snk_step *step, snk_waiter *waiter);

/* ---- offer.c ---- */

/* How long an offer to a claim with this lease lives. */
int64_t snk_offer_life_ns(int64_t lease_ns);
/* The store says that it has granted the lock to the waiter's claim: the waiter starts with it, or asks first. */
void snk_offer_heard(snk_step *step, snk_waiter *waiter, const snk_grant *grant);

/* ---- hold.c ---- */

uint32_t snk_state_levels(const snk_machine *machine);
bool snk_hold_is_idle(const snk_machine *machine);
/* What its deadline is counted by: its lease, or the life of the offer that it still is. */
int64_t snk_hold_lease_ns(const snk_hold *hold);
/* Looks at the clock: a hold whose deadline has passed is lost. First thing in each step. */
void snk_hold_settle(snk_step *step);
/* The lost hold of this owner, or NULL. */
snk_hold *snk_hold_find_lost(const snk_machine *machine, uint64_t owner);
/* The owner asks again. */
void snk_hold_reenter(snk_step *step, snk_waiter *waiter);
/* What the store has given a claim. */
typedef struct snk_gift {
    snk_id claim;
    uint64_t token_first;
    uint64_t token_last;
    uint32_t units; /* of a permit, where the store says */
    int64_t lease_ns;
    int64_t counts_from_ns; /* when the lease began, at the latest */
    bool offered;           /* the lease is the life of an offer: a renewal must follow soon */
} snk_gift;
/* The store gave the lock to the waiter's claim, and that is still worth something. */
void snk_hold_begin(snk_step *step, snk_waiter *waiter, const snk_gift *gift);
/* May the waiter have the hold that is kept for local hand-off? */
bool snk_hold_is_takeable(const snk_step *step, const snk_waiter *waiter);
void snk_hold_take(snk_step *step, snk_waiter *waiter);
/* The idle hold lost its heir: the next one, or back to the store. */
void snk_hold_pass_idle(snk_step *step);
void snk_hold_release(snk_step *step, uint64_t owner);
void snk_hold_extend(snk_step *step, uint64_t owner, int64_t lease_ns);
/* Sends the release of the hold's claim; the machine has no hold afterwards. */
void snk_hold_give_back(snk_step *step);
void snk_hold_lose(snk_step *step, sneck_cause cause);
/* The watchdog wants this hold to end. */
void snk_hold_revoke(snk_step *step, uint64_t owner, uint64_t token, sneck_cause cause);
/* The owner will never come again. */
void snk_hold_forget_owner(snk_step *step, uint64_t owner);

/* ---- reserve.c: a lock that was lost and acquired again in the background ---- */

/* The hold is kept for an owner that has lost the lock before. */
bool snk_reserve_is_there(const snk_machine *machine);
/* May this waiter have it? Its terms must match. */
bool snk_reserve_is_takeable(const snk_machine *machine, const snk_waiter *waiter);
/* The store gave the lock to a waiter that reserves: the hold, which has just begun, is kept for its owner. */
void snk_reserve_begin(snk_step *step, snk_waiter *waiter);
/* The owner asks, or releases, or is gone: what is kept for it, and cannot or will not be taken, is given back. */
void snk_reserve_drop(snk_step *step, uint64_t owner);
/* The owner is gone: nobody is to wait on its behalf any more. */
void snk_reserve_cancel(snk_step *step, uint64_t owner);
/* The owner has no levels of the lost hold left: from now on it is kept for one lease. */
void snk_reserve_on_debt_paid(snk_step *step, uint64_t owner);
void snk_reserve_on_timer(snk_step *step);
/* When snk_reserve_on_timer has something to do; SNK_NEVER_NS: never. */
int64_t snk_reserve_timer_ns(const snk_machine *machine);
/* Decides a waiter that reserves and is no longer needed. */
bool snk_reserve_decide(snk_step *step, snk_waiter *waiter);

/* ---- upkeep.c ---- */

/* What the store said to a renewal of the hold, or to a look at it. */
void snk_hold_answered(snk_step *step, const snk_send *send, const snk_answer *answer);
/* Renews it, if that is due. */
void snk_hold_on_timer(snk_step *step);
/* Nobody will bring the answer to a renewal, if one is in flight. */
void snk_hold_abandoned(snk_step *step);

#endif
