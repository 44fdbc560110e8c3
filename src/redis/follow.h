/*
 * Subscriptions that follow the server which serves their slot: for each channel how often it is wanted, and on which
 * server it is subscribed to now. Everything under topology.mutex.
 */
#ifndef SNK_REDIS_FOLLOW_H
#define SNK_REDIS_FOLLOW_H

#include "base/list.h"
#include "redis/topology.h"

#define SNK_FOLLOW_BUCKETS 64

typedef struct snk_follow {
    snk_link link; /* in its bucket */
    unsigned wanted;
    uint16_t slot;
    bool sharded;
    struct snk_node *node; /* a reference: subscribed to there; NULL: nowhere yet */
    size_t length;
    char name[]; /* ends in NUL, which is not counted */
} snk_follow;

typedef struct snk_follows {
    snk_list buckets[SNK_FOLLOW_BUCKETS]; /* of owned snk_follow */
    size_t count;
} snk_follows;

void snk_follows_init(snk_follows *follows);
/* Forgets all of them; their servers are about to be closed. */
void snk_follows_clear_locked(snk_topology *topology);

/* Moves every subscription to the server for its slot. True when one has none yet. */
bool snk_follows_place_locked(snk_topology *topology);

/* The server does not have the channel, or no longer: it is to be placed anew. True when there is such a channel. */
bool snk_follows_lost_locked(snk_topology *topology, const struct snk_node *node, const char *name, size_t length);

#endif
