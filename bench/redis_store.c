/*
 * Pairs of acquire and release on the Redis store, each thread on a lock of its own, against what one could write by hand
 * with the same scripts:
 *
 *     raw    a blocking hiredis connection per thread, two EVALSHA a pair
 *     ours   sneck_acquire and sneck_release, one client
 *     deep   one thread that keeps 64 commands in the pipe by hand: the limit
 *
 * Usage: bench-redis_store [SECONDS [ROUNDS]]. Only ratios within one run mean anything: designs take turns in each
 * round, and the median of the rounds is shown. "one core": server and clients are pinned to one.
 */
#include <pthread.h>

#include "redis_bench.h"

#define THREADS_MAX 64
#define DEPTH 64

typedef struct worker {
    pthread_t thread;
    int number;
    uint64_t pairs;
    sneck_client *client;
    atomic_bool *stop;
} worker;

static void *work_raw(void *argument)
{
    worker *self = argument;
    redisContext *context = dial();
    by_hand lock;
    prepare(&lock, self->number);
    while (!atomic_load_explicit(self->stop, memory_order_relaxed)) {
        for (int acquire = 1; acquire >= 0; acquire--) {
            char *command = NULL;
            void *reply = NULL;
            size_t length = format(&lock, acquire == 1, &command);
            redisAppendFormattedCommand(context, command, length);
            redisFreeCommand(command);
            redisGetReply(context, &reply);
            expect(reply, acquire == 1);
        }
        self->pairs++;
    }
    redisFree(context);
    return NULL;
}

static void *work_deep(void *argument)
{
    worker *self = argument;
    redisContext *context = dial();
    static by_hand locks[DEPTH];
    for (int i = 0; i < DEPTH; i++)
        prepare(&locks[i], i);
    while (!atomic_load_explicit(self->stop, memory_order_relaxed)) {
        for (int acquire = 1; acquire >= 0; acquire--) {
            for (int i = 0; i < DEPTH; i++) {
                char *command = NULL;
                size_t length = format(&locks[i], acquire == 1, &command);
                redisAppendFormattedCommand(context, command, length);
                redisFreeCommand(command);
            }
            for (int i = 0; i < DEPTH; i++) {
                void *reply = NULL;
                redisGetReply(context, &reply);
                expect(reply, acquire == 1);
            }
        }
        self->pairs += DEPTH;
    }
    redisFree(context);
    return NULL;
}

static void *work_ours(void *argument)
{
    worker *self = argument;
    sneck_error error;
    sneck_lock *lock = NULL;
    char name[32];
    snprintf(name, sizeof name, "bench-%d", self->number);
    if (sneck_mutex(self->client, name, NULL, &lock, &error) != SNECK_OK)
        die(error.message);
    while (!atomic_load_explicit(self->stop, memory_order_relaxed)) {
        if (sneck_acquire(lock, 1000, &error) != SNECK_OK || sneck_release(lock, &error) != SNECK_OK)
            die(error.message);
        self->pairs++;
    }
    sneck_lock_free(lock);
    return NULL;
}

typedef struct pace {
    double pairs_per_s;
    double client_us; /* processor time of a pair */
    double server_us;
} pace;

static pace measure_pairs(void *(*work)(void *), int threads)
{
    static worker workers[THREADS_MAX];
    atomic_bool stop = false;
    sneck_client *client = work == work_ours ? open_client() : NULL;
    double begin_server_us = server_cpu_us();
    int64_t begin_ns = snk_now_ns();
    int64_t begin_cpu_ns = snk_clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
    for (int i = 0; i < threads; i++) {
        workers[i] = (worker){ .number = i, .client = client, .stop = &stop };
        pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    }
    usleep((useconds_t)(seconds * 1e6));
    atomic_store(&stop, true);
    double pairs = 0;
    for (int i = 0; i < threads; i++) {
        pthread_join(workers[i].thread, NULL);
        pairs += (double)workers[i].pairs;
    }
    pace result = {
        .pairs_per_s = pairs * 1e9 / (double)(snk_now_ns() - begin_ns),
        .client_us = (double)(snk_clock_read_ns(CLOCK_PROCESS_CPUTIME_ID) - begin_cpu_ns) / 1e3 / pairs,
        .server_us = (server_cpu_us() - begin_server_us) / pairs,
    };
    sneck_close(client);
    return result;
}

typedef struct figures {
    double rate[ROUNDS_MAX];
    double client_us[ROUNDS_MAX];
    double server_us[ROUNDS_MAX];
} figures;

static void note(figures *all, int round, pace one)
{
    all->rate[round] = one.pairs_per_s;
    all->client_us[round] = one.client_us;
    all->server_us[round] = one.server_us;
}

static void show(const char *name, figures *all)
{
    size_t count = (size_t)rounds;
    printf("    %-4s %7.0f pairs/s  processor time of a pair: client %3.0f us, server %3.0f us\n", name,
           bench_median(all->rate, count), bench_median(all->client_us, count), bench_median(all->server_us, count));
}

static void compare_pairs(int threads, bool one_core, double goal)
{
    static figures raw;
    static figures ours;
    static figures deep;
    double ratio[ROUNDS_MAX] = { 0 };
    bool against_deep = threads >= DEPTH;
    pin(one_core);
    for (int i = 0; i < rounds; i++) {
        note(&raw, i, measure_pairs(work_raw, threads));
        note(&ours, i, measure_pairs(work_ours, threads));
        if (against_deep)
            note(&deep, i, measure_pairs(work_deep, 1));
        ratio[i] = ours.rate[i] / (against_deep ? deep.rate[i] : raw.rate[i]);
    }
    pin(false);
    double value = bench_median(ratio, (size_t)rounds);
    printf("redis, %d thread%s%s: %.2f of %s (goal: at least %.2f)", threads, threads == 1 ? "" : "s",
           one_core ? " on one core" : "", value, against_deep ? "a pipeline 64 deep" : "a connection per thread",
           goal);
    bench_goal_at_least(value, goal);
    show("raw", &raw);
    show("ours", &ours);
    if (against_deep)
        show("deep", &deep);
}

int main(int argc, char **argv)
{
    begin(argc, argv);
    compare_pairs(1, true, 0.95);
    compare_pairs(1, false, 0.90);
    compare_pairs(8, false, 1.25);
    compare_pairs(16, false, 1.25);
    compare_pairs(64, false, 0.45);
    redis_server_stop(&server);
    return 0;
}
