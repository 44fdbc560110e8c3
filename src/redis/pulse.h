/*
 * A sign of life of every server that has keys and is connected: all are asked at once, so that one that is silent is
 * found, whichever it is, and costs no more than its time limit.
 */
#ifndef SNK_REDIS_PULSE_H
#define SNK_REDIS_PULSE_H

#include "redis/topology.h"

typedef struct snk_pulse {
    int64_t timeout_ns; /* of each server */
    /* For each that answered, with its answer to TIME and our wall clock when it came. On the calling thread. */
    void (*answered)(void *context, const snk_redis_call *call, int64_t wall_us);
    void *context;
    unsigned silent; /* set: servers that are connected and did not answer; snk_topology_reconnect is about them */
    unsigned down;   /* set: servers that were connected, or should have been, and are not */
} snk_pulse;

/* SNECK_OK when no server is silent or down. */
sneck_status snk_topology_take_pulse(snk_topology *topology, snk_pulse *pulse, sneck_error *error);

#endif
