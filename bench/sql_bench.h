/* What the benchmarks on SQL servers share: pairs by threads, and hand-off of one lock among processes. */
#ifndef SNK_BENCH_SQL_BENCH_H
#define SNK_BENCH_SQL_BENCH_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/ids.h"
#include "bench.h"
#include "sneck.h"

#define PROCESSES 16
#define THREADS_MAX 16
#define ROUNDS_MAX 31

static double seconds = 0.4;
static int rounds = 7;
static char url[256];
static void (*stop_server)(void); /* it must not stay behind when something fails */

static inline _Noreturn void fail_with(const char *what, const char *why)
{
    if (stop_server != NULL)
        stop_server();
    bench_die(what, why);
}

static inline void expect(sneck_status status, const sneck_error *error)
{
    if (status != SNECK_OK)
        fail_with(sneck_status_name(status), error->message);
}

static inline void read_arguments(int argc, char **argv, const char *program)
{
    if (argc > 1)
        seconds = strtod(argv[1], NULL);
    if (argc > 2)
        rounds = (int)strtol(argv[2], NULL, 10);
    if (seconds <= 0 || rounds < 1 || rounds > ROUNDS_MAX) {
        (void)fprintf(stderr, "usage: %s [SECONDS [ROUNDS, at most %d]]\n", program, ROUNDS_MAX);
        exit(64);
    }
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
}

static inline sneck_client *open_with(const char *keys)
{
    sneck_client *client = NULL;
    sneck_error error;
    char whole[300];
    (void)snprintf(whole, sizeof whole, "%s?%s", url, keys);
    expect(sneck_open(whole, NULL, &client, &error), &error);
    return client;
}

/* ---- Pairs ---- */

typedef struct worker {
    pthread_t thread;
    int number;
    int threads;
    uint64_t pairs;
    sneck_client *client;
    atomic_bool *stop;
} worker;

static inline bool goes_on(const worker *self)
{
    return !atomic_load_explicit(self->stop, memory_order_relaxed);
}

static inline void *work_ours(void *argument)
{
    worker *self = argument;
    sneck_error error;
    sneck_lock *lock = NULL;
    char name[32];
    (void)snprintf(name, sizeof name, "bench-%d", self->number);
    expect(sneck_mutex(self->client, name, NULL, &lock, &error), &error);
    while (goes_on(self)) {
        expect(sneck_acquire(lock, 1000, &error), &error);
        expect(sneck_release(lock, &error), &error);
        self->pairs++;
    }
    sneck_lock_free(lock);
    return NULL;
}

/* Pairs a second, by `started` threads. */
static inline double measure_with(void *(*work)(void *), int threads, int started)
{
    static worker workers[THREADS_MAX];
    atomic_bool stop = false;
    char keys[32];
    (void)snprintf(keys, sizeof keys, "connections=%d", threads < 4 ? 4 : threads);
    sneck_client *client = work == work_ours ? open_with(keys) : NULL;
    for (int i = 0; i < started; i++) {
        workers[i] = (worker){ .number = i, .threads = threads, .client = client, .stop = &stop };
        (void)pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    }
    int64_t began_ns = snk_now_ns();
    (void)usleep((useconds_t)(seconds * 1e6));
    atomic_store(&stop, true);
    uint64_t pairs = 0;
    for (int i = 0; i < started; i++) {
        (void)pthread_join(workers[i].thread, NULL);
        pairs += workers[i].pairs;
    }
    double rate = (double)pairs * 1e9 / (double)(snk_now_ns() - began_ns);
    sneck_close(client);
    return rate;
}

static inline double measure(void *(*work)(void *), int threads)
{
    return measure_with(work, threads, threads);
}

/* ---- Hand-off ---- */

/* Shared between the processes of one run. */
typedef struct board {
    _Atomic bool go;
    _Atomic bool stop;
    _Atomic unsigned ready;
    _Atomic unsigned turns;
    char keys[32];
} board;

static inline void await_go(board *shared)
{
    (void)atomic_fetch_add(&shared->ready, 1);
    while (!atomic_load(&shared->go))
        (void)usleep(1000);
}

static inline void turns_ours(void *context)
{
    board *shared = context;
    sneck_client *client = open_with(shared->keys);
    sneck_lock *lock = NULL;
    sneck_error error;
    bench_expect(sneck_mutex(client, "turns", NULL, &lock, &error), &error);
    await_go(shared);
    while (!atomic_load(&shared->stop)) {
        bench_expect(sneck_acquire(lock, 20000, &error), &error);
        (void)atomic_fetch_add(&shared->turns, 1);
        bench_expect(sneck_release(lock, &error), &error);
    }
    sneck_lock_free(lock);
    sneck_close(client);
}

static inline double measure_turns(void (*turns)(void *), const char *keys)
{
    board *shared = bench_share(sizeof *shared);
    pid_t children[PROCESSES];
    (void)snprintf(shared->keys, sizeof shared->keys, "%s", keys);
    for (int i = 0; i < PROCESSES; i++)
        children[i] = bench_spawn(turns, shared);
    while (atomic_load(&shared->ready) < PROCESSES)
        (void)usleep(1000);
    atomic_store(&shared->go, true);
    (void)usleep(200000); /* the first ones begin to listen */
    unsigned before = atomic_load(&shared->turns);
    int64_t began_ns = snk_now_ns();
    (void)usleep((useconds_t)(seconds * 1e6));
    double rate = (double)(atomic_load(&shared->turns) - before) * 1e9 / (double)(snk_now_ns() - began_ns);
    atomic_store(&shared->stop, true);
    for (int i = 0; i < PROCESSES; i++)
        bench_join(children[i]);
    (void)munmap(shared, sizeof *shared);
    return rate;
}

/* Against what the server has of its own. */
static inline void compare_turns(const char *store, void (*turns_other)(void *), const char *other)
{
    double lease[ROUNDS_MAX] = { 0 };
    double row[ROUNDS_MAX] = { 0 };
    double theirs[ROUNDS_MAX] = { 0 };
    int count = rounds < 3 ? rounds : 3;
    for (int i = 0; i < count; i++) {
        lease[i] = measure_turns(turns_ours, "mode=lease");
        row[i] = measure_turns(turns_ours, "mode=row");
        theirs[i] = measure_turns(turns_other, "");
    }
    printf("%s hand-off, %d processes: mode=lease %.0f/s, mode=row %.0f/s, %s %.0f/s\n", store, PROCESSES,
           bench_median(lease, (size_t)count), bench_median(row, (size_t)count), other,
           bench_median(theirs, (size_t)count));
}

#endif
