#include "postgres_bed.h"

#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "documented.h"
#include "test.h"

#define TEXT_SIZE 65536

/* ---- The server ---- */

PGconn *postgres_bed_connect(const postgres_bed *bed, const char *user)
{
    char info[256];
    (void)snprintf(info, sizeof info, "host=%s port=%d user=%s dbname=locks options='-c search_path=sneck'",
                   bed->server.directory, bed->server.port, user);
    PGconn *connection = PQconnectdb(info);
    if (PQstatus(connection) != CONNECTION_OK)
        fail_msg("%s", PQerrorMessage(connection));
    return connection;
}

static void ignore_notice(void *context, const char *message)
{
    (void)context;
    (void)message;
}

static void connect_admin(postgres_bed *bed)
{
    bed->admin = postgres_bed_connect(bed, "postgres");
    (void)PQsetNoticeProcessor(bed->admin, ignore_notice, NULL);
}

static void make_database(const postgres_bed *bed)
{
    char info[256];
    (void)snprintf(info, sizeof info, "host=%s port=%d user=postgres dbname=postgres", bed->server.directory,
                   bed->server.port);
    PGconn *connection = PQconnectdb(info);
    PGresult *result = PQexec(connection, "CREATE DATABASE locks");
    if (PQresultStatus(result) != PGRES_COMMAND_OK)
        fail_msg("%s", PQerrorMessage(connection));
    PQclear(result);
    PQfinish(connection);
}

static void run_line(void *bed, const char *sql)
{
    postgres_bed_do(bed, "%s", sql);
}

void postgres_bed_start_with(postgres_bed *bed, const char *const options[])
{
    *bed = (postgres_bed){ .admin = NULL };
    if (!postgres_server_start(&bed->server, options))
        fail_msg("PostgreSQL does not start; see %s/log", bed->server.directory);
    make_database(bed);
    connect_admin(bed);
    documented_roles("docs/postgres.md", bed->server.port, run_line, bed);
}

void postgres_bed_start(postgres_bed *bed)
{
    postgres_bed_start_with(bed, NULL);
}

void postgres_bed_stop(postgres_bed *bed)
{
    PQfinish(bed->admin);
    postgres_server_stop(&bed->server);
}

void postgres_bed_crash(postgres_bed *bed)
{
    PQfinish(bed->admin);
    bed->admin = NULL;
    postgres_server_crash(&bed->server);
}

void postgres_bed_restart(postgres_bed *bed)
{
    assert_true(postgres_server_restart(&bed->server));
    connect_admin(bed);
}

void postgres_bed_clear(postgres_bed *bed)
{
    postgres_bed_do(bed, "TRUNCATE sneck_state, sneck_hold, sneck_queue, sneck_tombstone, sneck_incident, sneck_lock");
}

/* ---- URLs ---- */

const char *postgres_bed_url_at(int port, const char *keys)
{
    static char url[256];
    (void)snprintf(url, sizeof url, "postgres://sneck:secret@127.0.0.1:%d/locks%s%s", port, keys == NULL ? "" : "?",
                   keys == NULL ? "" : keys);
    return url;
}

const char *postgres_bed_url(const postgres_bed *bed, const char *keys)
{
    return postgres_bed_url_at(bed->server.port, keys);
}

sneck_client *postgres_bed_open(const postgres_bed *bed, const char *keys, const sneck_client_options *options)
{
    sneck_error error;
    sneck_client *client = NULL;
    if (sneck_open(postgres_bed_url(bed, keys), options, &client, &error) != SNECK_OK)
        fail_msg("open: %s", error.message);
    return client;
}

/* ---- Looking ---- */

__attribute__((format(printf, 2, 0))) static PGresult *ask(postgres_bed *bed, const char *format, va_list arguments)
{
    char sql[TEXT_SIZE];
    (void)vsnprintf(sql, sizeof sql, format, arguments);
    PGresult *result = PQexec(bed->admin, sql);
    ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        fail_msg("%s: %s", sql, PQerrorMessage(bed->admin));
    return result;
}

void postgres_bed_do(postgres_bed *bed, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    PQclear(ask(bed, format, arguments));
    va_end(arguments);
}

static const char *first_value(const PGresult *result)
{
    return PQntuples(result) > 0 ? PQgetvalue(result, 0, 0) : "";
}

long long postgres_bed_number(postgres_bed *bed, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    PGresult *result = ask(bed, format, arguments);
    va_end(arguments);
    long long number = strtoll(first_value(result), NULL, 10);
    PQclear(result);
    return number;
}

const char *postgres_bed_text(postgres_bed *bed, const char *format, ...)
{
    static char text[TEXT_SIZE];
    va_list arguments;
    va_start(arguments, format);
    PGresult *result = ask(bed, format, arguments);
    va_end(arguments);
    (void)snprintf(text, sizeof text, "%s", first_value(result));
    PQclear(result);
    return text;
}

void postgres_bed_pause(int64_t ms)
{
    struct timespec pause = snk_timespec(ms * SNK_NS_PER_MS);
    (void)nanosleep(&pause, NULL);
}

void postgres_bed_await(postgres_bed *bed, const char *sql, long long expected)
{
    int64_t limit_ns = snk_now_ns() + 30 * SNK_NS_PER_S;
    long long number = 0;
    while ((number = postgres_bed_number(bed, "%s", sql)) != expected) {
        if (snk_now_ns() >= limit_ns)
            fail_msg("%s is %lld, not %lld", sql, number, expected);
        postgres_bed_pause(1);
    }
}

long long postgres_bed_calls(postgres_bed *bed, const char *function)
{
    postgres_bed_do(bed, "SELECT pg_stat_clear_snapshot()");
    return postgres_bed_number(bed, "SELECT calls FROM pg_stat_user_functions WHERE funcname = '%s'", function);
}

/* ---- For cmocka ---- */

static postgres_bed shared;

int postgres_bed_set_up(void **state)
{
    if (shared.server.pid == 0)
        postgres_bed_start(&shared);
    postgres_bed_clear(&shared);
    *state = &shared;
    return 0;
}

int postgres_bed_tear_down(void **state)
{
    (void)state;
    return 0;
}

int postgres_bed_end(void **state)
{
    (void)state;
    if (shared.server.pid != 0)
        postgres_bed_stop(&shared);
    return 0;
}
