/* The slots of a cluster: which server has which. Reading what servers say about it. */
#ifndef SNK_REDIS_MAP_H
#define SNK_REDIS_MAP_H

#include "redis/topology_parts.h"

#define SNK_MAP_NOBODY UINT16_MAX

typedef struct snk_map {
    uint16_t owners[SNK_REDIS_SLOTS]; /* index in topology.nodes, or SNK_MAP_NOBODY; under topology.mutex */
} snk_map;

/* A range of slots, as CLUSTER SLOTS tells it. */
typedef struct snk_map_range {
    uint16_t first;
    uint16_t last;
    unsigned replicas;
    snk_redis_address address;
} snk_map_range;

/*
 * Reads an answer to CLUSTER SLOTS that came from `from`: an array of `*count_out` ranges, to be freed; NULL when it
 * makes no sense, or without memory. `*slots_out`: how many slots it covers.
 */
snk_map_range *snk_map_read(const redisReply *reply, const char *from, size_t *count_out, size_t *slots_out);

#endif
