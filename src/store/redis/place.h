/* Where a Redis store is, as its URL says: how many servers, of which kind, and which of them are known beforehand. */
#ifndef SNK_STORE_REDIS_PLACE_H
#define SNK_STORE_REDIS_PLACE_H

#include "base/url.h"
#include "redis/topology.h"

#define SNK_SERVICE_SIZE 128

typedef struct snk_place {
    snk_topology_kind kind;
    bool tls;
    const char *unix_path; /* borrowed from the URL; NULL: hosts */
    snk_redis_address hosts[SNK_URL_HOSTS_MAX];
    size_t host_count;
    char service[SNK_SERVICE_SIZE]; /* SENTINEL */
    int database;
    char text[128]; /* for messages: "redis 10.0.0.5:6379", "redis cluster 10.0.0.5:6379,…" */
} snk_place;

/* SNECK_INVALID with a message that says how such a URL is written. No network I/O. */
sneck_status snk_place_load(snk_place *place, const snk_url *url, sneck_error *error);

#endif
