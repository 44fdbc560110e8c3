/* Requests about claims as calls, and what came of a call as an answer. */
#ifndef SNK_STORE_REDIS_CLAIMS_H
#define SNK_STORE_REDIS_CLAIMS_H

#include "store/redis/redis.h"

/* The request as a call; `with_text`: with the text of its script. */
sneck_status snk_claim_format(const snk_redis_store *store, const snk_claim *claim, bool with_text,
                              snk_redis_call *call, sneck_error *error);

/* The same, before it leaves for the first time: whoever may come to wait is in the table, and whoever leaves is not. */
sneck_status snk_claim_prepare(snk_redis_store *store, const snk_claim *claim, snk_answer *answer, snk_redis_call *call,
                               sneck_error *error);
/* Before an acquire leaves for the first time: whoever may come to wait, or may be forgotten, is in the table. */
bool snk_claim_keep_track(snk_redis_store *store, const snk_claim *claim, uint16_t slot);

/* What came of it. Keeps the table of claims in step with what the store said. */
snk_wake_hearing snk_claim_answer(snk_redis_store *store, const snk_claim *claim, const snk_redis_call *call,
                                  snk_answer *answer);

/* Sends a formatted request and waits, with all that may have to follow. What came of it is in the call. */
void snk_claim_drive(snk_redis_store *store, const snk_claim *claim, snk_redis_call *call);

/* Ends exactly this claim, which may hold the lock. False when nobody knows whether it is gone. */
bool snk_claim_take_back(snk_redis_store *store, const snk_claim *claim);

/* It did not happen. */
void snk_claim_refuse(snk_answer *answer, const sneck_error *error);

/*
 * keep.c: renewing while a cluster moves the keys of a slot. True when what came of the call asks for it: then it was
 * formatted anew, to be sent again. When it came back from that, `snk_keep_settle` makes it what a renewal answers.
 */
bool snk_keep_format(snk_redis_store *store, const snk_claim *claim, bool with_text, snk_redis_call *call);
bool snk_keep_applies(snk_redis_store *store, const snk_claim *claim, const snk_redis_call *call);
void snk_keep_settle(const snk_redis_store *store, snk_redis_call *call);

/*
 * replicas.c: grants that replicas must have too (replicas=). Whether this request may end in one; and the request with
 * its answer: a grant that too few replicas have is given back at once, and did not happen.
 */
bool snk_replicas_are_wanted(snk_redis_store *store, const snk_claim *claim);
snk_wake_hearing snk_replicas_ask(snk_redis_store *store, const snk_claim *claim, snk_redis_call *call,
                                  snk_answer *answer);

/* background.c: a call that nobody waits for in submit. */
void snk_background_submit(snk_redis_store *store, snk_call *call);

#endif
