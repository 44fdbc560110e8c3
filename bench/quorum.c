/*
 * A quorum of five nodes against one server, in the same run: pairs of sneck_acquire and sneck_release of one thread. The
 * client is on one core and all servers on another, so the five work one after the other: what is measured is what a
 * quorum costs, not what more cores hide.
 *
 * Usage: bench-quorum [PAIRS [ROUNDS]]. The two take turns in each round; the median of all pairs is shown.
 */
#include "../tests/lib/redis_server.h"
#include "bench.h"

#define NODES 5
#define GOAL 1.4
#define CLIENT_CORE 0
#define SERVER_CORE 1
/* Nodes count so long after they were started; see docs/quorum.md. */
#define LEASE_MAX "1s"
#define RIPE_NS (4 * SNK_NS_PER_S)

static redis_server servers[NODES];

static void stop_servers(void)
{
    for (int i = 0; i < NODES; i++)
        redis_server_stop(&servers[i]);
}

static void start_servers(void)
{
    (void)atexit(stop_servers);
    bench_pin(SERVER_CORE);
    for (int i = 0; i < NODES; i++)
        if (!redis_server_start(&servers[i], NULL))
            bench_die("redis-server", "does not start");
    bench_pin(CLIENT_CORE);
    struct timespec ripe = snk_timespec(RIPE_NS);
    (void)nanosleep(&ripe, NULL);
}

static void make_url(char *url, size_t size, int nodes)
{
    int length = snprintf(url, size, "redlock://");
    for (int i = 0; i < nodes; i++)
        length += snprintf(url + length, size - (size_t)length, "%s127.0.0.1:%d", i == 0 ? "" : ",", servers[i].port);
    (void)snprintf(url + length, size - (size_t)length, "?lease_max=" LEASE_MAX "&lease=" LEASE_MAX);
}

static void run(sneck_lock *lock, int64_t *times, size_t count)
{
    sneck_error error;
    for (size_t i = 0; i < count; i++) {
        int64_t began_ns = snk_now_ns();
        bench_expect(sneck_acquire(lock, SNECK_FOREVER, &error), &error);
        bench_expect(sneck_release(lock, &error), &error);
        times[i] = snk_now_ns() - began_ns;
    }
}

typedef struct design {
    const char *name;
    char url[256];
    sneck_client *client;
    sneck_lock *lock;
    int64_t *times;
} design;

int main(int argc, char **argv)
{
    size_t pairs = argc > 1 ? strtoul(argv[1], NULL, 10) : 400;
    size_t rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : 15;
    design designs[] = { { .name = "one server" }, { .name = "five nodes" }, { .name = "one node as a quorum" } };
    size_t count = sizeof designs / sizeof designs[0];
    start_servers();
    (void)snprintf(designs[0].url, sizeof designs[0].url, "redis://127.0.0.1:%d/1", servers[0].port);
    make_url(designs[1].url, sizeof designs[1].url, NODES);
    make_url(designs[2].url, sizeof designs[2].url, 1);
    for (size_t i = 0; i < count; i++) {
        designs[i].times = calloc(pairs * rounds, sizeof(int64_t));
        if (designs[i].times == NULL)
            bench_die("calloc", "out of memory");
        designs[i].lock = bench_lock(designs[i].url, i == 2 ? "alone" : "pairs", &designs[i].client);
        run(designs[i].lock, designs[i].times, pairs); /* to warm up */
    }
    for (size_t i = 0; i < rounds; i++)
        for (size_t j = 0; j < count; j++)
            run(designs[j].lock, designs[j].times + i * pairs, pairs);
    double median_us[sizeof designs / sizeof designs[0]];
    for (size_t i = 0; i < count; i++) {
        median_us[i] = bench_percentile_us(designs[i].times, pairs * rounds, 50);
        printf("quorum  lock+unlock  %-20s  p50 %6.1f us  p99 %6.1f us\n", designs[i].name, median_us[i],
               bench_percentile_us(designs[i].times, pairs * rounds, 99));
        sneck_lock_free(designs[i].lock);
        sneck_close(designs[i].client);
        free(designs[i].times);
    }
    printf("quorum  five nodes / one server  %.2f times (goal: at most %.1f)", median_us[1] / median_us[0], GOAL);
    bench_goal_at_most(median_us[1] / median_us[0], GOAL);
    return 0;
}
