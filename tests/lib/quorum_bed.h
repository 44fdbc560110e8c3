/*
 * What tests of a quorum stand on: several servers with the user that docs/redis.md describes. Their longest lease is
 * short, so that they count soon after they were started.
 */
#ifndef SNK_TEST_QUORUM_BED_H
#define SNK_TEST_QUORUM_BED_H

#include "proxy.h"
#include "redis_bed.h"

#define QUORUM_NODES 5
#define QUORUM_MAJORITY 3
/* Unless the bed is started with another one. */
#define QUORUM_LEASE_MAX_MS 3000

typedef struct quorum_bed {
    int64_t lease_max_ms;
    redis_bed nodes[QUORUM_NODES];
    fault_proxy proxies[QUORUM_NODES];
    bool has_proxies;
} quorum_bed;

/* Starts all nodes; they do not count yet. */
void quorum_bed_start(quorum_bed *bed, int64_t lease_max_ms);
void quorum_bed_stop(quorum_bed *bed);

/* The same with a proxy before each node; URLs lead through them. */
void quorum_bed_start_proxies(quorum_bed *bed);

/*
 * The bed of a whole test program, with proxies or without: which it is, and what starts it, so that all nodes count, and
 * stops it (for cmocka_run_group_tests).
 */
void quorum_bed_choose(quorum_bed *bed, int64_t lease_max_ms, bool has_proxies);
int quorum_bed_set_up(void **state);
int quorum_bed_tear_down(void **state);

/* Waits until all nodes that run count, as if they had been in use for long. */
void quorum_bed_await_ripe(quorum_bed *bed);

/* The URL with more query keys ("announce=off", or NULL); static memory. */
const char *quorum_bed_url(const quorum_bed *bed, const char *keys);
sneck_client *quorum_bed_open(const quorum_bed *bed, const char *keys);

/* Deletes everything but what says since when a node is in use. */
void quorum_bed_clear(quorum_bed *bed);

/* Ends a node as a crash does, without its data. */
void quorum_bed_kill(quorum_bed *bed, uint32_t node);
/* Starts it again, empty. */
void quorum_bed_revive(quorum_bed *bed, uint32_t node);
/* Stops and continues a node. */
void quorum_bed_freeze(quorum_bed *bed, uint32_t node);
void quorum_bed_thaw(quorum_bed *bed, uint32_t node);

/* On how many nodes a lock has a vote; those that are down or stopped do not count. */
uint32_t quorum_bed_votes(quorum_bed *bed, const char *name);
/* Waits until that is so. */
void quorum_bed_await_votes(quorum_bed *bed, const char *name, uint32_t votes);

#endif
