#include "batch.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "random.h"

typedef struct worker {
    pthread_t thread;
    void *world;    /* owned */
    sim_batch part; /* its share of the seeds, and what came out */
    atomic_bool *stop;
} worker;

static void note_failure(sim_batch *part, uint64_t seed, const char *invariant, const char *text)
{
    part->failed = true;
    part->failed_seed = seed;
    (void)snprintf(part->failure, sizeof part->failure, "%s: %s", invariant, text);
}

static void run_one(worker *self, uint64_t seed)
{
    sim_batch *part = &self->part;
    const sim_subject *subject = part->subject;
    sim_outcome outcome;
    subject->run(self->world, seed, false, &outcome);
    part->done++;
    part->events += outcome.events;
    part->hash ^= sim_mix64(outcome.hash);
    memcpy(part->probes, outcome.probes, subject->probe_count * sizeof part->probes[0]);
    if (outcome.invariant != NULL) {
        note_failure(part, seed, outcome.invariant, outcome.failure);
        return;
    }
    if (part->replay_every == 0 || seed % part->replay_every != 0)
        return;
    part->replayed++;
    sim_outcome again;
    subject->run(self->world, seed, false, &again);
    if (again.invariant != NULL || again.hash != outcome.hash)
        note_failure(part, seed, "REPLAY", "the same seed took another course");
}

static void *work(void *context)
{
    worker *self = context;
    for (uint64_t i = 0; i < self->part.count && !self->part.failed; i++) {
        if (atomic_load_explicit(self->stop, memory_order_relaxed))
            break;
        run_one(self, self->part.from + i);
    }
    if (self->part.failed)
        atomic_store_explicit(self->stop, true, memory_order_relaxed);
    return NULL;
}

static void add_part(sim_batch *batch, const sim_batch *part)
{
    batch->done += part->done;
    batch->events += part->events;
    batch->replayed += part->replayed;
    batch->hash ^= part->hash;
    for (uint32_t i = 0; i < SIM_PROBES_MAX; i++)
        batch->probes[i] += part->probes[i];
    if (part->failed && (!batch->failed || part->failed_seed < batch->failed_seed)) {
        batch->failed = true;
        batch->failed_seed = part->failed_seed;
        memcpy(batch->failure, part->failure, sizeof batch->failure);
    }
}

static uint32_t start_workers(worker *workers, const sim_batch *batch, uint32_t count, atomic_bool *stop)
{
    uint64_t share = batch->count / count;
    for (uint32_t i = 0; i < count; i++) {
        worker *self = &workers[i];
        self->stop = stop;
        self->part = (sim_batch){
            .subject = batch->subject,
            .from = batch->from + i * share,
            .count = i + 1 == count ? batch->count - i * share : share,
            .replay_every = batch->replay_every,
        };
        self->world = calloc(1, batch->subject->world_size);
        if (self->world == NULL || pthread_create(&self->thread, NULL, work, self) != 0) {
            free(self->world);
            atomic_store_explicit(stop, true, memory_order_relaxed);
            return i;
        }
    }
    return count;
}

bool sim_batch_run(sim_batch *batch)
{
    worker workers[SIM_BATCH_THREADS_MAX];
    uint32_t count = batch->threads < 1 ? 1 : batch->threads;
    if (count > SIM_BATCH_THREADS_MAX)
        count = SIM_BATCH_THREADS_MAX;
    atomic_bool stop = false;
    int64_t begun_ns = snk_now_ns();
    uint32_t started = start_workers(workers, batch, count, &stop);
    for (uint32_t i = 0; i < started; i++) {
        (void)pthread_join(workers[i].thread, NULL);
        add_part(batch, &workers[i].part);
        free(workers[i].world);
    }
    batch->seconds = (double)(snk_now_ns() - begun_ns) / 1e9;
    return started == count;
}

int sim_seed_run(const sim_subject *subject, uint64_t seed, bool tracing)
{
    void *world = calloc(1, subject->world_size);
    if (world == NULL)
        return 1;
    sim_outcome outcome;
    subject->run(world, seed, tracing, &outcome);
    printf("seed %" PRIu64 ": %" PRIu32 " events, trace hash %016" PRIx64 "\n", seed, outcome.events, outcome.hash);
    if (outcome.invariant != NULL)
        printf("VIOLATION of %s: %s\n", outcome.invariant, outcome.failure);
    free(world);
    return outcome.invariant == NULL ? 0 : 1;
}
