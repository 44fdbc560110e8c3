#include "sql_bed.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "bed.h"
#if SNK_WITH_MYSQL
#include "mysql_bed.h"
#endif
#if SNK_WITH_POSTGRES
#include "postgres_bed.h"
#endif

#if SNK_WITH_POSTGRES
static int postgres_port(const void *bed)
{
    return ((const postgres_bed *)bed)->server.port;
}

static void postgres_run(void *bed, const char *sql)
{
    postgres_bed_do(bed, "%s", sql);
}

static const char *postgres_text(void *bed, const char *sql)
{
    postgres_bed_do(bed, "SELECT pg_stat_clear_snapshot()");
    return postgres_bed_text(bed, "%s", sql);
}

static void postgres_crash(void *bed)
{
    postgres_bed_crash(bed);
}

static void postgres_restart(void *bed)
{
    postgres_bed_restart(bed);
}

static void postgres_freeze(const void *bed)
{
    postgres_server_freeze(&((const postgres_bed *)bed)->server);
}

static void postgres_thaw(const void *bed)
{
    postgres_server_thaw(&((const postgres_bed *)bed)->server);
}

static void *postgres_program(void *bed)
{
    return postgres_bed_connect(bed, "postgres");
}

static bool postgres_execute(void *program, const char *sql)
{
    PGresult *result = PQexec(program, sql);
    ExecStatusType status = PQresultStatus(result);
    PQclear(result);
    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

static void postgres_disconnect(void *program)
{
    PQfinish(program);
}

#define POSTGRES_ROWS " FROM pg_stat_activity WHERE state = 'idle in transaction' AND usename = 'sneck'"

static const sql_server postgres = {
    .name = "PostgreSQL",
    .scheme = "postgres",
    .set_up = postgres_bed_set_up,
    .end = postgres_bed_end,
    .port = postgres_port,
    .url_at = postgres_bed_url_at,
    .run = postgres_run,
    .text = postgres_text,
    .crash = postgres_crash,
    .restart = postgres_restart,
    .freeze = postgres_freeze,
    .thaw = postgres_thaw,
    .lock_waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'",
    .row_sessions = "SELECT count(*)" POSTGRES_ROWS,
    .sessions = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'sneck'",
    .end_row_sessions = "SELECT pg_terminate_backend(pid, 5000)" POSTGRES_ROWS,
    .listeners = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'",
    .end_listeners = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'",
    .end_all_sessions = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = 'sneck'",
    .end_sessions = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'sneck' AND random() < 0.3",
    /* One look by whoever was granted it, and one of each process when it begins to listen; with a row one more. */
    .work = "SELECT calls FROM pg_stat_user_functions WHERE funcname = 'sneck_renew'",
    .work_reset = "SELECT pg_stat_reset()",
    .work_unit = "looks",
    .work_lease = 1.5,
    .work_row = 3.0,
    .connect = postgres_program,
    .execute = postgres_execute,
    .disconnect = postgres_disconnect,
};
#endif

#if SNK_WITH_MYSQL
static int mariadb_port(const void *bed)
{
    return ((const mysql_bed *)bed)->server.port;
}

static void mariadb_run(void *bed, const char *sql)
{
    mysql_bed_do(bed, "%s", sql);
}

static const char *mariadb_text(void *bed, const char *sql)
{
    return mysql_bed_text(bed, sql);
}

static void mariadb_crash(void *bed)
{
    mysql_bed_crash(bed);
}

static void mariadb_restart(void *bed)
{
    mysql_bed_restart(bed);
}

static void mariadb_freeze(const void *bed)
{
    kill(((const mysql_bed *)bed)->server.pid, SIGSTOP);
}

static void mariadb_thaw(const void *bed)
{
    kill(((const mysql_bed *)bed)->server.pid, SIGCONT);
}

static void *mariadb_program(void *bed)
{
    return mysql_bed_connect(bed, "root", "");
}

static bool mariadb_execute(void *program, const char *sql)
{
    bool done = mysql_query(program, sql) == 0;
    if (done)
        mysql_free_result(mysql_store_result(program));
    return done;
}

static void mariadb_disconnect(void *program)
{
    mysql_close(program);
}

#define MYSQL_STATUS(name)                                                                                             \
    "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = '" name "'"
#define MYSQL_ROWS                                                                                                     \
    " FROM information_schema.INNODB_TRX AS t JOIN information_schema.PROCESSLIST AS p ON p.ID = "                     \
    "t.trx_mysql_thread_id"                                                                                            \
    " WHERE p.USER = 'sneck' AND p.COMMAND = 'Sleep'"

#define MYSQL_KILL(which) "BEGIN NOT ATOMIC DECLARE v BIGINT DEFAULT (SELECT " which "); KILL CONNECTION v; END"
#define MYSQL_LISTENERS " FROM information_schema.PROCESSLIST WHERE STATE LIKE 'Waiting in MASTER_GTID_WAIT%'"

static const sql_server mariadb = {
    .name = "MariaDB",
    .scheme = "mysql",
    .set_up = mysql_bed_set_up,
    .end = mysql_bed_end,
    .port = mariadb_port,
    .url_at = mysql_bed_url_at,
    .run = mariadb_run,
    .text = mariadb_text,
    .crash = mariadb_crash,
    .restart = mariadb_restart,
    .freeze = mariadb_freeze,
    .thaw = mariadb_thaw,
    .lock_waits = MYSQL_STATUS("Innodb_row_lock_current_waits"),
    .row_sessions = "SELECT COUNT(*)" MYSQL_ROWS,
    .sessions = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER = 'sneck'",
    .end_row_sessions = MYSQL_KILL("MAX(p.ID)" MYSQL_ROWS),
    .listeners = "SELECT COUNT(*)" MYSQL_LISTENERS,
    .end_listeners = MYSQL_KILL("MAX(ID)" MYSQL_LISTENERS),
    .end_all_sessions = "KILL CONNECTION USER sneck",
    .end_sessions = "KILL CONNECTION USER sneck",
    /* Acquire, release, a renewal by whoever was granted it, and two questions of the session that is told. */
    .work = MYSQL_STATUS("Questions"),
    .work_unit = "statements",
    .work_lease = 7.0,
    .work_row = 24.0,
    .connect = mariadb_program,
    .execute = mariadb_execute,
    .disconnect = mariadb_disconnect,
};
#endif

static const sql_server *const servers[] = {
#if SNK_WITH_MYSQL
    &mariadb,
#endif
#if SNK_WITH_POSTGRES
    &postgres,
#endif
};

#define SERVERS (sizeof servers / sizeof servers[0])

/* ---- Running ---- */

static void (*prepare_test)(sql_bed *bed);
static void (*clear_up_test)(sql_bed *bed);

static int set_up(void **state)
{
    sql_bed *bed = *state;
    int result = bed->server->set_up(&bed->bed);
    if (result == 0 && prepare_test != NULL)
        prepare_test(bed);
    return result;
}

static int tear_down(void **state)
{
    if (clear_up_test != NULL)
        clear_up_test(*state);
    return 0;
}

static int end_all(void **state)
{
    for (size_t i = 0; i < SERVERS; i++)
        (void)servers[i]->end(state);
    return 0;
}

static struct CMUnitTest test_on(const sql_test *test, const sql_server *server, bool in_rows)
{
    char name[256];
    sql_bed *bed = calloc(1, sizeof *bed);
    assert_non_null(bed);
    *bed = (sql_bed){ .server = server, .mode = in_rows ? "mode=row" : "mode=lease" };
    (void)snprintf(name, sizeof name, "%s %s: %s", server->name, in_rows ? "row" : "lease", test->name);
    return (struct CMUnitTest){ strdup(name), test->run, set_up, tear_down, bed };
}

int sql_bed_run(const char *group, const sql_test tests[], size_t count, void (*prepare)(sql_bed *bed),
                void (*clear_up)(sql_bed *bed))
{
    size_t total = 0;
    prepare_test = prepare;
    clear_up_test = clear_up;
    struct CMUnitTest *all = calloc(2 * SERVERS * count, sizeof *all);
    if (all == NULL)
        return 1;
    for (size_t i = 0; i < SERVERS * count; i++) {
        const sql_test *test = &tests[i % count];
        if ((test->modes & SQL_LEASE) != 0)
            all[total++] = test_on(test, servers[i / count], false);
        if ((test->modes & SQL_ROW) != 0)
            all[total++] = test_on(test, servers[i / count], true);
    }
    int failed = _cmocka_run_group_tests(group, all, total, NULL, end_all);
    for (size_t i = 0; i < total; i++) {
        free((void *)(uintptr_t)all[i].name);
        free(all[i].initial_state);
    }
    free(all);
    return failed;
}

/* ---- Asking ---- */

const char *sql_bed_url_at(const sql_bed *bed, int port, const char *keys)
{
    char all[128];
    (void)snprintf(all, sizeof all, "%s%s%s", bed->mode, keys == NULL ? "" : "&", keys == NULL ? "" : keys);
    return bed->server->url_at(port, all);
}

const char *sql_bed_url(const sql_bed *bed, const char *keys)
{
    return sql_bed_url_at(bed, bed->server->port(bed->bed), keys);
}

sneck_client *sql_bed_open(const sql_bed *bed, const char *keys, int64_t lease_ms)
{
    sneck_error error;
    sneck_client *client = NULL;
    sneck_client_options options = SNECK_CLIENT_OPTIONS_INIT;
    options.lease_ms = lease_ms;
    test_expect(SNECK_OK, sneck_open(sql_bed_url(bed, keys), &options, &client, &error), &error, "sneck_open");
    return client;
}

long long sql_bed_number(sql_bed *bed, const char *sql)
{
    return strtoll(bed->server->text(bed->bed, sql), NULL, 10);
}

void sql_bed_pause(int64_t ms)
{
    struct timespec pause = snk_timespec(ms * SNK_NS_PER_MS);
    (void)nanosleep(&pause, NULL);
}

void sql_bed_await(sql_bed *bed, const char *sql, long long expected)
{
    int64_t limit_ns = snk_now_ns() + 30 * SNK_NS_PER_S;
    long long number = 0;
    for (int tries = 0; (number = sql_bed_number(bed, sql)) != expected; tries++) {
        if (snk_now_ns() >= limit_ns)
            fail_msg("%s is %lld, not %lld", sql, number, expected);
        /* What InnoDB shows of transactions is made anew only if nobody has looked for 100 ms. */
        sql_bed_pause(tries < 100 ? 1 : 150);
    }
}
