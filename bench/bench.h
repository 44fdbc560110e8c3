/* What the benchmark programs share: time, percentiles, cores, processes, a store in memory. */
#ifndef SNK_BENCH_H
#define SNK_BENCH_H

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/futex.h"
#include "sneck.h"

static inline _Noreturn void bench_die(const char *what, const char *why)
{
    (void)fprintf(stderr, "bench: %s: %s\n", what, why);
    _exit(1);
}

static inline void bench_expect(sneck_status status, const sneck_error *error)
{
    if (status != SNECK_OK)
        bench_die(sneck_status_name(status), error->message);
}

/* A fresh directory in a tmpfs, and in it the path of a store. */
typedef struct bench_place {
    char directory[64];
    char file[96];
    char url[128];
} bench_place;

static inline void bench_place_make(bench_place *place)
{
    (void)snprintf(place->directory, sizeof place->directory, "/dev/shm/sneck-bench-XXXXXX");
    if (mkdtemp(place->directory) == NULL)
        bench_die("mkdtemp", "no tmpfs at /dev/shm");
    (void)snprintf(place->file, sizeof place->file, "%s/locks.db", place->directory);
    (void)snprintf(place->url, sizeof place->url, "sqlite://%s", place->file);
}

static inline void bench_place_remove(const bench_place *place)
{
    static const char *const endings[] = { "", "-journal", "-sneck" };
    char path[128];
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        (void)snprintf(path, sizeof path, "%s%s", place->file, endings[i]);
        (void)unlink(path);
    }
    (void)rmdir(place->directory);
}

static inline sneck_lock *bench_lock(const char *url, const char *name, sneck_client **client_out)
{
    sneck_error error;
    sneck_lock *lock = NULL;
    bench_expect(sneck_open(url, NULL, client_out, &error), &error);
    bench_expect(sneck_mutex(*client_out, name, NULL, &lock, &error), &error);
    return lock;
}

static inline void *bench_share(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        bench_die("mmap", "out of memory");
    return memory;
}

static inline pid_t bench_spawn(void (*child)(void *), void *context)
{
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        child(context);
        _exit(0);
    }
    if (pid < 0)
        bench_die("fork", "no process");
    return pid;
}

static inline void bench_join(pid_t pid)
{
    int status = 0;
    if (waitpid(pid, &status, 0) != pid || status != 0)
        bench_die("child", "failed");
}

/* This process, and what it forks, on one core from now on; -1: on all. */
static inline void bench_pin(int core)
{
    cpu_set_t cores;
    CPU_ZERO(&cores);
    for (size_t i = 0; i < CPU_SETSIZE; i++)
        if (core < 0 || i == (size_t)core)
            CPU_SET(i, &cores);
    (void)sched_setaffinity(0, sizeof cores, &cores);
}

static inline int bench_compare(const void *a, const void *b)
{
    const int64_t *left = a;
    const int64_t *right = b;
    return (*left > *right) - (*left < *right);
}

/* Sorts. */
static inline double bench_percentile_us(int64_t *values, size_t count, double percent)
{
    qsort(values, count, sizeof values[0], bench_compare);
    return (double)values[(size_t)((double)(count - 1) * percent / 100)] / 1e3;
}

/* Ends a line of figures with what was asked for; bench/run fails when a goal was missed. */
static inline void bench_goal_at_most(double value, double goal)
{
    printf(" - %s\n", value <= goal ? "met" : "MISSED");
}

static inline void bench_goal_at_least(double value, double goal)
{
    printf(" - %s\n", value >= goal ? "met" : "MISSED");
}

static inline double bench_median(double *values, size_t count)
{
    for (size_t i = 1; i < count; i++)
        for (size_t j = i; j > 0 && values[j - 1] > values[j]; j--) {
            double swap = values[j];
            values[j] = values[j - 1];
            values[j - 1] = swap;
        }
    return values[count / 2];
}

#endif
