/* What stands in a lock's hash about the claim that has the vote of a node. */
#ifndef SNK_STORE_QUORUM_FIELDS_H
#define SNK_STORE_QUORUM_FIELDS_H

#include "base/text.h"
#include "store/quorum/run.h"
#include "store/quorum/undo.h"

typedef struct snk_quorum_fields {
    snk_id claim;
    uint32_t attempt;
    int64_t thread;
    const char *why;
} snk_quorum_fields;

typedef struct snk_quorum_texts {
    char claim[SNK_ATTEMPT_TEXT_SIZE];
    char token[SNK_NUMBER_SIZE];
    char owner[SNK_OWNER_LENGTH_MAX + 1];
    const char *why; /* borrowed */
} snk_quorum_texts;

void snk_quorum_texts_make(const snk_quorum_store *store, const snk_quorum_fields *fields, uint64_t token,
                           snk_quorum_texts *texts);

/* Adds the fields and their values, as HSET takes them. */
void snk_quorum_texts_add(const snk_quorum_store *store, const snk_quorum_texts *texts, snk_node_words *words);

/* In ms, rounded up: what a node keeps must not be shorter than what the caller believes. */
static inline int64_t snk_quorum_ms(int64_t ns)
{
    return (ns + SNK_NS_PER_MS - 1) / SNK_NS_PER_MS;
}

#endif
