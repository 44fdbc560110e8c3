/* What is to be done with a call after it came back. */
#ifndef SNK_REDIS_VERDICT_H
#define SNK_REDIS_VERDICT_H

#include "redis/address.h"
#include "redis/call.h"

typedef enum snk_verdict {
    SNK_VERDICT_DONE,  /* what came of it is for the caller */
    SNK_VERDICT_MOVED, /* it did not run: its slot is elsewhere, from now on */
    SNK_VERDICT_ASK,   /* it did not run: elsewhere, this once, with ASKING */
    SNK_VERDICT_SOON,  /* it did not run: again in a moment */
    SNK_VERDICT_LOOK   /* it did not run, and nobody serves it where it went: find out who does */
} snk_verdict;

/*
 * MOVED and ASK fill `to_out`, which the server at `from` has named, and `slot_out`. `sharded`: this is a cluster;
 * elsewhere these two are for the caller to see.
 */
snk_verdict snk_verdict_of(const snk_redis_call *call, bool sharded, const char *from, snk_redis_address *to_out,
                           uint16_t *slot_out);

#endif
