/* Tries to get the votes of a majority for a claim: engine/ballot.h, with the nodes. */
#ifndef SNK_STORE_QUORUM_TRIES_H
#define SNK_STORE_QUORUM_TRIES_H

#include "store/quorum/operation.h"

/*
 * A try of a claim as an operation, ready for its first round; NULL: `answer` says why not. An acquire enters the claim
 * into the table; a renew is another try of one that waits there.
 */
snk_operation *snk_try_begin(snk_quorum_store *store, const snk_claim *claim, const snk_quorum_claim *known,
                             snk_answer *answer);

/* Makes the next round of it. False: `answer` says why not; it must be aborted. */
bool snk_try_next(snk_operation *operation, const snk_claim *claim, snk_answer *answer);

/* It ends without another round: what must be taken back is on its way, and the claim is forgotten. */
void snk_try_abort(snk_operation *operation);

/* What follows when a try is decided. */
typedef enum snk_try_sequel {
    SNK_TRY_OVER,   /* `answer` is the engine's, and what must be taken back is on its way */
    SNK_TRY_AGAIN,  /* another round, after `*pause_ns_out` */
    SNK_TRY_LISTENS /* as OVER; but it listens for messages since just now, so another try will tell what it missed */
} snk_try_sequel;

snk_try_sequel snk_try_end(snk_operation *operation, snk_answer *answer, int64_t *pause_ns_out);

#endif
