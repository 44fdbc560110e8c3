#include "mysql_bed.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "documented.h"
#include "test.h"

/* ---- The server ---- */

MYSQL *mysql_bed_connect(const mysql_bed *bed, const char *user, const char *password)
{
    MYSQL *my = mysql_init(NULL);
    assert_non_null(my);
    if (mysql_real_connect(my, "localhost", user, password, "locks", 0, bed->server.socket, 0) == NULL)
        fail_msg("%s: %s", user, mysql_error(my));
    return my;
}

static void make_database(const mysql_bed *bed)
{
    MYSQL *my = mysql_init(NULL);
    assert_non_null(my);
    if (mysql_real_connect(my, "localhost", "root", "", NULL, 0, bed->server.socket, 0) == NULL ||
        mysql_query(my, "CREATE DATABASE locks") != 0)
        fail_msg("%s", mysql_error(my));
    mysql_close(my);
}

static void run_line(void *bed, const char *sql)
{
    mysql_bed_do(bed, "%s", sql);
}

void mysql_bed_start(mysql_bed *bed)
{
    mysql_bed_start_with(bed, NULL);
}

void mysql_bed_start_with(mysql_bed *bed, const char *const options[])
{
    *bed = (mysql_bed){ .admin = NULL };
    if (!mysql_server_start_with(&bed->server, options))
        fail_msg("MariaDB does not start; see %s/log", bed->server.directory);
    make_database(bed);
    bed->admin = mysql_bed_connect(bed, "root", "");
    documented_roles("docs/mysql.md", bed->server.port, run_line, bed);
}

void mysql_bed_stop(mysql_bed *bed)
{
    if (bed->admin != NULL)
        mysql_close(bed->admin);
    mysql_server_stop(&bed->server);
}

void mysql_bed_crash(mysql_bed *bed)
{
    mysql_close(bed->admin);
    bed->admin = NULL;
    mysql_server_crash(&bed->server);
}

void mysql_bed_restart(mysql_bed *bed)
{
    assert_true(mysql_server_restart(&bed->server));
    bed->admin = mysql_bed_connect(bed, "root", "");
}

void mysql_bed_clear(mysql_bed *bed)
{
    static const char *const tables[] = { "state", "hold", "queue", "tombstone", "incident", "lock", "bell" };
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        mysql_bed_do(bed, "DELETE FROM sneck_%s", tables[i]);
}

/* ---- URLs ---- */

const char *mysql_bed_url_at(int port, const char *keys)
{
    static char url[256];
    (void)snprintf(url, sizeof url, "mysql://sneck:secret@127.0.0.1:%d/locks%s%s", port, keys == NULL ? "" : "?",
                   keys == NULL ? "" : keys);
    return url;
}

const char *mysql_bed_url(const mysql_bed *bed, const char *keys)
{
    return mysql_bed_url_at(bed->server.port, keys);
}

/* ---- Looking ---- */

__attribute__((format(printf, 2, 0))) static MYSQL_RES *ask(mysql_bed *bed, const char *format, va_list arguments)
{
    char sql[4096];
    (void)vsnprintf(sql, sizeof sql, format, arguments);
    if (mysql_query(bed->admin, sql) != 0)
        fail_msg("%s: %s", sql, mysql_error(bed->admin));
    return mysql_store_result(bed->admin);
}

void mysql_bed_do(mysql_bed *bed, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    mysql_free_result(ask(bed, format, arguments));
    va_end(arguments);
}

long long mysql_bed_number(mysql_bed *bed, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    MYSQL_RES *result = ask(bed, format, arguments);
    va_end(arguments);
    assert_non_null(result);
    MYSQL_ROW row = mysql_fetch_row(result);
    long long number = row == NULL || row[0] == NULL ? 0 : strtoll(row[0], NULL, 10);
    mysql_free_result(result);
    return number;
}

const char *mysql_bed_text(mysql_bed *bed, const char *sql)
{
    static char text[1024];
    if (mysql_query(bed->admin, sql) != 0)
        fail_msg("%s: %s", sql, mysql_error(bed->admin));
    MYSQL_RES *result = mysql_store_result(bed->admin);
    MYSQL_ROW row = result == NULL ? NULL : mysql_fetch_row(result);
    (void)snprintf(text, sizeof text, "%s", row == NULL || row[0] == NULL ? "" : row[0]);
    mysql_free_result(result);
    return text;
}

void mysql_bed_await(mysql_bed *bed, const char *sql, long long expected)
{
    int64_t limit_ns = snk_now_ns() + 30 * SNK_NS_PER_S;
    long long number = 0;
    while ((number = mysql_bed_number(bed, "%s", sql)) != expected) {
        if (snk_now_ns() >= limit_ns)
            fail_msg("%s is %lld, not %lld", sql, number, expected);
        struct timespec pause = snk_timespec(SNK_NS_PER_MS);
        (void)nanosleep(&pause, NULL);
    }
}

/* ---- For cmocka ---- */

static mysql_bed shared;

int mysql_bed_set_up(void **state)
{
    if (shared.server.pid == 0)
        mysql_bed_start(&shared);
    mysql_bed_clear(&shared);
    *state = &shared;
    return 0;
}

int mysql_bed_tear_down(void **state)
{
    (void)state;
    return 0;
}

int mysql_bed_end(void **state)
{
    (void)state;
    if (shared.server.pid != 0)
        mysql_bed_stop(&shared);
    return 0;
}
