/* The schema and every statement, in one place. Times are ns of CLOCK_BOOTTIME unless they end in _ms. */
#include "store/sqlite/statements.h"

/*
 * A row of sneck_lock with place 0 is a lock; its rows with higher places are the claims on it, in the order they came.
 * They are in one table because they are then next to each other in the file: a hand-off reads and changes one page.
 * Nothing in the schema limits how many may hold. What of a claim only machines read is one column (snk_claim_record):
 * each column costs some time in every statement.
 *
 * The highest token of a lock is that of its row or of a claim that holds it: while a lock is taken and passed on, its
 * own row is not written. Nor are tombstones and incidents looked for that are not there: tombstones_until_ns says until
 * when there may be some of the former.
 *
 * Fixed names, documented for other programs: resource_name (prefix + name), and version in the row with place 0. A
 * lock that is not used any more may be removed; then the highest token that went with such rows is in sneck_meta
 * ('floor').
 */
const char snk_sql_schema[] = "CREATE TABLE sneck_meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;"
                              "CREATE TABLE sneck_lock("
                              " resource_name TEXT NOT NULL,"
                              " place INTEGER NOT NULL,"
                              " token INTEGER NOT NULL DEFAULT 0,"
                              /* of a claim */
                              " token_first INTEGER,"
                              " state INTEGER,"
                              " expires_ns INTEGER,"
                              " claim BLOB,"
                              " since_ns INTEGER,"
                              /* of a lock */
                              " version INTEGER,"
                              " tombstones_until_ns INTEGER,"
                              " used_ns INTEGER,"
                              " count INTEGER,"
                              /* of a claim, for people */
                              " fair INTEGER,"
                              " pid INTEGER,"
                              " owner TEXT,"
                              " host TEXT,"
                              " why TEXT,"
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
    "UPDATE sneck_lock SET tombstones_until_ns = 0, used_ns = 0, token = (SELECT max(c.token) FROM sneck_lock c"
    " WHERE c.resource_name = sneck_lock.resource_name) WHERE place = 0;"
    "DELETE FROM sneck_lock WHERE place > 0;"
    "DELETE FROM sneck_tombstone;";

#define LOCK "resource_name = ?1 AND place = 0"
#define CLAIM "resource_name = ?1 AND place = ?2"
/* As rows.c reads them. */
#define COLUMNS "place, token, token_first, state, expires_ns, claim, tombstones_until_ns, count, version"

const char *const snk_sql[SNK_SQL_COUNT] = {
    [SNK_SQL_BEGIN_WRITE] = "BEGIN IMMEDIATE",
    [SNK_SQL_BEGIN_READ] = "BEGIN",
    [SNK_SQL_COMMIT] = "COMMIT",
    [SNK_SQL_ROLLBACK] = "ROLLBACK",
    [SNK_SQL_READ_FROM] = "SELECT " COLUMNS " FROM sneck_lock WHERE resource_name = ?1 AND place >= ?2 ORDER BY place",
    [SNK_SQL_READ_BEFORE] = "SELECT " COLUMNS " FROM sneck_lock WHERE resource_name = ?1 AND place > 0 AND"
                            " place < ?2 ORDER BY place DESC",
    [SNK_SQL_LOCK_ADD] = "INSERT INTO sneck_lock(resource_name, place, token, version, tombstones_until_ns, used_ns,"
                         " count) VALUES(?1, 0, ?2, 0, 0, ?3, ?4)",
    [SNK_SQL_LOCK_FREE] = "UPDATE sneck_lock SET token = ?2, used_ns = ?3 WHERE " LOCK,
    [SNK_SQL_LOCK_TOMBSTONES] = "UPDATE sneck_lock SET tombstones_until_ns = ?2 WHERE " LOCK,
    [SNK_SQL_LOCK_COUNT] = "UPDATE sneck_lock SET count = ?2, used_ns = ?3 WHERE " LOCK,
    [SNK_SQL_LOCK_VERSION] = "UPDATE sneck_lock SET version = ?2, used_ns = ?3 WHERE " LOCK,
    [SNK_SQL_CLAIM_ADD] = "INSERT INTO sneck_lock(resource_name, place, token, token_first, state, expires_ns, claim,"
                          " since_ns, fair, pid, owner, host, why)"
                          " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
    [SNK_SQL_CLAIM_OFFER] = "UPDATE sneck_lock SET token = ?3, token_first = ?4, state = ?5, expires_ns = ?6,"
                            " since_ns = ?7 WHERE " CLAIM,
    [SNK_SQL_CLAIM_RENEW] = "UPDATE sneck_lock SET state = ?3, expires_ns = ?4 WHERE " CLAIM,
    [SNK_SQL_CLAIM_REMOVE] = "DELETE FROM sneck_lock WHERE " CLAIM,
    [SNK_SQL_TOMBSTONE_ADD] = "INSERT OR REPLACE INTO sneck_tombstone VALUES(?1, ?2, ?3)",
    [SNK_SQL_TOMBSTONE_FIND] = "SELECT expires_ns FROM sneck_tombstone WHERE resource_name = ?1 AND claim = ?2",
    [SNK_SQL_TOMBSTONE_TRIM] = "DELETE FROM sneck_tombstone WHERE resource_name = ?1 AND expires_ns <= ?2",
    [SNK_SQL_INCIDENT_ADD] = "INSERT INTO sneck_incident SELECT ?1, (SELECT ifnull(max(number), 0) + 1 FROM"
                             " sneck_incident WHERE resource_name = ?1), ?3, ?4, owner, ?5, token_first"
                             " FROM sneck_lock WHERE " CLAIM,
    [SNK_SQL_INCIDENT_TRIM] = "DELETE FROM sneck_incident WHERE resource_name = ?1 AND (time_ms < ?2 OR number <="
                              " (SELECT max(number) FROM sneck_incident WHERE resource_name = ?1) - ?3)",
    [SNK_SQL_FLOOR_GET] = "SELECT value FROM sneck_meta WHERE key = 'floor'",
    [SNK_SQL_FLOOR_RAISE] = "UPDATE sneck_meta SET value = ?1 WHERE key = 'floor' AND value < ?1",
    [SNK_SQL_REAP_LOOK] = "SELECT resource_name, token, version = 0 AND (count <= 0 OR count IS NULL) AND used_ns < ?2 "
                          "AND tombstones_until_ns <= ?3"
                          " AND NOT EXISTS (SELECT 1 FROM sneck_lock c WHERE c.resource_name = l.resource_name AND"
                          " c.place > 0) AND NOT EXISTS (SELECT 1 FROM sneck_incident i WHERE i.resource_name ="
                          " l.resource_name AND i.time_ms >= ?4) FROM sneck_lock l WHERE l.resource_name > ?1 AND"
                          " l.place = 0 ORDER BY l.resource_name LIMIT 1",
    [SNK_SQL_REAP_REMOVE] = "DELETE FROM sneck_lock WHERE resource_name = ?1",
    [SNK_SQL_REAP_INCIDENTS] = "DELETE FROM sneck_incident WHERE resource_name = ?1",
    [SNK_SQL_REAP_TOMBSTONES] = "DELETE FROM sneck_tombstone WHERE resource_name = ?1",
    [SNK_SQL_SHOW_CLAIMS] = "SELECT " COLUMNS ", since_ns, fair, pid, owner, host, why FROM sneck_lock"
                            " WHERE resource_name = ?1 ORDER BY place",
    [SNK_SQL_SHOW_INCIDENTS] = "SELECT time_ms, kind, owner, text, token FROM sneck_incident WHERE resource_name = ?1"
                               " AND time_ms >= ?2 ORDER BY number",
    [SNK_SQL_SHOW_NEXT] = "SELECT resource_name FROM sneck_lock WHERE resource_name > ?1 AND place > 0"
                          " ORDER BY resource_name LIMIT 1",
    /* The stamp is at 17 to 48 of `claim`, and first in it the client: see snk_claim_record. */
    [SNK_SQL_OWN_NEXT] = "SELECT resource_name, place FROM sneck_lock WHERE place > 0 AND substr(claim, 17, 16) = ?1"
                         " LIMIT 1",
    [SNK_SQL_OWN_STAMP] = "UPDATE sneck_lock SET claim = CAST(substr(claim, 1, 16) || ?2 || substr(claim, 49) AS BLOB)"
                          " WHERE place > 0 AND substr(claim, 17, 16) = ?1",
};
