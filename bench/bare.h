/* A bare SQLite connection as the embedded store opens its own, without anything around it. */
#ifndef SNK_BENCH_BARE_H
#define SNK_BENCH_BARE_H

#include <sqlite3.h>

#include "bench.h"

static inline void bare_run(sqlite3 *database, const char *sql)
{
    if (sqlite3_exec(database, sql, NULL, NULL, NULL) != SQLITE_OK)
        bench_die(sql, sqlite3_errmsg(database));
}

static inline sqlite3_stmt *bare_prepare(sqlite3 *database, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v3(database, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL) != SQLITE_OK)
        bench_die(sql, sqlite3_errmsg(database));
    return statement;
}

/* Runs a statement to its first row or its end, and resets it. */
static inline void bare_step(sqlite3_stmt *statement)
{
    int rc = sqlite3_step(statement);
    if (rc != SQLITE_DONE && rc != SQLITE_ROW)
        bench_die(sqlite3_sql(statement), "failed");
    (void)sqlite3_reset(statement);
}

static inline sqlite3 *bare_connect(const char *file)
{
    sqlite3 *database = NULL;
    if (sqlite3_open(file, &database) != SQLITE_OK)
        bench_die("sqlite3_open", sqlite3_errmsg(database));
    (void)sqlite3_busy_timeout(database, 10000);
    bare_run(database, "PRAGMA journal_mode=PERSIST");
    bare_run(database, "PRAGMA synchronous=OFF");
    return database;
}

#endif
