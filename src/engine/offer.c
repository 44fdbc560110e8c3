/*
 * Claims that the store says it has granted, by a message that cost no question.
 *
 * The message may come late, again, or from a server that is no longer the one that counts; so it is not believed for
 * what it says about time. What is certain: the claim still waited when the store executed the last request that it
 * answered with "queued", so the grant came after that request had left, and the offer lives at least its full life
 * counted from there, on the server that answered. The first acquire counts also while it is not answered: nothing else
 * can have put the claim into the queue. A message that somebody forges lacks the claim's id, which only this client and
 * the store know.
 *
 * In every other case the waiter asks first.
 */
#include "engine/parts.h"

int64_t snk_offer_life_ns(int64_t lease_ns)
{
    return lease_ns < SNK_OFFER_NS ? lease_ns : SNK_OFFER_NS;
}

/* Nothing in this process speaks against a hold of this waiter. */
static bool is_wanted(const snk_step *step, const snk_waiter *waiter)
{
    const snk_machine *machine = step->machine;
    /* A hold that we still believe in is ended by the store's answer, not by a message about another claim. */
    return machine->hold == NULL && !machine->closing && !waiter->interrupted &&
           snk_hold_find_lost(machine, waiter->owner) == NULL;
}

/* The server that made the grant is the one that said that the claim waits. */
static bool is_from_same_server(const snk_seek *seek, const snk_grant *grant)
{
    switch (seek->state) {
    case SNK_SEEK_ACQUIRING:
        return grant->run != 0;
    case SNK_SEEK_QUEUED:
    case SNK_SEEK_ASKING:
        return grant->run != 0 && (grant->run == seek->run || SNK_BUGGY(37));
    case SNK_SEEK_NONE:
    case SNK_SEEK_UNSURE:
    case SNK_SEEK_UNSURE_ASKING:
    case SNK_SEEK_BACKING_OFF:
        break;
    }
    return false;
}

/* Enough is left of the offer for the renewal that must follow, even if that is slow: half of it. */
static bool has_time(const snk_step *step, const snk_gift *gift)
{
    int64_t left_ns = snk_deadline_of(gift->counts_from_ns, gift->lease_ns) - step->now_ns;
    return left_ns >= snk_deadline_of(0, gift->lease_ns) / 2 || SNK_BUGGY(38);
}

void snk_offer_heard(snk_step *step, snk_waiter *waiter, const snk_grant *grant)
{
    const snk_seek *seek = &waiter->seek;
    snk_gift gift = {
        .claim = seek->claim,
        .token_first = grant->token_first,
        .token_last = grant->token_last,
        .lease_ns = SNK_BUGGY(43) ? seek->lease_ns : snk_offer_life_ns(seek->lease_ns),
        .counts_from_ns = SNK_BUGGY(36) ? step->now_ns : seek->waits_since_ns,
        .offered = true,
    };
    if (SNK_BUGGY(42) && step->machine->hold != NULL)
        snk_hold_lose(step, SNECK_CAUSE_GONE);
    if (!is_wanted(step, waiter) || !is_from_same_server(seek, grant) || !has_time(step, &gift)) {
        snk_seek_look(step, waiter);
        return;
    }
    snk_hold_begin(step, waiter, &gift);
    snk_machine_wake_seeker(step);
}
