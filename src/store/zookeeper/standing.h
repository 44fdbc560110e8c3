/* Where a claim stands in its queue: whether it is let in, and if not, what to watch until it may be. */
#ifndef SNK_STORE_ZOOKEEPER_STANDING_H
#define SNK_STORE_ZOOKEEPER_STANDING_H

#include "store/zookeeper/zookeeper.h"

typedef struct snk_zk_standing {
    bool is_there; /* its node is */
    bool is_let_in;
    uint32_t units;               /* let in: how many it has */
    bool is_next;                 /* when what is watched has gone, it is let in */
    bool watches_all;             /* the queue and the count are watched already */
    bool watches_data;            /* `watch` may also change instead of going */
    char watch[SNK_ZK_NODE_SIZE]; /* the node to watch */
    char first[SNK_ZK_NODE_SIZE]; /* the first of the queue */
} snk_zk_standing;

/* By the children of its folder alone; for who holds alone or shares. */
bool snk_zk_stand_in(const snk_zk_claim *claim, const snk_zk_reply *list, snk_zk_standing *standing);

/* Asks for what it needs. */
snk_zk_outcome snk_zk_stand(snk_zk_store *store, const snk_zk_claim *claim, int64_t until_ns, snk_zk_standing *standing,
                            int *rc_out);

#endif
