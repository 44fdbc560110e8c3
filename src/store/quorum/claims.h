/*
 * The claims of this client that its quorum store knows of: those that are being acquired, that wait, and that hold.
 *
 * Nodes know no queue. A claim that waits is known here alone; each look at it is another try, with a number of its own,
 * so that what a node does late for an earlier one harms nobody. A claim that holds is on the nodes with the try that
 * was granted.
 */
#ifndef SNK_STORE_QUORUM_CLAIMS_H
#define SNK_STORE_QUORUM_CLAIMS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/ids.h"
#include "base/limits.h"
#include "base/list.h"

#define SNK_QUORUM_CLAIM_BUCKETS 256

typedef enum snk_quorum_claim_state {
    SNK_QUORUM_TRYING, /* its first try is not decided */
    SNK_QUORUM_WAITS,
    SNK_QUORUM_HOLDS
} snk_quorum_claim_state;

/* What is known about a claim; copied in and out. */
typedef struct snk_quorum_claim {
    snk_quorum_claim_state state;
    uint32_t attempts;   /* made so far */
    uint32_t held_by;    /* HOLDS: the try that was granted */
    uint64_t token;      /* HOLDS */
    uint64_t above;      /* tokens that are known to be taken */
    uint32_t touched;    /* HOLDS: nodes that may have its vote */
    uint32_t unanswered; /* HOLDS: nodes that may get a vote of this try yet, though nobody will hear of it */
    uint32_t heard;      /* nodes that said, since the last try began, that the lock was released */
    uint32_t free;       /* WAITS: nodes that were nobody's when the last try asked them */
    bool listens;        /* the channel of the lock is subscribed to for it */
    int64_t thread;      /* of the owner */
    char why[SNK_WHY_LENGTH_MAX + 1];
} snk_quorum_claim;

typedef struct snk_quorum_claims {
    pthread_mutex_t mutex;                      /* a leaf */
    snk_list buckets[SNK_QUORUM_CLAIM_BUCKETS]; /* by id; under mutex */
} snk_quorum_claims;

bool snk_quorum_claims_init(snk_quorum_claims *claims);
/* Frees what is left. */
void snk_quorum_claims_deinit(snk_quorum_claims *claims);

/* A claim whose first try begins. False when out of memory. */
bool snk_quorum_claims_add(snk_quorum_claims *claims, const snk_id *id, const char *name, const char *why,
                           int64_t thread);

/* False when there is none. */
bool snk_quorum_claims_find(snk_quorum_claims *claims, const snk_id *id, snk_quorum_claim *claim_out);

/* Another try of a claim that does not hold begins; `claim_out` is as it was before. False when there is none. */
bool snk_quorum_claims_try(snk_quorum_claims *claims, const snk_id *id, snk_quorum_claim *claim_out);

/*
 * The try was granted: the claim holds as `claim` says. `*listens_out`: its channel was subscribed to, which is the
 * caller's to give back. False when it was given up meanwhile.
 */
bool snk_quorum_claims_hold(snk_quorum_claims *claims, const snk_id *id, const snk_quorum_claim *claim,
                            bool *listens_out);

/* Its channel is subscribed to from now on. False when it was already, or there is no such claim. */
bool snk_quorum_claims_listen(snk_quorum_claims *claims, const snk_id *id);

/* What a try that was refused has found out. */
typedef struct snk_quorum_refusal {
    uint64_t above; /* as in snk_quorum_claim */
    uint32_t free;
} snk_quorum_refusal;

/*
 * The try was refused: the claim waits. `*news_out`: the lock was released on so many nodes meanwhile that with those
 * that were free it is a majority: the next try is worth it at once. False when it was given up meanwhile.
 */
bool snk_quorum_claims_wait(snk_quorum_claims *claims, const snk_id *id, const snk_quorum_refusal *refusal,
                            uint32_t majority, bool *news_out);

/*
 * A node may have a vote of the try; with `unanswered` it may get one yet. False when the claim does not hold by that
 * try (any more).
 */
bool snk_quorum_claims_touch(snk_quorum_claims *claims, const snk_id *id, uint32_t attempt, uint32_t node,
                             bool unanswered);

/* Takes a claim on a lock out. False when there was none. */
bool snk_quorum_claims_remove(snk_quorum_claims *claims, const snk_id *id, const char *name,
                              snk_quorum_claim *claim_out);

/*
 * A node says that the lock was released. Calls `ring` for each claim that waits for it and knows by this that a
 * majority is free, with nothing locked.
 */
void snk_quorum_claims_hear(snk_quorum_claims *claims, const char *name, uint32_t node, uint32_t majority,
                            void (*ring)(void *context, const char *name, const snk_id *id), void *context);

#endif
