/*
 * The connection to the database: how it is opened, its schema, its statements, and what its errors mean.
 *
 * SQLite's POSIX locks belong to the process and vanish when any descriptor of the file is closed, so nothing but
 * SQLite ever opens the database file: looks at it are by lstat.
 */
#ifndef SNK_STORE_SQLITE_DATABASE_H
#define SNK_STORE_SQLITE_DATABASE_H

#include <sqlite3.h>
#include <stdbool.h>

#include "store/sqlite/path.h"

typedef enum snk_statement {
    SNK_SQL_BEGIN_WRITE,
    SNK_SQL_BEGIN_READ,
    SNK_SQL_COMMIT,
    SNK_SQL_ROLLBACK,
    SNK_SQL_READ_FROM,
    SNK_SQL_READ_BEFORE,
    SNK_SQL_LOCK_ADD,
    SNK_SQL_LOCK_FREE,
    SNK_SQL_LOCK_TOMBSTONES,
    SNK_SQL_LOCK_COUNT,
    SNK_SQL_LOCK_VERSION,
    SNK_SQL_CLAIM_ADD,
    SNK_SQL_CLAIM_OFFER,
    SNK_SQL_CLAIM_RENEW,
    SNK_SQL_CLAIM_REMOVE,
    SNK_SQL_TOMBSTONE_ADD,
    SNK_SQL_TOMBSTONE_FIND,
    SNK_SQL_TOMBSTONE_TRIM,
    SNK_SQL_INCIDENT_ADD,
    SNK_SQL_INCIDENT_TRIM,
    SNK_SQL_FLOOR_GET,
    SNK_SQL_FLOOR_RAISE,
    SNK_SQL_REAP_LOOK,
    SNK_SQL_REAP_REMOVE,
    SNK_SQL_REAP_INCIDENTS,
    SNK_SQL_REAP_TOMBSTONES,
    SNK_SQL_SHOW_CLAIMS,
    SNK_SQL_SHOW_INCIDENTS,
    SNK_SQL_SHOW_NEXT,
    SNK_SQL_OWN_NEXT,
    SNK_SQL_OWN_STAMP,
    SNK_SQL_COUNT
} snk_statement;

typedef struct snk_database {
    sqlite3 *connection;
    sqlite3_stmt *statements[SNK_SQL_COUNT]; /* each prepared at its first use */
    snk_file_id id;
} snk_database;

/* SQLite's own patience, behind that for the writer mutex: only strangers and stopped processes keep its lock so long. */
#define SNK_BUSY_MS 1000

/*
 * Opens or makes the file, waiting at most `busy_ms` for others that write to it. The caller holds the sidecar's opening
 * lock.
 */
sneck_status snk_database_open(snk_database *database, const snk_place *place, int busy_ms, sneck_error *error);
void snk_database_close(snk_database *database);

/* The statement with no parameters bound and not running; NULL when it cannot be prepared. */
sqlite3_stmt *snk_database_statement(snk_database *database, snk_statement which);

/* Runs a statement that gives no rows, and resets it. An SQLite code. */
int snk_database_run(snk_database *database, sqlite3_stmt *statement);

/* Fills `error` for an SQLite code: what it means for the caller, and what a person can do about it. */
sneck_status snk_database_fail(const snk_database *database, const snk_place *place, int code, sneck_error *error);

#endif
