/* The configuration of a topology, copied: servers are made from it as long as it lives. */
#ifndef SNK_REDIS_PLAN_H
#define SNK_REDIS_PLAN_H

#include "redis/topology.h"

#define SNK_PLAN_TEXTS 10

typedef struct snk_plan {
    snk_topology_kind kind;
    snk_redis_config server;   /* its texts are those below; so are those of the next */
    snk_redis_config sentinel; /* without database and listener */
    void (*displaced)(void *context, const uint8_t slots[SNK_REDIS_SLOTS / 8]); /* with the listener's context */
    const char *service;
    snk_redis_address *hosts; /* owned */
    size_t host_count;
    char *texts[SNK_PLAN_TEXTS]; /* owned; passwords among them are wiped when freed */
} snk_plan;

sneck_status snk_plan_init(snk_plan *plan, const snk_topology_config *config, sneck_error *error);
void snk_plan_deinit(snk_plan *plan);

#endif
