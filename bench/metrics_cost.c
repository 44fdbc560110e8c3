/*
 * What counting and telling cost: lock and unlock without contention, with metrics off and nobody listening, against
 * metrics on and a callback for every event. Both in one run, in turns, so that whatever else the machine does hits both.
 */
#include "bench.h"
#include "client/client.h"
#include "../tests/lib/redis_server.h"

#define ROUNDS 31

typedef struct side {
    sneck_client *client;
    sneck_lock *lock;
    double seconds[ROUNDS];
} side;

static void count_event(void *context, const sneck_event *event)
{
    (void)event;
    (void)atomic_fetch_add_explicit((_Atomic uint64_t *)context, 1, memory_order_relaxed);
}

static void open_side(side *self, const char *url, bool on, _Atomic uint64_t *events)
{
    sneck_error error;
    sneck_client_options options = SNECK_CLIENT_OPTIONS_INIT;
    if (on) {
        options.on_event = count_event;
        options.event_context = events;
    }
    bench_expect(sneck_open(url, &options, &self->client, &error), &error);
    self->client->metrics.is_off = !on;
    bench_expect(sneck_mutex(self->client, on ? "cost/on" : "cost/off", NULL, &self->lock, &error), &error);
}

static double time_pairs(const side *self, int pairs)
{
    sneck_error error;
    int64_t start_ns = snk_now_ns();
    for (int i = 0; i < pairs; i++) {
        bench_expect(sneck_acquire(self->lock, 0, &error), &error);
        bench_expect(sneck_release(self->lock, &error), &error);
    }
    return (double)(snk_now_ns() - start_ns) / 1e9;
}

static void close_side(const side *self)
{
    sneck_lock_free(self->lock);
    sneck_close(self->client);
}

static double measure(const char *url, int pairs, double *pair_us)
{
    static side off;
    static side on;
    _Atomic uint64_t events = 0;
    double ratios[ROUNDS];
    open_side(&off, url, false, NULL);
    open_side(&on, url, true, &events);
    (void)time_pairs(&off, pairs);
    (void)time_pairs(&on, pairs);
    for (int i = 0; i < ROUNDS; i++) {
        bool off_first = i % 2 == 0;
        if (off_first)
            off.seconds[i] = time_pairs(&off, pairs);
        on.seconds[i] = time_pairs(&on, pairs);
        if (!off_first)
            off.seconds[i] = time_pairs(&off, pairs);
        ratios[i] = on.seconds[i] / off.seconds[i];
    }
    close_side(&off);
    close_side(&on);
    if (atomic_load(&events) < (uint64_t)pairs)
        bench_die("events", "nobody was told");
    *pair_us = bench_median(off.seconds, ROUNDS) / pairs * 1e6;
    return (bench_median(ratios, ROUNDS) - 1) * 100;
}

static void report(const char *store, double percent, double pair_us)
{
    printf("metrics and events, %-14s %7.1f %% of a lock+unlock pair (goal: at most 3; a pair takes %.1f us)", store,
           percent, pair_us);
    bench_goal_at_most(percent, 3);
}

int main(void)
{
    double pair_us = 0;
    bench_place place;
    bench_place_make(&place);
    double percent = measure(place.url, 2000, &pair_us);
    report("sqlite:", percent, pair_us);
    bench_place_remove(&place);
    redis_server server = { .pid = 0 };
    if (!redis_server_start(&server, NULL))
        bench_die("redis-server", "does not start");
    char url[64];
    (void)snprintf(url, sizeof url, "redis://127.0.0.1:%d", server.port);
    percent = measure(url, 1500, &pair_us);
    report("redis:", percent, pair_us);
    redis_server_stop(&server);
    percent = measure("memory:", 20000, &pair_us);
    printf("metrics and events, memory:        %7.1f %% of a lock+unlock pair, which takes %.2f us here (no goal)\n",
           percent, pair_us);
    return 0;
}
