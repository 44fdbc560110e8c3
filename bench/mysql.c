/*
 * The MariaDB store against what one could write by hand, on a server of its own (unix socket, nothing synced):
 *
 *   pairs of acquire and release, each thread on a lock of its own
 *     raw       a blocking connection per thread, the same two statements
 *     GET_LOCK  a blocking connection per thread, GET_LOCK and RELEASE_LOCK
 *     ours      sneck_acquire and sneck_release, one client
 *
 *   hand-off of one lock among processes: turns a second
 *     GET_LOCK  they wait in the server's own queue, each with a connection
 *     ours      mode=lease and mode=row
 *
 * Usage: bench-mysql [SECONDS [ROUNDS]]. Only ratios within one run mean anything: designs take turns in each round.
 */
#include <mysql.h>

#include "../tests/lib/mysql_server.h"
#include "sql_bench.h"

static mysql_server server;

static void stop(void)
{
    mysql_server_stop(&server);
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
                       "SELECT sneck_acquire('lock:bench-%d','%s',30000000,1,1,0,'%s',1234,'bench','',0,0,'',0)",
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

static void turns_get_lock(void *context)
{
    board *shared = context;
    MYSQL *my = dial("locks");
    await_go(shared);
    while (!atomic_load(&shared->stop)) {
        run(my, "SELECT GET_LOCK('turns', 20)");
        (void)atomic_fetch_add(&shared->turns, 1);
        run(my, "SELECT RELEASE_LOCK('turns')");
    }
    mysql_close(my);
}

int main(int argc, char **argv)
{
    read_arguments(argc, argv, "bench-mysql");
    stop_server = stop;
    if (!mysql_server_start(&server))
        fail_with("MariaDB", "does not start");
    MYSQL *admin = dial(NULL);
    run(admin, "CREATE DATABASE locks");
    mysql_close(admin);
    (void)snprintf(url, sizeof url, "mysql://root@%%2Fdev%%2Fshm%%2F%s%%2Fsocket/locks",
                   strrchr(server.directory, '/') + 1);
    sneck_close(open_with("mode=lease")); /* makes the tables */
    compare(1, true);
    compare(8, false);
    compare_turns("mysql", turns_get_lock, "GET_LOCK");
    stop();
    return 0;
}
