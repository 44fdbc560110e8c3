/*
 * A quorum of five nodes against one server, in the same run: pairs of sneck_acquire and sneck_release of one thread. The
 * client is on one core and all servers on another, so the five work one after the other: what is measured is what a
 * quorum costs, not what more cores hide.
 *
 * By hand: the very scripts that the quorum store runs on its nodes, in plain hiredis, on one node and on five: sent to
 * all, then received until three have answered, without sleeping; what comes later is received with the next one. Nothing
 * is kept, checked or timed. What five of them cost there is what five servers cost on one core, whoever asks them; with
 * PING instead of the scripts, what is left of that when they have nothing to do but to answer.
 *
 * "at work" is how long the servers, all together, had their core for each pair: nobody can be faster than that.
 *
 * Usage: bench-quorum [PAIRS [ROUNDS]]. They take turns in each round; the median of all pairs is shown.
 */
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <hiredis/hiredis.h>

#include "../tests/lib/redis_server.h"
#include "base/ids.h"
#include "bench.h"
#include "store/quorum/run.h"

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

/* ---- By hand ---- */

typedef struct by_hand {
    int count;
    bool pings;
    redisContext *contexts[NODES];
    uint64_t asked; /* questions so far, each to all nodes */
    uint64_t answered[NODES];
} by_hand;

static void load_scripts(redisContext *context)
{
    static const snk_node_script scripts[] = { SNK_NODE_VOTE, SNK_NODE_RELEASE };
    for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++) {
        redisReply *reply = redisCommand(context, "SCRIPT LOAD %s", snk_node_scripts[scripts[i]].text);
        if (reply == NULL || reply->type != REDIS_REPLY_STRING)
            bench_die("SCRIPT LOAD", "no answer");
        freeReplyObject(reply);
    }
}

static void open_by_hand(by_hand *self, int count, bool pings)
{
    *self = (by_hand){ .count = count, .pings = pings };
    for (int i = 0; i < count; i++) {
        self->contexts[i] = redisConnect("127.0.0.1", servers[i].port);
        if (self->contexts[i] == NULL || self->contexts[i]->err != 0)
            bench_die("redisConnect", "cannot connect");
        load_scripts(self->contexts[i]);
        (void)fcntl(self->contexts[i]->fd, F_SETFL, O_NONBLOCK);
        self->contexts[i]->flags &= ~REDIS_BLOCK;
    }
}

/* Receives what a node has said; true when the last question is answered by it. */
static bool hear(by_hand *self, int node)
{
    void *reply = NULL;
    redisContext *context = self->contexts[node];
    if (redisBufferRead(context) != REDIS_OK)
        bench_die("by hand", context->errstr);
    while (redisGetReplyFromReader(context, &reply) == REDIS_OK && reply != NULL) {
        const redisReply *answer = reply;
        if (answer->type == REDIS_REPLY_ERROR)
            bench_die("by hand", answer->str);
        if (!self->pings && (answer->type == REDIS_REPLY_ARRAY ? answer->element[0]->integer : answer->integer) != 1)
            bench_die("by hand", "a node says no");
        self->answered[node]++;
        freeReplyObject(reply);
    }
    return self->answered[node] == self->asked;
}

static void ask_by_hand(by_hand *self, const char *command, size_t length)
{
    int majority = self->count / 2 + 1;
    struct pollfd polled[NODES];
    self->asked++;
    for (int i = 0; i < self->count; i++) {
        if (send(self->contexts[i]->fd, command, length, MSG_NOSIGNAL) != (ssize_t)length)
            bench_die("by hand", "send");
        polled[i] = (struct pollfd){ .fd = self->contexts[i]->fd, .events = POLLIN };
    }
    for (int answers = 0; answers < majority;) {
        /* A processor that sleeps takes longer to wake up than a server to answer; the store waits awake, too. */
        if (poll(polled, (nfds_t)self->count, 0) < 0)
            bench_die("by hand", "poll");
        for (int i = 0; i < self->count; i++)
            if (polled[i].revents != 0 && hear(self, i)) {
                answers++;
                polled[i].fd = -1;
            }
    }
}

static void pair_by_hand(by_hand *self)
{
    char *command = NULL;
    char claim[SNK_ID_TEXT_SIZE];
    char token[24];
    snk_id id;
    if (!snk_id_random(&id))
        bench_die("by hand", "no random bytes");
    snk_id_to_hex(&id, claim);
    (void)snprintf(token, sizeof token, "%lld", (long long)snk_wall_us() + 50000);
    int length =
        redisFormatCommand(&command,
                           "EVALSHA %s 4 lock:hand {lock:hand}:token {lock:hand}:gone {lock:}:quorum %s.0 1000 "
                           "%s 1000 7f3c1b52-3f0e-4a4c-9b55-0123456789ab:17 1 ~claim %s.0 ~token %s ~owner "
                           "7f3c1b52-3f0e-4a4c-9b55-0123456789ab:17 ~pid 1234 ~host bench ~why %s",
                           snk_node_scripts[SNK_NODE_VOTE].sha, claim, token, claim, token, "");
    ask_by_hand(self, command, (size_t)length);
    redisFreeCommand(command);
    length = redisFormatCommand(
        &command, "EVALSHA %s 3 lock:hand {lock:hand}:gone {lock:hand}:log %s 0 lock:release:hand %s %s %s",
        snk_node_scripts[SNK_NODE_RELEASE].sha, claim, "{\"lockKey\":\"hand\"", "", "");
    ask_by_hand(self, command, (size_t)length);
    redisFreeCommand(command);
}

static void ping_by_hand(by_hand *self)
{
    static const char ping[] = "*1\r\n$4\r\nPING\r\n";
    for (int i = 0; i < 2; i++)
        ask_by_hand(self, ping, sizeof ping - 1);
}

static void run_by_hand(by_hand *self, int64_t *times, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int64_t began_ns = snk_now_ns();
        if (self->pings)
            ping_by_hand(self);
        else
            pair_by_hand(self);
        times[i] = snk_now_ns() - began_ns;
    }
}

static void close_by_hand(by_hand *self)
{
    for (int i = 0; i < self->count; i++)
        redisFree(self->contexts[i]);
}

/* ---- What the servers do ---- */

/* How long all servers together have been running on their core. */
static int64_t servers_ran_ns(void)
{
    int64_t sum_ns = 0;
    for (int i = 0; i < NODES; i++) {
        char path[64];
        char line[128] = "";
        (void)snprintf(path, sizeof path, "/proc/%d/schedstat", (int)servers[i].pid);
        FILE *file = fopen(path, "r");
        bool is_read = file != NULL && fgets(line, sizeof line, file) != NULL;
        if (file != NULL)
            (void)fclose(file);
        if (!is_read)
            bench_die("schedstat", "cannot be read");
        sum_ns += strtoll(line, NULL, 10);
    }
    return sum_ns;
}

/* ---- The comparison ---- */

enum {
    ONE_SERVER,
    FIVE_NODES,
    ONE_NODE,
    FIVE_BY_HAND,
    ONE_BY_HAND,
    FIVE_PINGS,
    DESIGNS
};

typedef struct design {
    const char *name;
    char url[256]; /* "": by hand */
    int nodes;     /* by hand */
    bool pings;    /* by hand */
    sneck_client *client;
    sneck_lock *lock;
    by_hand hand;
    int64_t *times;
    int64_t served_ns; /* that the servers ran meanwhile */
} design;

static void open_design(design *self, const char *name, size_t count)
{
    self->times = calloc(count, sizeof(int64_t));
    if (self->times == NULL)
        bench_die("calloc", "out of memory");
    if (self->nodes > 0)
        open_by_hand(&self->hand, self->nodes, self->pings);
    else
        self->lock = bench_lock(self->url, name, &self->client);
}

static void run_design(design *self, int64_t *times, size_t count)
{
    int64_t before_ns = servers_ran_ns();
    if (self->nodes > 0)
        run_by_hand(&self->hand, times, count);
    else
        run(self->lock, times, count);
    self->served_ns += servers_ran_ns() - before_ns;
}

static void close_design(design *self)
{
    sneck_lock_free(self->lock);
    sneck_close(self->client);
    close_by_hand(&self->hand);
    free(self->times);
}

int main(int argc, char **argv)
{
    static design designs[DESIGNS] = {
        [ONE_SERVER] = { .name = "one server" },
        [FIVE_NODES] = { .name = "five nodes" },
        [ONE_NODE] = { .name = "one node as a quorum" },
        [FIVE_BY_HAND] = { .name = "five nodes by hand", .nodes = NODES },
        [ONE_BY_HAND] = { .name = "one node by hand", .nodes = 1 },
        [FIVE_PINGS] = { .name = "five nodes, 2 PINGs", .nodes = NODES, .pings = true },
    };
    size_t pairs = argc > 1 ? strtoul(argv[1], NULL, 10) : 400;
    size_t rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : 15;
    double median_us[DESIGNS];
    start_servers();
    (void)snprintf(designs[ONE_SERVER].url, sizeof designs[0].url, "redis://127.0.0.1:%d/1", servers[0].port);
    make_url(designs[FIVE_NODES].url, sizeof designs[0].url, NODES);
    make_url(designs[ONE_NODE].url, sizeof designs[0].url, 1);
    for (size_t i = 0; i < DESIGNS; i++) {
        open_design(&designs[i], i == ONE_NODE ? "alone" : "pairs", pairs * rounds);
        run_design(&designs[i], designs[i].times, pairs); /* to warm up */
        designs[i].served_ns = 0;
    }
    for (size_t i = 0; i < rounds; i++)
        for (size_t j = 0; j < DESIGNS; j++)
            run_design(&designs[j], designs[j].times + i * pairs, pairs);
    for (size_t i = 0; i < DESIGNS; i++) {
        median_us[i] = bench_percentile_us(designs[i].times, pairs * rounds, 50);
        printf("quorum  lock+unlock  %-20s  p50 %6.1f us  p99 %6.1f us  servers at work %6.1f us\n", designs[i].name,
               median_us[i], bench_percentile_us(designs[i].times, pairs * rounds, 99),
               (double)designs[i].served_ns / 1e3 / (double)(pairs * rounds));
        close_design(&designs[i]);
    }
    printf("quorum  five by hand / one by hand  %.2f times: what five servers cost on one core\n",
           median_us[FIVE_BY_HAND] / median_us[ONE_BY_HAND]);
    printf("quorum  five nodes, 2 PINGs / one server  %.2f times: the same without any work for the servers\n",
           median_us[FIVE_PINGS] / median_us[ONE_SERVER]);
    printf("quorum  five nodes / five by hand  %.2f times\n", median_us[FIVE_NODES] / median_us[FIVE_BY_HAND]);
    printf("quorum  five nodes / one server  %.2f times (goal: at most %.1f)",
           median_us[FIVE_NODES] / median_us[ONE_SERVER], GOAL);
    bench_goal_at_most(median_us[FIVE_NODES] / median_us[ONE_SERVER], GOAL);
    return 0;
}
