/*
 * Commands whose effect must reach replicas before they count: sent on the lane for blocking commands, with one WAIT
 * behind as many of them as came while the last WAIT was under way. So nothing else waits behind a WAIT, and a slow
 * replica slows each of them down once, not one after the other.
 *
 * WAIT says how many replicas have the writes in memory. It does not make the one of them that becomes the master: a
 * replica that has not acknowledged may be promoted.
 */
#ifndef SNK_REDIS_COMMIT_H
#define SNK_REDIS_COMMIT_H

#include <pthread.h>

#include "base/list.h"
#include "redis/redis.h"

typedef enum snk_commit_rule {
    SNK_COMMIT_COUNT,    /* so many replicas */
    SNK_COMMIT_MAJORITY, /* with the master more than half of all */
    SNK_COMMIT_ALL
} snk_commit_rule;

typedef struct snk_commitment {
    /* Set by the caller. */
    snk_commit_rule rule;
    unsigned count;     /* for SNK_COMMIT_COUNT */
    int64_t timeout_ns; /* how long to wait for the replicas */
    /* What came of it, with the call. */
    unsigned needed;
    unsigned acknowledged;
} snk_commitment;

/* How many replicas a rule asks for where there are so many; at least one. */
unsigned snk_commit_needed(const snk_commitment *commitment, unsigned replicas);

/* Those who commit on one server. */
typedef struct snk_commit {
    pthread_mutex_t mutex;  /* a leaf */
    pthread_cond_t changed; /* with mutex: a round is over */
    bool busy;              /* a round is under way; under mutex */
    snk_list waiting;       /* for the next one; under mutex */
} snk_commit;

void snk_commit_init(snk_commit *commit);
void snk_commit_deinit(snk_commit *commit);

/*
 * Sends the call, which has a commitment, and does the I/O or waits until it and the WAIT behind it are done. `replicas`:
 * how many there should be; 0: those that are connected now are counted. As snk_redis_drive, but never cancelled.
 */
void snk_commit_drive(snk_commit *commit, snk_redis *redis, snk_redis_call *call, unsigned replicas);

#endif
