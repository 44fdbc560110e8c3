/*
 * One script on one node. A server that does not know the script is taught it on the way: that answer proves that it
 * did not run.
 */
#ifndef SNK_STORE_QUORUM_ERRAND_H
#define SNK_STORE_QUORUM_ERRAND_H

#include "store/quorum/quorum.h"
#include "store/quorum/run.h"

typedef struct snk_errand {
    snk_redis_call call;
    snk_quorum_node *node;
    snk_node_script script;
    bool is_sent_again;
    void (*done)(struct snk_errand *errand); /* once, as snk_redis_call.done; may submit the errand again */
} snk_errand;

void snk_errand_init(snk_errand *errand, snk_quorum_node *node, snk_node_script script,
                     void (*done)(snk_errand *errand));

/* Sends errands, all of the same node, which have been formatted. */
void snk_errands_submit(snk_errand *const errands[], size_t count);

/* The same errand once more; at once, or later. */
void snk_errand_repeat(snk_errand *errand);
void snk_errand_repeat_later(snk_errand *errand, int64_t at_ns);

#endif
