/*
 * The PostgreSQL store against what one could write by hand, on a server of its own (unix socket, nothing synced):
 *
 *   pairs of acquire and release, each thread on a lock of its own
 *     raw       a blocking libpq connection per thread, the same two prepared statements
 *     pipe      one libpq connection with as many statements on their way as there are threads
 *     advisory  a blocking libpq connection per thread, pg_advisory_lock and pg_advisory_unlock
 *     ours      sneck_acquire and sneck_release, one client
 *
 *   hand-off of one lock among processes: turns a second
 *     advisory  they wait in the server's own queue, each with a connection
 *     ours      mode=lease and mode=row
 *
 * Usage: bench-postgres [SECONDS [ROUNDS]]. Only ratios within one run mean anything: designs take turns in each round.
 */
#include <pthread.h>

#include <libpq-fe.h>

#include "../tests/lib/postgres_server.h"
#include "base/ids.h"
#include "bench.h"
#include "store/postgres/statements.h"

#define THREADS_MAX 16
#define PROCESSES 16
#define ROUNDS_MAX 31

static postgres_server server;
static double seconds = 0.4;
static int rounds = 7;

static char info[256];
static char url[256];

/* The server dies with this process, and so does not stay behind when something fails. */
static void fail_with(const char *what, const char *why)
{
    postgres_server_stop(&server);
    bench_die(what, why);
}

static void expect(sneck_status status, const sneck_error *error)
{
    if (status != SNECK_OK)
        fail_with(sneck_status_name(status), error->message);
}

static PGconn *dial(void)
{
    PGconn *connection = PQconnectdb(info);
    if (PQstatus(connection) != CONNECTION_OK)
        fail_with("connect", PQerrorMessage(connection));
    return connection;
}

static void check(PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK && status != PGRES_PIPELINE_SYNC)
        fail_with("statement", PQresultErrorMessage(result));
    PQclear(result);
}

static void prepare(PGconn *connection, snk_pg_statement which)
{
    check(PQprepare(connection, snk_pg_sql_of[which].name, snk_pg_sql_of[which].text, 0, NULL));
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

/* The parameters of the two statements, as the store sends them. */
typedef struct by_hand {
    char name[32];
    char claim[SNK_ID_TEXT_SIZE];
    const char *acquire[15];
    const char *release[4];
} by_hand;

static void fill(by_hand *lock, int number)
{
    static const char uuid[] = "7f3c1b52-3f0e-4a4c-9b55-0c4b7f2f9f10";
    (void)snprintf(lock->name, sizeof lock->name, "lock:bench-%d", number);
    const char *const acquire[] = { lock->name, lock->claim, "30000000", "1",  "t", "f", uuid, uuid,
                                    "1234",     "bench",     "",         NULL, "0", "1", NULL };
    const char *const release[] = { lock->name, lock->claim, "0", "f" };
    memcpy(lock->acquire, acquire, sizeof acquire);
    memcpy(lock->release, release, sizeof release);
}

static void draw(by_hand *lock)
{
    snk_id id;
    if (!snk_id_random(&id))
        fail_with("random", "no bytes");
    snk_id_to_hex(&id, lock->claim);
}

static bool goes_on(const worker *self)
{
    return !atomic_load_explicit(self->stop, memory_order_relaxed);
}

static void *work_raw(void *argument)
{
    worker *self = argument;
    PGconn *connection = dial();
    by_hand lock;
    fill(&lock, self->number);
    prepare(connection, SNK_PG_ACQUIRE);
    prepare(connection, SNK_PG_RELEASE);
    while (goes_on(self)) {
        draw(&lock);
        check(PQexecPrepared(connection, "sneck_acquire", 15, lock.acquire, NULL, NULL, 0));
        check(PQexecPrepared(connection, "sneck_release", 4, lock.release, NULL, NULL, 0));
        self->pairs++;
    }
    PQfinish(connection);
    return NULL;
}

static void *work_advisory(void *argument)
{
    worker *self = argument;
    PGconn *connection = dial();
    char number[16];
    const char *const values[] = { number };
    (void)snprintf(number, sizeof number, "%d", self->number);
    check(PQprepare(connection, "lock", "SELECT pg_advisory_lock($1)", 0, NULL));
    check(PQprepare(connection, "unlock", "SELECT pg_advisory_unlock($1)", 0, NULL));
    while (goes_on(self)) {
        check(PQexecPrepared(connection, "lock", 1, values, NULL, NULL, 0));
        check(PQexecPrepared(connection, "unlock", 1, values, NULL, NULL, 0));
        self->pairs++;
    }
    PQfinish(connection);
    return NULL;
}

/* All locks on one connection: each statement its own transaction, and the answers in order. */
static void *work_pipe(void *argument)
{
    worker *self = argument;
    PGconn *connection = dial();
    by_hand locks[THREADS_MAX];
    for (int i = 0; i < self->threads; i++)
        fill(&locks[i], i);
    prepare(connection, SNK_PG_ACQUIRE);
    prepare(connection, SNK_PG_RELEASE);
    (void)PQenterPipelineMode(connection);
    while (goes_on(self)) {
        for (int acquire = 1; acquire >= 0; acquire--) {
            for (int i = 0; i < self->threads; i++) {
                if (acquire == 1)
                    draw(&locks[i]);
                (void)PQsendQueryPrepared(connection, acquire == 1 ? "sneck_acquire" : "sneck_release",
                                          acquire == 1 ? 15 : 4, acquire == 1 ? locks[i].acquire : locks[i].release,
                                          NULL, NULL, 0);
                (void)PQpipelineSync(connection);
            }
            for (int i = 0; i < self->threads; i++) {
                check(PQgetResult(connection));
                PQclear(PQgetResult(connection));
                check(PQgetResult(connection));
            }
        }
        self->pairs += (uint64_t)self->threads;
    }
    PQfinish(connection);
    return NULL;
}

static void *work_ours(void *argument)
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

/* Pairs a second. */
static double measure(void *(*work)(void *), int threads, const char *keys)
{
    static worker workers[THREADS_MAX];
    atomic_bool stop = false;
    sneck_client *client = NULL;
    sneck_error error;
    char whole[300];
    (void)snprintf(whole, sizeof whole, "%s?%s", url, keys);
    if (work == work_ours)
        expect(sneck_open(whole, NULL, &client, &error), &error);
    int started = work == work_pipe ? 1 : threads;
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

static void compare_pairs(int threads, bool has_goal)
{
    double raw[ROUNDS_MAX] = { 0 };
    double pipe[ROUNDS_MAX] = { 0 };
    double advisory[ROUNDS_MAX] = { 0 };
    double ours[ROUNDS_MAX] = { 0 };
    double ratio[ROUNDS_MAX] = { 0 };
    char keys[32];
    (void)snprintf(keys, sizeof keys, "connections=%d", threads < 4 ? 4 : threads);
    for (int i = 0; i < rounds; i++) {
        raw[i] = measure(work_raw, threads, "");
        ours[i] = measure(work_ours, threads, keys);
        advisory[i] = measure(work_advisory, threads, "");
        pipe[i] = threads > 1 ? measure(work_pipe, threads, "") : 0;
        ratio[i] = ours[i] / raw[i];
    }
    size_t count = (size_t)rounds;
    double median = bench_median(ratio, count);
    printf("postgres pairs, %2d thread%s: %8.2f of raw libpq%s (ours %.0f/s, raw %.0f/s, pipe %.0f/s, pg_advisory_lock "
           "%.0f/s)",
           threads, threads == 1 ? " " : "s", median, has_goal ? " (goal: at least 0.9)" : "",
           bench_median(ours, count), bench_median(raw, count), bench_median(pipe, count),
           bench_median(advisory, count));
    if (has_goal)
        bench_goal_at_least(median, 0.9);
    else
        putchar('\n');
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

static void await_go(board *shared)
{
    (void)atomic_fetch_add(&shared->ready, 1);
    while (!atomic_load(&shared->go))
        (void)usleep(1000);
}

static void turns_ours(void *context)
{
    board *shared = context;
    sneck_client *client = NULL;
    sneck_lock *lock = NULL;
    sneck_error error;
    char whole[300];
    (void)snprintf(whole, sizeof whole, "%s?%s", url, shared->keys);
    bench_expect(sneck_open(whole, NULL, &client, &error), &error);
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

static void turns_advisory(void *context)
{
    board *shared = context;
    PGconn *connection = dial();
    await_go(shared);
    while (!atomic_load(&shared->stop)) {
        check(PQexec(connection, "SELECT pg_advisory_lock(7)"));
        (void)atomic_fetch_add(&shared->turns, 1);
        check(PQexec(connection, "SELECT pg_advisory_unlock(7)"));
    }
    PQfinish(connection);
}

static double measure_turns(void (*turns)(void *), const char *keys)
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

static void compare_turns(void)
{
    double lease[ROUNDS_MAX] = { 0 };
    double row[ROUNDS_MAX] = { 0 };
    double advisory[ROUNDS_MAX] = { 0 };
    int count = rounds < 3 ? rounds : 3;
    for (int i = 0; i < count; i++) {
        lease[i] = measure_turns(turns_ours, "mode=lease");
        row[i] = measure_turns(turns_ours, "mode=row");
        advisory[i] = measure_turns(turns_advisory, "");
    }
    printf("postgres hand-off, %d processes: mode=lease %.0f/s, mode=row %.0f/s, pg_advisory_lock %.0f/s\n", PROCESSES,
           bench_median(lease, (size_t)count), bench_median(row, (size_t)count), bench_median(advisory, (size_t)count));
}

int main(int argc, char **argv)
{
    if (argc > 1)
        seconds = strtod(argv[1], NULL);
    if (argc > 2)
        rounds = (int)strtol(argv[2], NULL, 10);
    if (seconds <= 0 || rounds < 1 || rounds > ROUNDS_MAX) {
        (void)fprintf(stderr, "usage: bench-postgres [SECONDS [ROUNDS, at most %d]]\n", ROUNDS_MAX);
        return 64;
    }
    if (!postgres_server_start(&server, NULL))
        fail_with("PostgreSQL", "does not start");
    (void)snprintf(info, sizeof info, "host=%s port=%d user=postgres dbname=postgres", server.directory, server.port);
    (void)snprintf(url, sizeof url, "postgres://postgres@%%2Fdev%%2Fshm%%2F%s:%d/postgres",
                   strrchr(server.directory, '/') + 1, server.port);
    sneck_client *client = NULL;
    sneck_error error;
    expect(sneck_open(url, NULL, &client, &error), &error); /* makes the tables */
    sneck_close(client);
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    compare_pairs(1, true);
    compare_pairs(8, false);
    compare_turns();
    postgres_server_stop(&server);
    return 0;
}
