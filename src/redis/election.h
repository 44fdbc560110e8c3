/*
 * Which master to believe in when sentinels disagree. No I/O.
 *
 * A majority of the sentinels there are must have answered. Of their answers the highest configuration epoch counts:
 * only a failover that a majority agreed to has raised it, so whoever has a lower one has not heard of that failover yet,
 * or is cut off from those who made it. Where that leaves several addresses, those sentinels count that can see the
 * master they name.
 */
#ifndef SNK_REDIS_ELECTION_H
#define SNK_REDIS_ELECTION_H

#include "redis/address.h"
#include "redis/call.h"

#define SNK_SENTINELS_MAX 32

typedef struct snk_vote {
    snk_redis_run voter; /* which sentinel this is; 0: not known */
    uint64_t epoch;
    size_t sentinels; /* that it knows, itself included */
    unsigned replicas;
    bool sees; /* it can reach the master it names */
    snk_redis_address master;
} snk_vote;

/*
 * SNECK_OK: the vote to follow. SNECK_UNAVAILABLE: too few, or no agreement. `now` (may be NULL): the master so far,
 * which wins a tie.
 */
sneck_status snk_election_hold(const snk_vote votes[], size_t count, const snk_redis_address *now,
                               const snk_vote **vote_out, sneck_error *error);

#endif
