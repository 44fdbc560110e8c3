/* The schema and every statement, in one place. Times are ns of CLOCK_BOOTTIME unless they end in _ms. */
#include "store/sqlite/statements.h"

/*
 * Fixed names, documented for other programs: sneck_lock.resource_name (prefix + name) and version. A row of sneck_lock
 * is made by the first acquire of that name; `claim` is NULL while the lock is free. `waiters` counts its rows of
 * sneck_queue, and tombstones_until_ns bounds those of sneck_tombstone, so that an acquire without contention reads and
 * writes one row of one table. A row that is not used any more may be removed; then the highest token that went with
 * such rows is in sneck_meta ('floor').
 */
const char snk_sql_schema[] = "CREATE TABLE sneck_meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;"
                              "CREATE TABLE sneck_lock("
                              " resource_name TEXT PRIMARY KEY,"
                              " version INTEGER NOT NULL DEFAULT 0,"
                              " token INTEGER NOT NULL DEFAULT 0,"
                              " waiters INTEGER NOT NULL DEFAULT 0,"
                              " tombstones_until_ns INTEGER NOT NULL DEFAULT 0,"
                              " used_ns INTEGER NOT NULL DEFAULT 0,"
                              " claim BLOB,"
                              " token_first INTEGER,"
                              " expires_ns INTEGER,"
                              " since_ns INTEGER,"
                              " fair INTEGER,"
                              " client BLOB,"
                              " slot INTEGER,"
                              " generation INTEGER,"
                              " pid INTEGER,"
                              " owner TEXT,"
                              " host TEXT,"
                              " why TEXT"
                              ") WITHOUT ROWID;"
                              "CREATE TABLE sneck_queue("
                              " resource_name TEXT NOT NULL,"
                              " place INTEGER NOT NULL,"
                              " claim BLOB NOT NULL,"
                              " tokens INTEGER NOT NULL,"
                              " lease_ns INTEGER NOT NULL,"
                              " expires_ns INTEGER NOT NULL,"
                              " since_ns INTEGER NOT NULL,"
                              " fair INTEGER NOT NULL,"
                              " client BLOB NOT NULL,"
                              " slot INTEGER NOT NULL,"
                              " generation INTEGER NOT NULL,"
                              " pid INTEGER NOT NULL,"
                              " owner TEXT NOT NULL,"
                              " host TEXT NOT NULL,"
                              " why TEXT NOT NULL,"
                              " PRIMARY KEY(resource_name, place)"
                              ") WITHOUT ROWID;"
                              "CREATE TABLE sneck_tombstone("
                              " resource_name TEXT NOT NULL,"
                              " claim BLOB NOT NULL,"
                              " expires_ns INTEGER NOT NULL,"
                              " PRIMARY KEY(resource_name, claim)"
                              ") WITHOUT ROWID;"
                              "CREATE TABLE sneck_incident("
                              " resource_name TEXT NOT NULL,"
                              " number INTEGER NOT NULL,"
                              " time_ms INTEGER NOT NULL,"
                              " kind TEXT NOT NULL,"
                              " owner TEXT NOT NULL,"
                              " text TEXT NOT NULL,"
                              " token INTEGER NOT NULL,"
                              " PRIMARY KEY(resource_name, number)"
                              ") WITHOUT ROWID;"
                              "INSERT INTO sneck_meta VALUES('floor', 0);";

/* Another boot: no process of the old one lives, and its times mean nothing. Tokens stay. */
const char snk_sql_forget_boot[] =
    "UPDATE sneck_lock SET claim = NULL, waiters = 0, tombstones_until_ns = 0, used_ns = 0;"
    "DELETE FROM sneck_queue;"
    "DELETE FROM sneck_tombstone;";

#define PARTY "client, slot, generation, pid, owner, host, why"

const char *const snk_sql[SNK_SQL_COUNT] = {
    [SNK_SQL_BEGIN_WRITE] = "BEGIN IMMEDIATE",
    [SNK_SQL_BEGIN_READ] = "BEGIN",
    [SNK_SQL_COMMIT] = "COMMIT",
    [SNK_SQL_ROLLBACK] = "ROLLBACK",
    [SNK_SQL_LOCK_FIND] = "SELECT token, waiters, tombstones_until_ns, claim, token_first, expires_ns, client, slot,"
                          " generation, owner FROM sneck_lock WHERE resource_name = ?1",
    [SNK_SQL_LOCK_ADD] = "INSERT INTO sneck_lock(resource_name, token) VALUES(?1, ?2)",
    [SNK_SQL_LOCK_GRANT] = "UPDATE sneck_lock SET token = ?2, claim = ?3, token_first = ?4, expires_ns = ?5,"
                           " since_ns = ?6, used_ns = ?6, fair = ?7, client = ?8, slot = ?9, generation = ?10,"
                           " pid = ?11, owner = ?12, host = ?13, why = ?14 WHERE resource_name = ?1",
    [SNK_SQL_LOCK_OFFER] = "UPDATE sneck_lock SET token = ?3, token_first = ?4, expires_ns = ?5, since_ns = ?6,"
                           " used_ns = ?6, waiters = ?7, (claim, fair, " PARTY ") = (SELECT claim, fair, " PARTY
                           " FROM sneck_queue WHERE resource_name = ?1 AND place = ?2) WHERE resource_name = ?1",
    [SNK_SQL_LOCK_RENEW] = "UPDATE sneck_lock SET expires_ns = ?2 WHERE resource_name = ?1",
    [SNK_SQL_LOCK_FREE] = "UPDATE sneck_lock SET claim = NULL, used_ns = ?2 WHERE resource_name = ?1",
    [SNK_SQL_LOCK_COUNT_WAITERS] = "UPDATE sneck_lock SET waiters = ?2 WHERE resource_name = ?1",
    [SNK_SQL_LOCK_TOMBSTONES] = "UPDATE sneck_lock SET tombstones_until_ns = ?2 WHERE resource_name = ?1",
    [SNK_SQL_QUEUE_ADD] = "INSERT INTO sneck_queue VALUES(?1, (SELECT ifnull(max(place), 0) + 1 FROM sneck_queue"
                          " WHERE resource_name = ?1), ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)"
                          " RETURNING place",
    [SNK_SQL_QUEUE_FIRST] = "SELECT place, claim, expires_ns, client, slot, generation, tokens, lease_ns"
                            " FROM sneck_queue WHERE resource_name = ?1 ORDER BY place LIMIT 1",
    [SNK_SQL_QUEUE_FIND] = "SELECT place, claim, expires_ns, client, slot, generation, tokens, lease_ns"
                           " FROM sneck_queue WHERE resource_name = ?1 AND claim = ?2",
    [SNK_SQL_QUEUE_BEFORE] = "SELECT place, claim, expires_ns, client, slot, generation, tokens, lease_ns"
                             " FROM sneck_queue WHERE resource_name = ?1 AND place < ?2 ORDER BY place DESC LIMIT 1",
    [SNK_SQL_QUEUE_AFTER] = "SELECT place, claim, expires_ns, client, slot, generation, tokens, lease_ns"
                            " FROM sneck_queue WHERE resource_name = ?1 AND place > ?2 ORDER BY place LIMIT 1",
    [SNK_SQL_QUEUE_RENEW] = "UPDATE sneck_queue SET expires_ns = ?3 WHERE resource_name = ?1 AND place = ?2",
    [SNK_SQL_QUEUE_REMOVE] = "DELETE FROM sneck_queue WHERE resource_name = ?1 AND place = ?2",
    [SNK_SQL_TOMBSTONE_ADD] = "INSERT OR REPLACE INTO sneck_tombstone VALUES(?1, ?2, ?3)",
    [SNK_SQL_TOMBSTONE_FIND] = "SELECT expires_ns FROM sneck_tombstone WHERE resource_name = ?1 AND claim = ?2",
    [SNK_SQL_TOMBSTONE_TRIM] = "DELETE FROM sneck_tombstone WHERE resource_name = ?1 AND expires_ns <= ?2",
    [SNK_SQL_INCIDENT_ADD] = "INSERT INTO sneck_incident VALUES(?1, (SELECT ifnull(max(number), 0) + 1 FROM"
                             " sneck_incident WHERE resource_name = ?1), ?2, ?3, ?4, ?5, ?6)",
    [SNK_SQL_INCIDENT_TRIM] = "DELETE FROM sneck_incident WHERE resource_name = ?1 AND (time_ms < ?2 OR number <="
                              " (SELECT max(number) FROM sneck_incident WHERE resource_name = ?1) - ?3)",
    [SNK_SQL_FLOOR_GET] = "SELECT value FROM sneck_meta WHERE key = 'floor'",
    [SNK_SQL_FLOOR_RAISE] = "UPDATE sneck_meta SET value = ?1 WHERE key = 'floor' AND value < ?1",
    [SNK_SQL_REAP_LOOK] = "SELECT resource_name, token, claim IS NULL AND waiters = 0 AND version = 0 AND"
                          " used_ns < ?2 AND tombstones_until_ns <= ?3 AND NOT EXISTS (SELECT 1 FROM sneck_incident i"
                          " WHERE i.resource_name = sneck_lock.resource_name AND i.time_ms >= ?4) FROM sneck_lock"
                          " WHERE resource_name > ?1 ORDER BY resource_name LIMIT 1",
    [SNK_SQL_REAP_REMOVE] = "DELETE FROM sneck_lock WHERE resource_name = ?1",
    [SNK_SQL_REAP_INCIDENTS] = "DELETE FROM sneck_incident WHERE resource_name = ?1",
    [SNK_SQL_REAP_TOMBSTONES] = "DELETE FROM sneck_tombstone WHERE resource_name = ?1",
    [SNK_SQL_SHOW_LOCK] = "SELECT token, claim, token_first, expires_ns, since_ns, fair, " PARTY
                          " FROM sneck_lock WHERE resource_name = ?1",
    [SNK_SQL_SHOW_QUEUE] =
        "SELECT expires_ns, since_ns, " PARTY " FROM sneck_queue WHERE resource_name = ?1 ORDER BY place",
    [SNK_SQL_SHOW_INCIDENTS] = "SELECT time_ms, kind, owner, text, token FROM sneck_incident WHERE resource_name = ?1"
                               " AND time_ms >= ?2 ORDER BY number",
    [SNK_SQL_SHOW_NEXT] = "SELECT resource_name FROM sneck_lock WHERE resource_name > ?1 AND"
                          " (claim IS NOT NULL OR waiters > 0) ORDER BY resource_name LIMIT 1",
    [SNK_SQL_OWN_LOCKS_STAMP] = "UPDATE sneck_lock SET slot = ?2, generation = ?3 WHERE claim IS NOT NULL AND"
                                " client = ?1",
    [SNK_SQL_OWN_QUEUE_STAMP] = "UPDATE sneck_queue SET slot = ?2, generation = ?3 WHERE client = ?1",
    [SNK_SQL_OWN_LOCKS_NEXT] = "SELECT resource_name FROM sneck_lock WHERE claim IS NOT NULL AND client = ?1 LIMIT 1",
    [SNK_SQL_OWN_QUEUE_NEXT] = "SELECT resource_name, place FROM sneck_queue WHERE client = ?1 LIMIT 1",
};
