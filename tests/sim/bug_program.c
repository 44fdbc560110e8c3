#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "program.h"

#define SEEDS_MAX 20000

static bool is_caught(const sim_subject *subject, sim_batch *batch)
{
    *batch = (sim_batch){ .subject = subject, .from = 1, .count = SEEDS_MAX, .threads = 1 };
    return sim_batch_run(batch) && batch->failed;
}

static int run_all(const sim_subject *subject, int *bug, const sim_bug_entry bugs[], size_t count)
{
    int missed = 0;
    printf("1..%zu\n", count);
    for (size_t i = 0; i < count; i++) {
        sim_batch batch;
        *bug = bugs[i].number;
        bool caught = is_caught(subject, &batch);
        missed += !caught;
        printf("%s %zu - bug %d (%s: %s) is caught\n", caught ? "ok" : "not ok", i + 1, bugs[i].number, bugs[i].rule,
               bugs[i].text);
        if (caught)
            printf("# after %" PRIu64 " seeds by %s\n", batch.failed_seed, batch.failure);
        else
            printf("# %d seeds found nothing\n", SEEDS_MAX);
    }
    printf("# figure: %s: %zu of %zu deliberate bugs caught\n", subject->program, count - (size_t)missed, count);
    return missed == 0 ? 0 : 1;
}

int sim_bug_program(const sim_subject *subject, int *bug, const sim_bug_entry bugs[], size_t count, int argc,
                    char **argv)
{
    if (argc == 1)
        return run_all(subject, bug, bugs, count);
    *bug = (int)strtol(argv[1], NULL, 10);
    if (argc > 2)
        return sim_seed_run(subject, strtoull(argv[2], NULL, 0), true);
    sim_batch batch;
    if (!is_caught(subject, &batch)) {
        printf("bug %d: %d seeds found nothing\n", *bug, SEEDS_MAX);
        return 1;
    }
    printf("bug %d: seed %" PRIu64 ": %s\nreplay: %s-bugs %d %" PRIu64 "\n", *bug, batch.failed_seed, batch.failure,
           subject->program, *bug, batch.failed_seed);
    return 0;
}
