/*
 * The MariaDB store against what one could write by hand, on a server of its own (unix socket, nothing synced): pairs of
 * acquire and release, each thread on a lock of its own.
 *
 *   raw       a blocking connection per thread, the same two statements
 *   GET_LOCK  a blocking connection per thread, GET_LOCK and RELEASE_LOCK
 *   ours      sneck_acquire and sneck_release, one client
 *
 * Usage: bench-mysql [SECONDS [ROUNDS]]. Only ratios within one run mean anything: designs take turns in each round.
 */
#include <pthread.h>

#include <mysql.h>

#include "../tests/lib/mysql_server.h"
#include "base/ids.h"
#include "bench.h"

#define THREADS_MAX 16
#define ROUNDS_MAX 31

static mysql_server server;
static double seconds = 0.4;
static int rounds = 7;
static char url[256];

static void fail_with(const char *what, const char *why)
{
    mysql_server_stop(&server);
    bench_die(what, why);
}

static void expect(sneck_status status, const sneck_error *error)
{
    if (status != SNECK_OK)
        fail_with(sneck_status_name(status), error->message);
}

static MYSQL *dial(const char *database)
{
    MYSQL *my = mysql_init(NULL);
    if (my == NULL || mysql_real_connect(my, "localhost", "root", "", database, 0, server.socket, 0) == NULL)
        fail_with("connect", my == NULL ? "out of memory" : mysql_error(my));
    return my;
}

static void run(MYSQL *my, const char *text)
{
    if (mysql_query(my, text) != 0)
        fail_with(text, mysql_error(my));
    mysql_free_result(mysql_store_result(my));
}

typedef struct worker {
    pthread_t thread;
    int number;
    uint64_t pairs;
    sneck_client *client;
    atomic_bool *stop;
} worker;

static bool goes_on(const worker *self)
{
    return !atomic_load_explicit(self->stop, memory_order_relaxed);
}

static void *work_raw(void *argument)
{
    worker *self = argument;
    MYSQL *my = dial("locks");
    run(my, "SET SESSION tx_isolation = 'READ-COMMITTED'");
    while (goes_on(self)) {
        snk_id id;
        char claim[SNK_ID_TEXT_SIZE];
        char text[512];
        (void)snk_id_random(&id);
        snk_id_to_hex(&id, claim);
        (void)snprintf(text, sizeof text,
                       "SELECT sneck_acquire('lock:bench-%d','%s',30000000,1,1,0,'%s',1234,'bench','',0,0,'')",
                       self->number, claim, claim);
        run(my, text);
        (void)snprintf(text, sizeof text, "SELECT sneck_release('lock:bench-%d','%s',0,0)", self->number, claim);
        run(my, text);
        self->pairs++;
    }
    mysql_close(my);
    return NULL;
}

static void *work_get_lock(void *argument)
{
    worker *self = argument;
    MYSQL *my = dial("locks");
    char lock[64];
    char unlock[64];
    (void)snprintf(lock, sizeof lock, "SELECT GET_LOCK('bench-%d', 10)", self->number);
    (void)snprintf(unlock, sizeof unlock, "SELECT RELEASE_LOCK('bench-%d')", self->number);
    while (goes_on(self)) {
        run(my, lock);
        run(my, unlock);
        self->pairs++;
    }
    mysql_close(my);
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
static double measure(void *(*work)(void *), int threads)
{
    static worker workers[THREADS_MAX];
    atomic_bool stop = false;
    sneck_client *client = NULL;
    sneck_error error;
    if (work == work_ours)
        expect(sneck_open(url, NULL, &client, &error), &error);
    for (int i = 0; i < threads; i++) {
        workers[i] = (worker){ .number = i, .client = client, .stop = &stop };
        (void)pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    }
    int64_t began_ns = snk_now_ns();
    (void)usleep((useconds_t)(seconds * 1e6));
    atomic_store(&stop, true);
    uint64_t pairs = 0;
    for (int i = 0; i < threads; i++) {
        (void)pthread_join(workers[i].thread, NULL);
        pairs += workers[i].pairs;
    }
    double rate = (double)pairs * 1e9 / (double)(snk_now_ns() - began_ns);
    sneck_close(client);
    return rate;
}

static void compare(int threads, bool has_goal)
{
    double raw[ROUNDS_MAX] = { 0 };
    double get_lock[ROUNDS_MAX] = { 0 };
    double ours[ROUNDS_MAX] = { 0 };
    double ratio[ROUNDS_MAX] = { 0 };
    for (int i = 0; i < rounds; i++) {
        raw[i] = measure(work_raw, threads);
        ours[i] = measure(work_ours, threads);
        get_lock[i] = measure(work_get_lock, threads);
        ratio[i] = ours[i] / raw[i];
    }
    size_t count = (size_t)rounds;
    double median = bench_median(ratio, count);
    printf("mysql pairs, %2d thread%s: %8.2f of raw libmariadb%s (ours %.0f/s, raw %.0f/s, GET_LOCK %.0f/s)", threads,
           threads == 1 ? " " : "s", median, has_goal ? " (goal: at least 0.9)" : "", bench_median(ours, count),
           bench_median(raw, count), bench_median(get_lock, count));
    if (has_goal)
        bench_goal_at_least(median, 0.9);
    else
        putchar('\n');
}

int main(int argc, char **argv)
{
    if (argc > 1)
        seconds = strtod(argv[1], NULL);
    if (argc > 2)
        rounds = (int)strtol(argv[2], NULL, 10);
    if (seconds <= 0 || rounds < 1 || rounds > ROUNDS_MAX) {
        (void)fprintf(stderr, "usage: bench-mysql [SECONDS [ROUNDS, at most %d]]\n", ROUNDS_MAX);
        return 64;
    }
    if (!mysql_server_start(&server))
        fail_with("MariaDB", "does not start");
    MYSQL *admin = dial(NULL);
    run(admin, "CREATE DATABASE locks");
    mysql_close(admin);
    (void)snprintf(url, sizeof url, "mysql://root@%%2Fdev%%2Fshm%%2F%s%%2Fsocket/locks?connections=16",
                   strrchr(server.directory, '/') + 1);
    sneck_client *client = NULL;
    sneck_error error;
    expect(sneck_open(url, NULL, &client, &error), &error); /* makes the tables */
    sneck_close(client);
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    compare(1, true);
    compare(8, false);
    mysql_server_stop(&server);
    return 0;
}
