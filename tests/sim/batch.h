/* Many seeds, on several threads. */
#ifndef SIM_BATCH_H
#define SIM_BATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "world.h"

typedef struct sim_batch {
    /* What to do. */
    uint64_t from;
    uint64_t count;
    uint32_t threads;
    uint32_t replay_every; /* runs each so-many-th seed twice and compares; 0: none */

    /* What came out. */
    uint64_t done;
    uint64_t events;
    uint64_t replayed;
    uint64_t hash; /* of all traces; does not depend on the number of threads */
    double seconds;
    uint64_t probes[SIM_PROBE_COUNT];
    uint64_t injected; /* pauses, cuts and freezes of somebody who held a lock */
    bool failed;       /* the lowest seed of those that failed: */
    uint64_t failed_seed;
    char failure[320];
} sim_batch;

#define SIM_BATCH_THREADS_MAX 16

/* False when there is not enough memory. It ends soon after the first violation. */
bool sim_batch_run(sim_batch *batch);

const char *sim_probe_text(sim_probe probe);

#endif
