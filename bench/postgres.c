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
#include <libpq-fe.h>

#include "../tests/lib/postgres_server.h"
#include "sql_bench.h"
#include "store/postgres/statements.h"

static postgres_server server;
static char info[256];

static void stop(void)
{
    postgres_server_stop(&server);
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

static void compare_pairs(int threads, bool has_goal)
{
    double raw[ROUNDS_MAX] = { 0 };
    double pipe[ROUNDS_MAX] = { 0 };
    double advisory[ROUNDS_MAX] = { 0 };
    double ours[ROUNDS_MAX] = { 0 };
    double ratio[ROUNDS_MAX] = { 0 };
    for (int i = 0; i < rounds; i++) {
        raw[i] = measure(work_raw, threads);
        ours[i] = measure(work_ours, threads);
        advisory[i] = measure(work_advisory, threads);
        pipe[i] = threads > 1 ? measure_with(work_pipe, threads, 1) : 0;
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

int main(int argc, char **argv)
{
    read_arguments(argc, argv, "bench-postgres");
    stop_server = stop;
    if (!postgres_server_start(&server, NULL))
        fail_with("PostgreSQL", "does not start");
    (void)snprintf(info, sizeof info, "host=%s port=%d user=postgres dbname=postgres", server.directory, server.port);
    (void)snprintf(url, sizeof url, "postgres://postgres@%%2Fdev%%2Fshm%%2F%s:%d/postgres",
                   strrchr(server.directory, '/') + 1, server.port);
    sneck_close(open_with("mode=lease")); /* makes the tables */
    compare_pairs(1, true);
    compare_pairs(8, false);
    compare_turns("postgres", turns_advisory, "pg_advisory_lock");
    stop();
    return 0;
}
