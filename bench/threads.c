/*
 * Eight threads on one lock: how often it is had inside one client, against how often two processes have it that get it
 * through the store each time, in the same run.
 */
#include <pthread.h>

#include "bench.h"

#define THREADS 8
#define SECONDS 1.0
#define ROUNDS 3

typedef struct race {
    sneck_client *client;
    _Atomic bool stop;
    _Atomic long turns;
} race;

static void *take_turns(void *context)
{
    race *r = context;
    sneck_error error;
    sneck_lock *lock = NULL;
    bench_expect(sneck_mutex(r->client, "threads", NULL, &lock, &error), &error);
    long turns = 0;
    while (!atomic_load_explicit(&r->stop, memory_order_relaxed)) {
        bench_expect(sneck_acquire(lock, SNECK_FOREVER, &error), &error);
        turns++;
        bench_expect(sneck_release(lock, &error), &error);
    }
    atomic_fetch_add(&r->turns, turns);
    sneck_lock_free(lock);
    return NULL;
}

static double rate_of_threads(const char *url)
{
    race r = { .client = NULL };
    sneck_error error;
    bench_expect(sneck_open(url, NULL, &r.client, &error), &error);
    pthread_t threads[THREADS];
    int64_t start_ns = snk_now_ns();
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, take_turns, &r) != 0)
            bench_die("pthread_create", "no thread");
    struct timespec pause = snk_timespec((int64_t)(SECONDS * 1e9));
    (void)nanosleep(&pause, NULL);
    atomic_store(&r.stop, true);
    for (int i = 0; i < THREADS; i++)
        (void)pthread_join(threads[i], NULL);
    double seconds = (double)(snk_now_ns() - start_ns) / 1e9;
    sneck_close(r.client);
    return (double)r.turns / seconds;
}

/* Two processes; each turn goes through the store, because each process has only one thread to pass the lock to. */
typedef struct pair {
    char url[128];
    _Atomic bool stop;
    _Atomic long turns;
} pair;

static void alternate(void *context)
{
    pair *p = context;
    sneck_client *client;
    sneck_error error;
    sneck_lock *lock = bench_lock(p->url, "threads/pair", &client);
    while (!atomic_load(&p->stop)) {
        bench_expect(sneck_acquire(lock, SNECK_FOREVER, &error), &error);
        atomic_fetch_add(&p->turns, 1);
        bench_expect(sneck_release(lock, &error), &error);
    }
    sneck_lock_free(lock);
    sneck_close(client);
}

static double rate_of_store(const char *url)
{
    pair *p = bench_share(sizeof *p);
    (void)snprintf(p->url, sizeof p->url, "%s", url);
    int64_t start_ns = snk_now_ns();
    pid_t pids[2] = { bench_spawn(alternate, p), bench_spawn(alternate, p) };
    struct timespec pause = snk_timespec((int64_t)(SECONDS * 1e9));
    (void)nanosleep(&pause, NULL);
    atomic_store(&p->stop, true);
    bench_join(pids[0]);
    bench_join(pids[1]);
    double rate = (double)p->turns / ((double)(snk_now_ns() - start_ns) / 1e9);
    (void)munmap(p, sizeof *p);
    return rate;
}

static void compare(const char *where, double goal)
{
    double ratios[ROUNDS];
    double threads = 0;
    double store = 0;
    bench_place place;
    bench_place_make(&place);
    for (int i = 0; i < ROUNDS; i++) {
        store = rate_of_store(place.url);
        threads = rate_of_threads(place.url);
        ratios[i] = threads / store;
    }
    bench_place_remove(&place);
    double ratio = bench_median(ratios, ROUNDS);
    printf("8 threads on one lock, %-10s %8.1f of the store's own hand-off rate (goal: at least %.0f; %.0f/s against "
           "%.0f/s)",
           where, ratio, goal, threads, store);
    bench_goal_at_least(ratio, goal);
}

int main(void)
{
    compare("all cores", 8);
    bench_pin(0);
    compare("one core", 20);
    return 0;
}
