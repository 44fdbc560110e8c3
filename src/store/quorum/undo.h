/*
 * Votes that must not stay on a node are taken back there: again and again until it answers, or until the lease is over
 * in any case. Nobody waits for it.
 */
#ifndef SNK_STORE_QUORUM_UNDO_H
#define SNK_STORE_QUORUM_UNDO_H

#include "store/quorum/quorum.h"
#include "store/quorum/run.h"

/* "<32 hex digits>.<number of the try>" */
#define SNK_ATTEMPT_TEXT_SIZE (SNK_ID_TEXT_SIZE + 12)
#define SNK_ALL_ATTEMPTS UINT32_MAX

/* How a release is said to the nodes. Texts are borrowed. */
typedef struct snk_release_terms {
    const char *name;
    snk_id claim;
    uint32_t attempt;   /* SNK_ALL_ATTEMPTS: whichever of its tries has the vote */
    int64_t lease_ns;   /* with which it was sent: so long it can be on a node, at least */
    bool unanswered;    /* a ballot may arrive after this: it must be refused */
    bool announce;      /* the lock is free by it: the world is told */
    const char *kind;   /* for the log; "": not noted */
    const char *reason; /* for the log; "": why it was taken */
} snk_release_terms;

/* The claim, or one try of it, as it stands on the nodes. */
void snk_attempt_text(const snk_id *claim, uint32_t attempt, char text[SNK_ATTEMPT_TEXT_SIZE]);

typedef struct snk_release_texts {
    snk_keys keys;
    char claim[SNK_ATTEMPT_TEXT_SIZE];
    char tombstone[24];
    snk_quorum_news news;
} snk_release_texts;

/* The words of a release; they are in `texts`. */
sneck_status snk_release_words(snk_quorum_store *store, const snk_release_terms *terms, snk_release_texts *texts,
                               snk_node_words *words, sneck_error *error);

/* Starts it; without memory, or with too many on the way, it is left to the lease. */
void snk_undo_start(snk_quorum_store *store, uint32_t node, const snk_release_terms *terms);
/* The same on a set of nodes; on those of `unanswered` with a tombstone. */
void snk_undo_start_all(snk_quorum_store *store, uint32_t nodes, uint32_t unanswered, const snk_release_terms *terms);

#endif
