/* What all nodes together say about a lock: who has it, by majority, and how the nodes are. */
#ifndef SNK_STORE_QUORUM_SIGHT_H
#define SNK_STORE_QUORUM_SIGHT_H

#include "store/quorum/operation.h"
#include "store/view.h"

typedef struct snk_sight {
    uint32_t silent;      /* nodes that did not answer, as a set */
    uint32_t answered;    /* nodes */
    bool held;            /* a majority has the claim; or those that did not answer could make it one */
    snk_id claim;         /* of the holder; none: a client of another kind */
    uint64_t token;       /* the holder's; when free, the highest that any node knows */
    uint32_t holders;     /* nodes that have it, as a set */
    uint32_t first;       /* one of them */
    int64_t remaining_ms; /* until it has no majority any more */
} snk_sight;

/* `look` is a LOOK that was decided. */
void snk_sight_make(const snk_quorum_store *store, const snk_operation *look, snk_sight *sight);

/* Fills the view in: holder, what happened, nodes. */
void snk_sight_show(snk_quorum_store *store, const snk_operation *look, const snk_sight *sight, snk_view *view);

#endif
