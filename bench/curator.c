/*
 * The ZooKeeper store against what users pick instead: Curator's InterProcessMutex, on the same server in the same run.
 *
 *   pairs      one thread locks and unlocks
 *   hand-off   two processes do so with the same lock, as fast as they get it; their pairs taken together
 *
 * Usage: bench-curator [SECONDS [ROUNDS]]. The two take turns in each round, and the median of the rounds is shown. The
 * peer is built by bench/peers/build, which ./dev bench runs; without it this program says so, and is done.
 */
#include <fcntl.h>

#include "../tests/lib/zookeeper_server.h"
#include "bench.h"

#define ROUNDS_MAX 31
#define PROCESSES 2
#define GOAL 1.0

static double seconds = 1;

/* ---- Curator, in processes of its own ---- */

typedef struct peer {
    pid_t pid;
    FILE *orders;
    FILE *figures;
} peer;

static void run_peer(const char *folder, int port, int orders, int figures)
{
    char classes[600];
    char server[64];
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    (void)snprintf(classes, sizeof classes, "%.256s:%.256s/jars/*", folder, folder);
    (void)snprintf(server, sizeof server, "127.0.0.1:%d", port);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)dup2(orders, 0);
    (void)dup2(figures, 1);
    (void)dup2(null, 2); /* it asks for a logger */
    execlp("java", "java", "-Xmx128m", "-XX:+UseSerialGC", "-cp", classes, "CuratorPeer", server, "/curator/bench",
           (char *)NULL);
    _exit(127);
}

static void start_peer(peer *made, const char *folder, int port)
{
    int orders[2];
    int figures[2];
    if (pipe2(orders, O_CLOEXEC) != 0 || pipe2(figures, O_CLOEXEC) != 0)
        bench_die("pipe", "none");
    made->pid = fork();
    if (made->pid == 0)
        run_peer(folder, port, orders[0], figures[1]);
    (void)close(orders[0]);
    (void)close(figures[1]);
    made->orders = fdopen(orders[1], "w");
    made->figures = fdopen(figures[0], "r");
    if (made->pid < 0 || made->orders == NULL || made->figures == NULL)
        bench_die("curator", "cannot be started");
}

static void stop_peer(peer *made)
{
    (void)fclose(made->orders);
    (void)fclose(made->figures);
    (void)waitpid(made->pid, NULL, 0);
}

/* So many of them at the same time; what they did together. */
static double measure_curator(peer peers[], size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        (void)fprintf(peers[i].orders, "%f\n", seconds);
        (void)fflush(peers[i].orders);
    }
    for (size_t i = 0; i < count; i++) {
        char line[64];
        if (fgets(line, sizeof line, peers[i].figures) == NULL)
            bench_die("curator", "ended");
        sum += strtod(line, NULL);
    }
    return sum;
}

/* ---- Ours, in processes as well ---- */

typedef struct worker {
    char url[64];
    _Atomic uint32_t round; /* raised to begin one */
    _Atomic uint32_t done;  /* the last one that is over */
    double seconds;
    double figure;
} worker;

static double measure_pairs(sneck_lock *lock, double for_seconds)
{
    sneck_error error;
    int64_t begin_ns = snk_now_ns();
    int64_t end_ns = begin_ns + (int64_t)(for_seconds * 1e9);
    unsigned pairs = 0;
    for (; snk_now_ns() < end_ns; pairs++) {
        bench_expect(sneck_acquire(lock, SNECK_FOREVER, &error), &error);
        bench_expect(sneck_release(lock, &error), &error);
    }
    return pairs / ((double)(snk_now_ns() - begin_ns) / 1e9);
}

static void await_change(_Atomic uint32_t *word, uint32_t from)
{
    const snk_futex_word waited = { .word = word, .expected = from, .shared = true };
    while (atomic_load(word) == from)
        (void)snk_futex_wait_any(&waited, 1, 100 * SNK_NS_PER_MS);
}

static void work(void *context)
{
    worker *self = context;
    sneck_client *client = NULL;
    await_change(&self->round, 0);
    sneck_lock *lock = bench_lock(self->url, "bench", &client);
    for (uint32_t round = 1;; round++) {
        self->figure = measure_pairs(lock, self->seconds);
        atomic_store(&self->done, round);
        snk_futex_wake(&self->done, 1, true);
        await_change(&self->round, round);
    }
}

static double measure_ours(worker workers[], size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        workers[i].seconds = seconds;
        (void)atomic_fetch_add(&workers[i].round, 1);
        snk_futex_wake(&workers[i].round, 1, true);
    }
    for (size_t i = 0; i < count; i++) {
        await_change(&workers[i].done, atomic_load(&workers[i].round) - 1);
        sum += workers[i].figure;
    }
    return sum;
}

static void compare(const char *what, peer peers[], worker workers[], size_t count, int rounds)
{
    double theirs[ROUNDS_MAX] = { 0 };
    double ours[ROUNDS_MAX] = { 0 };
    double ratios[ROUNDS_MAX] = { 0 };
    (void)measure_curator(peers, count); /* both compile what they run often */
    (void)measure_ours(workers, count);
    for (int i = 0; i < rounds; i++) {
        theirs[i] = measure_curator(peers, count);
        ours[i] = measure_ours(workers, count);
        ratios[i] = ours[i] / theirs[i];
    }
    double ratio = bench_median(ratios, (size_t)rounds);
    printf("zookeeper, %s: Curator %.0f, ours %.0f; ours/Curator %.2f, at least %.2f", what,
           bench_median(theirs, (size_t)rounds), bench_median(ours, (size_t)rounds), ratio, GOAL);
    bench_goal_at_least(ratio, GOAL);
}

int main(int argc, char **argv)
{
    zookeeper_server server = { .pid = 0 };
    peer peers[PROCESSES] = { { .pid = 0 } };
    char folder[256];
    char built[300];
    const char *build = getenv("SNECK_BUILD");
    (void)snprintf(folder, sizeof folder, "%s/bench/peers/curator", build == NULL ? "build" : build);
    (void)snprintf(built, sizeof built, "%s/CuratorPeer.class", folder);
    seconds = argc > 1 ? strtod(argv[1], NULL) : seconds;
    int rounds = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 7;
    if (rounds < 1 || rounds > ROUNDS_MAX)
        rounds = ROUNDS_MAX;
    if (!zookeeper_server_exists() || access(built, R_OK) != 0) {
        printf("zookeeper, against Curator: no server, or no %s\n", built);
        return 0;
    }
    worker *workers = bench_share(PROCESSES * sizeof *workers);
    pid_t children[PROCESSES];
    for (size_t i = 0; i < PROCESSES; i++)
        children[i] = bench_spawn(work, &workers[i]);
    if (!zookeeper_server_start(&server, NULL))
        bench_die("zookeeper", "the server does not start");
    for (size_t i = 0; i < PROCESSES; i++) {
        (void)snprintf(workers[i].url, sizeof workers[i].url, "zk://127.0.0.1:%d", server.port);
        start_peer(&peers[i], folder, server.port);
    }
    compare("pairs a second of one thread", peers, workers, 1, rounds);
    compare("pairs a second of two processes with one lock", peers, workers, PROCESSES, rounds);
    for (size_t i = 0; i < PROCESSES; i++) {
        stop_peer(&peers[i]);
        (void)kill(children[i], SIGKILL);
        (void)waitpid(children[i], NULL, 0);
    }
    zookeeper_server_stop(&server);
    return 0;
}
