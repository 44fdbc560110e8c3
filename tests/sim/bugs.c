/*
 * Shows that the simulator finds bugs: each deliberate one must be caught.
 *
 *     sneck-sim-bugs             as a test: prints TAP, a line a bug
 *     sneck-sim-bugs NUMBER      one bug, with the command that replays it
 *     sneck-sim-bugs NUMBER SEED one bug, one seed, with its trace
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "bug_switch.h"

#include "batch.h"

#define SEEDS_MAX 20000

int sim_bug = 0;

typedef struct sim_bug_entry {
    int number;
    const char *rule; /* of docs/design.md that it takes out, or the invariant that it breaks */
    const char *text;
} sim_bug_entry;

static const sim_bug_entry bugs[] = {
    { 1, "S1", "the deadline lies after the lease" },
    { 2, "S1", "an answer that comes after the deadline revives the hold" },
    { 3, "S1", "a lease counts from when its answer came" },
    { 4, "S1", "a failed renewal is loss" },
    { 5, "I3", "release by a stranger" },
    { 6, "S4", "an acquire that was not answered leaves again with its id" },
    { 7, "S4", "what is given up is not chased" },
    { 8, "S4", "a chase leaves no tombstone" },
    { 9, "I1", "a hand-off keeps the token" },
    { 11, "I6", "news during a request are forgotten" },
    { 12, "I6", "a hold kept for hand-off outlives its heirs" },
    { 13, "S1", "a grant that comes after its deadline is taken" },
    { 14, "I5", "a waiter that gives up stays in the queue" },
    { 16, "I10", "a 256th level" },
    { 17, "S3", "acquire ignores levels of a lost hold" },
    { 20, "S3", "one release pays for all levels of a lost hold" },
    { 21, "I6", "loss wakes nobody" },
    { 22, "I6", "the answer to a release wakes nobody" },
    { 23, "S2", "an extend counts before it is answered" },
    { 24, "S2", "a renewal counts from when its answer came" },
    { 25, "I1", "hand-off beyond the block of tokens" },
    { 26, "I15", "granted after close" },
    { 27, "I5", "a stale grant displaces a newer hold" },
    { 28, "I6", "a waiter without an id does not pass its turn on" },
    { 29, "I16", "silence of the store shown as a timeout" },
    { 30, "I16", "unknown shown as a timeout" },
    { 31, "S1", "a clear answer is not loss" },
    { 32, "I14", "a message alone is loss" },
    { 33, "S1", "a lost claim is released while its lease may last" },
    { 34, "I6", "a waiter that leaves takes its wake-up along" },
    { 35, "I16", "unknown shown as denied" },
    { 36, "S3", "what was acquired again is the owner's at once" },
    { 37, "I6", "what was acquired again, and nobody comes for, is kept for ever" },
    { 38, "I5", "what the watchdog ends stays in the store" },
    { 39, "S1", "a look of the watchdog that fails is loss" },
    { 40, "S3", "what was acquired again goes to anybody" },
    { 41, "S1", "a hold that is given up is released while its lease may last" },
    { 50, "I3", "store: release frees whatever is held" },
    { 51, "S2", "store: renew shortens" },
    { 52, "S4", "store: renew registers unknown claims" },
    { 53, "S4", "store: no tombstone" },
    { 54, "S4", "store: tombstones end early" },
    { 55, "I1", "store: tokens are a counter that can be lost" },
    { 56, "I1", "store: the next block begins inside the last one" },
    { 57, "I6", "store: dead waiters stay" },
    { 58, "I11", "store: the last of the queue comes first" },
    { 59, "I6", "store: an offer never lapses" },
    { 60, "I6", "store: leases end much too late" },
    { 61, "I2", "store: leases end too early" },
    { 62, "S2", "store: renew says held and prolongs nothing" },
    { 63, "I5", "store: release of a queued claim does nothing" },
};

static bool is_caught(const sim_bug_entry *bug, sim_batch *batch)
{
    *batch = (sim_batch){ .from = 1, .count = SEEDS_MAX, .threads = 1 };
    sim_bug = bug->number;
    return sim_batch_run(batch) && batch->failed;
}

static int run_all(void)
{
    size_t count = sizeof bugs / sizeof bugs[0];
    int missed = 0;
    printf("1..%zu\n", count);
    for (size_t i = 0; i < count; i++) {
        sim_batch batch;
        bool caught = is_caught(&bugs[i], &batch);
        missed += !caught;
        printf("%s %zu - bug %d (%s: %s) is caught\n", caught ? "ok" : "not ok", i + 1, bugs[i].number, bugs[i].rule,
               bugs[i].text);
        if (caught)
            printf("# after %" PRIu64 " seeds by %s\n", batch.failed_seed, batch.failure);
        else
            printf("# %d seeds found nothing\n", SEEDS_MAX);
    }
    printf("# figure: simulator: %zu of %zu deliberate bugs caught\n", count - (size_t)missed, count);
    return missed == 0 ? 0 : 1;
}

static int trace(uint64_t seed)
{
    sim_world *world = calloc(1, sizeof *world);
    if (world == NULL)
        return 1;
    world->tracing = true;
    bool good = sim_run(world, seed);
    if (!good)
        printf("VIOLATION of %s: %s\n", world->broken_invariant, world->failure);
    free(world);
    return good ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc == 1)
        return run_all();
    sim_bug = (int)strtol(argv[1], NULL, 10);
    if (argc > 2)
        return trace(strtoull(argv[2], NULL, 0));
    sim_bug_entry bug = { .number = sim_bug };
    sim_batch batch;
    if (!is_caught(&bug, &batch)) {
        printf("bug %d: %d seeds found nothing\n", bug.number, SEEDS_MAX);
        return 1;
    }
    printf("bug %d: seed %" PRIu64 ": %s\nreplay: sneck-sim-bugs %d %" PRIu64 "\n", bug.number, batch.failed_seed,
           batch.failure, bug.number, batch.failed_seed);
    return 0;
}
