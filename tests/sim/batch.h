/* Many seeds of one simulated world, on several threads. */
#ifndef SIM_BATCH_H
#define SIM_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_PROBES_MAX 96

/* How one seed went. */
typedef struct sim_outcome {
    uint64_t hash; /* of its trace */
    uint32_t events;
    const char *invariant;  /* that was violated; NULL: none */
    const char *failure;    /* what happened then */
    const uint64_t *probes; /* over all seeds of this world so far */
} sim_outcome;

/* A kind of world, and the program that simulates it. */
typedef struct sim_subject {
    const char *program;
    uint64_t seeds_full; /* of ./dev prove; a tenth in an ordinary test */
    size_t world_size;   /* zeroed once, then used for seed after seed */
    void (*run)(void *world, uint64_t seed, bool tracing, sim_outcome *outcome_out);
    uint32_t probe_count; /* things that a batch must have seen at least once */
    const char *const *probe_texts;
    uint32_t counted_probe; /* one of them that an ordinary test must have seen so often; 0 times: none */
    uint64_t counted_min;
    const char *counted_text; /* what that shows */
} sim_subject;

typedef struct sim_batch {
    /* What to do. */
    const sim_subject *subject;
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
    uint64_t probes[SIM_PROBES_MAX];
    bool failed; /* the lowest seed of those that failed: */
    uint64_t failed_seed;
    char failure[320];
} sim_batch;

#define SIM_BATCH_THREADS_MAX 16

/* False when there is not enough memory. It ends soon after the first violation. */
bool sim_batch_run(sim_batch *batch);

/* One seed, with its trace if wanted; says how it went. Returns an exit code. */
int sim_seed_run(const sim_subject *subject, uint64_t seed, bool tracing);

#endif
