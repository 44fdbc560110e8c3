#include "program.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEST_SHARE 10
#define REPLAY_EVERY 100

typedef struct sim_options {
    bool one;
    bool trace;
    bool probes;
    bool tap;
    uint64_t seed;
    sim_batch batch;
} sim_options;

static uint64_t number_of(const char *text)
{
    return text == NULL ? 0 : strtoull(text, NULL, 0);
}

static bool parse(int argc, char **argv, sim_options *options)
{
    options->tap = argc == 1;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        bool takes_value = true;
        if (strcmp(argv[i], "--seed") == 0) {
            options->one = true;
            options->seed = number_of(value);
        } else if (strcmp(argv[i], "--seeds") == 0) {
            options->batch.count = number_of(value);
        } else if (strcmp(argv[i], "--from") == 0) {
            options->batch.from = number_of(value);
        } else if (strcmp(argv[i], "-j") == 0) {
            options->batch.threads = (uint32_t)number_of(value);
        } else {
            takes_value = false;
            options->trace |= strcmp(argv[i], "--trace") == 0;
            options->probes |= strcmp(argv[i], "--probes") == 0;
            if (strcmp(argv[i], "--trace") != 0 && strcmp(argv[i], "--probes") != 0)
                return false;
        }
        if (takes_value && value == NULL)
            return false;
        i += takes_value;
    }
    return true;
}

static void print_failure(const sim_batch *batch, const char *prefix)
{
    printf("%sVIOLATION at seed %" PRIu64 ": %s\n", prefix, batch->failed_seed, batch->failure);
    printf("%sreplay: %s --seed %" PRIu64 " --trace\n", prefix, batch->subject->program, batch->failed_seed);
}

static void print_summary(const sim_batch *batch, const char *prefix)
{
    printf("%s%" PRIu64 " seeds, %d violations, %.0f events a seed, %.0f seeds/s, %" PRIu64
           " replayed, trace hash of all %016" PRIx64 "\n",
           prefix, batch->done, batch->failed, (double)batch->events / (double)batch->done,
           (double)batch->done / batch->seconds, batch->replayed, batch->hash);
}

static uint32_t print_probes(const sim_batch *batch, const char *prefix, bool all)
{
    uint32_t unseen = 0;
    for (uint32_t i = 0; i < batch->subject->probe_count; i++) {
        unseen += batch->probes[i] == 0;
        if (all || batch->probes[i] == 0)
            printf("%s%10" PRIu64 "  %s\n", prefix, batch->probes[i], batch->subject->probe_texts[i]);
    }
    return unseen;
}

static int run_batch(sim_options *options)
{
    sim_batch *batch = &options->batch;
    if (!sim_batch_run(batch)) {
        fprintf(stderr, "%s: not enough memory or threads\n", batch->subject->program);
        return 1;
    }
    print_summary(batch, "");
    if (batch->failed)
        print_failure(batch, "");
    uint32_t unseen = print_probes(batch, "", options->probes);
    if (unseen > 0)
        printf("%" PRIu32 " things that must happen sometimes never did\n", unseen);
    return batch->failed || (unseen > 0 && batch->count >= batch->subject->seeds_full / TEST_SHARE) ? 1 : 0;
}

/* What was done so often that its harmlessness is worth a figure. */
static bool has_counted(const sim_batch *batch)
{
    const sim_subject *subject = batch->subject;
    if (subject->counted_min == 0)
        return true;
    uint64_t count = batch->probes[subject->counted_probe];
    bool good = !batch->failed && count >= subject->counted_min;
    printf("# figure: %s: %" PRIu64 " times: %s\n", subject->program, count,
           subject->probe_texts[subject->counted_probe]);
    printf("%s 4 - %s, at least %" PRIu64 " times\n", good ? "ok" : "not ok", subject->counted_text,
           subject->counted_min);
    return good;
}

static int run_tap(sim_options *options)
{
    sim_batch *batch = &options->batch;
    const char *scale = getenv("SNECK_TEST_SCALE");
    if (scale != NULL && strcmp(scale, "1") == 0)
        batch->count = batch->subject->seeds_full;
    batch->threads = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
    const sim_subject *subject = batch->subject;
    printf("1..%d\n", subject->counted_min > 0 ? 4 : 3);
    if (!sim_batch_run(batch)) {
        puts("Bail out! not enough memory or threads");
        return 1;
    }
    bool replay_failed = batch->failed && strncmp(batch->failure, "REPLAY", 6) == 0;
    bool violated = batch->failed && !replay_failed;
    char prefix[64];
    snprintf(prefix, sizeof prefix, "# figure: %s: ", batch->subject->program);
    print_summary(batch, prefix);
    if (batch->failed)
        print_failure(batch, "# ");
    printf("%s 1 - no invariant is violated under faults from %" PRIu64 " seeds\n", violated ? "not ok" : "ok",
           batch->done);
    printf("%s 2 - a seed that is run again takes the same course\n", replay_failed ? "not ok" : "ok");
    uint32_t unseen = print_probes(batch, "# never seen: ", false);
    printf("%s 3 - everything that must happen sometimes does\n", unseen > 0 ? "not ok" : "ok");
    return batch->failed || unseen > 0 || !has_counted(batch) ? 1 : 0;
}

int sim_program(const sim_subject *subject, int argc, char **argv)
{
    sim_options options = {
        .batch = { .subject = subject,
                   .from = 1,
                   .count = subject->seeds_full / TEST_SHARE,
                   .threads = 1,
                   .replay_every = REPLAY_EVERY },
    };
    if (!parse(argc, argv, &options)) {
        fprintf(stderr, "usage: %s [--seed S [--trace] | --seeds N [--from S] [-j THREADS] [--probes]]\n",
                subject->program);
        return 2;
    }
    if (options.one)
        return sim_seed_run(subject, options.seed, options.trace);
    return options.tap ? run_tap(&options) : run_batch(&options);
}
