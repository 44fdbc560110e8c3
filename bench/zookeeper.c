/*
 * The ZooKeeper store against what one could write by hand with the same library and the same requests, on one thread:
 *
 *   raw    make the node and list the folder, sent together; then delete it. No thread, no lease, no claim
 *   ours   sneck_acquire and sneck_release
 *
 * Usage: bench-zookeeper [SECONDS [ROUNDS]]. The two take turns in each round, and the median of the rounds is shown.
 */
#include <poll.h>
#include <zookeeper/zookeeper.h>

#include "../tests/lib/zookeeper_server.h"
#include "bench.h"

#define ROUNDS_MAX 31
#define GOAL 0.9

static zookeeper_server server;
static double seconds = 0.3;

/* ---- By hand ---- */

typedef struct by_hand {
    zhandle_t *handle;
    int waiting; /* answers that are not there yet */
    int failed;
    int connected;
    char path[256];
    struct Stat stat;
    zoo_op_t ops[2];
    zoo_op_result_t results[2];
} by_hand;

static void on_event(zhandle_t *handle, int type, int state, const char *path, void *context)
{
    (void)handle;
    (void)path;
    by_hand *raw = context;
    raw->connected = raw->connected || (type == ZOO_SESSION_EVENT && state == ZOO_CONNECTED_STATE);
}

static void drop_message(const char *message)
{
    (void)message;
}

static by_hand raw;

static void on_done(int rc, const void *data)
{
    (void)data;
    raw.failed += rc != ZOK;
    raw.waiting--;
}

static void on_names(int rc, const struct String_vector *names, const struct Stat *stat, const void *data)
{
    (void)names;
    (void)stat;
    on_done(rc, data);
}

static void on_made(int rc, const char *path, const void *data)
{
    (void)rc;
    (void)path;
    on_done(ZOK, data);
}

static void drive(const int *until_zero)
{
    while (*until_zero != 0) {
        int fd = -1;
        int interest = 0;
        struct timeval time;
        (void)zookeeper_interest(raw.handle, &fd, &interest, &time);
        struct pollfd polled = { .fd = fd,
                                 .events = (short)((interest & ZOOKEEPER_READ ? POLLIN : 0) |
                                                   (interest & ZOOKEEPER_WRITE ? POLLOUT : 0)) };
        (void)poll(&polled, 1, (int)(time.tv_sec * 1000 + time.tv_usec / 1000));
        (void)zookeeper_process(raw.handle, (polled.revents & POLLIN ? ZOOKEEPER_READ : 0) |
                                                (polled.revents & POLLOUT ? ZOOKEEPER_WRITE : 0));
    }
}

static void open_by_hand(void)
{
    char hosts[64];
    (void)snprintf(hosts, sizeof hosts, "127.0.0.1:%d", server.port);
    raw.handle = zookeeper_init2(hosts, on_event, 30000, NULL, &raw, 0, drop_message);
    /* As it comes, it looks up the server's name each time that it is asked what to wait for. */
    (void)zoo_set_servers_resolution_delay(raw.handle, -1);
    int unconnected = 1;
    while (unconnected != 0) {
        raw.waiting = 1;
        if (zoo_acreate(raw.handle, "/raw", "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, on_made, NULL) != ZOK)
            bench_die("zookeeper", "cannot connect");
        drive(&raw.waiting);
        unconnected = !raw.connected;
    }
    raw.failed = 0;
}

static void pair_by_hand(const char *note)
{
    raw.waiting = 2;
    zoo_create_op_init(&raw.ops[0], "/raw/lock-", note, (int)strlen(note), &ZOO_OPEN_ACL_UNSAFE,
                       ZOO_EPHEMERAL | ZOO_SEQUENCE, raw.path, sizeof raw.path);
    zoo_set_op_init(&raw.ops[1], "/raw", "", 0, -1, &raw.stat);
    (void)zoo_amulti(raw.handle, 2, raw.ops, raw.results, on_done, NULL);
    (void)zoo_aget_children2(raw.handle, "/raw", 0, on_names, NULL);
    drive(&raw.waiting);
    raw.waiting = 1;
    (void)zoo_adelete(raw.handle, raw.path, -1, on_done, NULL);
    drive(&raw.waiting);
    if (raw.failed != 0)
        bench_die("zookeeper", "a request failed");
}

static double measure_raw(void)
{
    char note[200];
    memset(note, 'x', sizeof note - 1);
    note[sizeof note - 1] = '\0';
    int64_t begin_ns = snk_now_ns();
    int64_t end_ns = begin_ns + (int64_t)(seconds * 1e9);
    unsigned pairs = 0;
    for (; snk_now_ns() < end_ns; pairs++)
        pair_by_hand(note);
    return pairs / ((double)(snk_now_ns() - begin_ns) / 1e9);
}

/* ---- Ours ---- */

static double measure_ours(sneck_lock *lock)
{
    sneck_error error;
    int64_t begin_ns = snk_now_ns();
    int64_t end_ns = begin_ns + (int64_t)(seconds * 1e9);
    unsigned pairs = 0;
    for (; snk_now_ns() < end_ns; pairs++) {
        bench_expect(sneck_acquire(lock, 0, &error), &error);
        bench_expect(sneck_release(lock, &error), &error);
    }
    return pairs / ((double)(snk_now_ns() - begin_ns) / 1e9);
}

int main(int argc, char **argv)
{
    double raws[ROUNDS_MAX] = { 0 };
    double ours[ROUNDS_MAX] = { 0 };
    double ratios[ROUNDS_MAX] = { 0 };
    char url[64];
    sneck_client *client = NULL;
    seconds = argc > 1 ? strtod(argv[1], NULL) : seconds;
    int rounds = argc > 2 ? (int)strtol(argv[2], NULL, 10) : ROUNDS_MAX;
    if (rounds < 1 || rounds > ROUNDS_MAX)
        rounds = ROUNDS_MAX;
    if (!zookeeper_server_exists()) {
        printf("zookeeper: there is no server on this machine\n");
        return 0;
    }
    if (!zookeeper_server_start(&server, NULL))
        bench_die("zookeeper", "the server does not start");
    open_by_hand();
    (void)snprintf(url, sizeof url, "zk://127.0.0.1:%d", server.port);
    sneck_lock *lock = bench_lock(url, "bench", &client);
    (void)measure_raw(); /* the server compiles what it runs often */
    (void)measure_ours(lock);
    for (int i = 0; i < rounds; i++) {
        raws[i] = measure_raw();
        ours[i] = measure_ours(lock);
        ratios[i] = ours[i] / raws[i];
    }
    double ratio = bench_median(ratios, (size_t)rounds);
    printf("zookeeper, pairs a second of one thread: raw %.0f, ours %.0f; ours/raw %.2f, at least %.2f",
           bench_median(raws, (size_t)rounds), bench_median(ours, (size_t)rounds), ratio, GOAL);
    bench_goal_at_least(ratio, GOAL);
    sneck_lock_free(lock);
    sneck_close(client);
    (void)zookeeper_close(raw.handle);
    zookeeper_server_stop(&server);
    return 0;
}
