#include "base/error.h"
#include "store/redis/claims.h"

/* A renewal of a claim that waits may find that it was granted the lock; one that holds it was waited for already. */
bool snk_replicas_are_wanted(snk_redis_store *store, const snk_claim *claim)
{
    char name[SNK_NAME_LENGTH_MAX + 1];
    if (!store->options.commits)
        return false;
    return claim->send.ask == SNK_ASK_ACQUIRE ||
           (claim->send.ask == SNK_ASK_RENEW && (snk_waiting_find(&store->waiting, &claim->send.claim, name) ||
                                                 snk_waiting_is_condemned(&store->waiting, &claim->send.claim)));
}

/* Gives a claim back. Until that is answered nothing else is asked about it: it may hold the lock, and must not. */
static bool give_back(snk_redis_store *store, const snk_claim *claim, uint16_t slot)
{
    if (snk_claim_take_back(store, claim))
        return true;
    (void)snk_waiting_condemn(&store->waiting, &claim->send.claim, claim->name, slot);
    return false;
}

static snk_wake_hearing ask_condemned(snk_redis_store *store, const snk_claim *claim, uint16_t slot, snk_answer *answer)
{
    if (give_back(store, claim, slot)) {
        answer->kind = SNK_ANSWER_GONE;
        return SNK_WAKE_HEARS;
    }
    answer->kind = SNK_ANSWER_UNCERTAIN;
    (void)snk_fail(&answer->error, SNECK_UNKNOWN, 0,
                   "%s: too few replicas have the lock; it is being given back, and that was not answered",
                   store->where);
    return SNK_WAKE_HEARS;
}

snk_wake_hearing snk_replicas_ask(snk_redis_store *store, const snk_claim *claim, snk_redis_call *call,
                                  snk_answer *answer)
{
    if (claim->send.ask == SNK_ASK_RENEW && snk_waiting_is_condemned(&store->waiting, &claim->send.claim))
        return ask_condemned(store, claim, call->slot, answer);
    snk_commitment commitment = store->options.commitment;
    call->commitment = &commitment;
    snk_claim_drive(store, claim, call);
    call->commitment = NULL;
    snk_wake_hearing hearing = snk_claim_answer(store, claim, call, answer);
    if (answer->kind != SNK_ANSWER_HELD || commitment.acknowledged >= commitment.needed)
        return hearing;
    bool ended = give_back(store, claim, call->slot);
    *answer = (snk_answer){ .kind = ended ? SNK_ANSWER_FAILED : SNK_ANSWER_UNCERTAIN };
    (void)snk_fail(&answer->error, ended ? SNECK_UNAVAILABLE : SNECK_UNKNOWN, 0,
                   "%s: %u of the %u replicas that are needed have the lock; it %s", store->where,
                   commitment.acknowledged, commitment.needed,
                   ended ? "was given back" : "is being given back, and that was not answered");
    return SNK_WAKE_HEARS;
}
