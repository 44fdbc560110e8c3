/*
 * mode=row on MariaDB (store/sql/rows.h): the session that has the row of a lock also has the name of the claim by GET_LOCK,
 * so that others see whether it is still there; both end with it. The server counts silence in whole seconds.
 */
#include <inttypes.h>
#include <mysqld_error.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "store/mysql/mysql_store.h"

static long long silence_s(const snk_sql_row *row)
{
    return (row->silence_ms + 999) / 1000;
}

/* Ends the transaction of a connection, whatever it did, and gives it back. */
static void roll_back(snk_my_store *store, snk_my_conn *conn)
{
    static const char text[] = "ROLLBACK; DO RELEASE_ALL_LOCKS()";
    snk_my_reply reply;
    snk_my_conn_query(conn, store->options.where, text, sizeof text - 1, &reply);
    snk_my_conn_next(conn, store->options.where, &reply);
    snk_my_reply_clear(&reply);
    snk_my_pool_give(&store->row_pool, conn, reply.outcome != SNK_SQL_ANSWERED);
}

static void give(snk_store *base, snk_sql_row *row, bool committed)
{
    snk_my_store *store = snk_my_store_of(base);
    if (committed || row->is_late)
        snk_my_pool_give(&store->row_pool, row->conn, row->is_late);
    else
        roll_back(store, row->conn);
}

/* ---- Locking ---- */

#define NO_PATIENCE "innodb_lock_wait_timeout = 0"

/* One look at the row: locks it in a transaction that stays open, if it is there and free, or with `waits` soon is. */
static void try_lock(snk_my_store *store, const snk_sql_row *row, bool waits, snk_my_reply *reply)
{
    snk_sql_text text;
    char before[192];
    (void)snprintf(before, sizeof before,
                   "SET SESSION idle_transaction_timeout = %lld; START TRANSACTION;"
                   " SET STATEMENT %s FOR SELECT sneck_row_lock(",
                   silence_s(row), waits ? SNK_MY_ROW_PATIENCE : NO_PATIENCE);
    snk_sql_text_init(&text);
    snk_sql_text_word(&text, before);
    snk_sql_text_hex(&text, row->resource);
    snk_sql_text_word(&text, ",");
    snk_my_add_id(&text, &row->claim);
    snk_sql_text_word(&text, ")");
    *reply = (snk_my_reply){ .outcome = SNK_SQL_FAILED };
    if (text.text == NULL) {
        (void)snk_fail(&reply->error, SNECK_NO_MEMORY, 0, "out of memory");
        return;
    }
    snk_my_conn_query(row->conn, store->options.where, text.text, text.length, reply);
    snk_my_conn_next(row->conn, store->options.where, reply);
    snk_my_conn_next(row->conn, store->options.where, reply);
    snk_sql_text_deinit(&text);
}

static bool is_locked(unsigned code)
{
    return code == ER_LOCK_WAIT_TIMEOUT || code == ER_STATEMENT_TIMEOUT || code == ER_LOCK_DEADLOCK;
}

/* Makes the row, on a connection for statements: everybody must see it. */
static bool make_row(snk_my_store *store, const char *resource, sneck_error *error)
{
    snk_sql_text text;
    snk_my_reply reply;
    snk_sql_text_init(&text);
    snk_sql_text_word(&text, "SET STATEMENT " NO_PATIENCE " FOR SELECT sneck_row_make(");
    snk_sql_text_hex(&text, resource);
    snk_sql_text_word(&text, ")");
    snk_my_run(store, &text, &reply);
    /* Locked: then another has made it by now, and has it. */
    bool done = snk_my_look_result(&reply, error) == SNECK_OK || is_locked(reply.code);
    snk_my_reply_clear(&reply);
    return done;
}

/* What came of one look; unless it has the row, the connection is given back. */
typedef enum looked {
    LOOKED_LOCKED,
    LOOKED_MISSING,
    LOOKED_BUSY,
    LOOKED_FAILED
} looked;

static looked look(snk_my_store *store, snk_sql_row *row, bool waits, sneck_error *error)
{
    snk_my_reply reply;
    row->conn = snk_my_pool_take(&store->row_pool, error);
    if (row->conn == NULL)
        return LOOKED_FAILED;
    try_lock(store, row, waits, &reply);
    const char *found = snk_my_reply_text(&reply);
    bool is_answered = reply.outcome == SNK_SQL_ANSWERED;
    bool is_missing = is_answered && strcmp(found, "0") == 0;
    bool has_row = is_answered && strcmp(found, "1") == 0;
    snk_my_reply_clear(&reply);
    if (has_row)
        return LOOKED_LOCKED;
    if (reply.is_broken)
        snk_my_pool_give(&store->row_pool, row->conn, true);
    else
        roll_back(store, row->conn);
    if (is_missing)
        return LOOKED_MISSING;
    (void)snk_my_look_result(&reply, error);
    return is_answered || is_locked(reply.code) ? LOOKED_BUSY : LOOKED_FAILED;
}

static snk_sql_taken lock(snk_store *base, snk_sql_row *row, bool waits, sneck_error *error)
{
    snk_my_store *store = snk_my_store_of(base);
    looked found = look(store, row, waits, error);
    if (found == LOOKED_MISSING) {
        if (!make_row(store, row->resource, error))
            return SNK_SQL_ROW_FAILED;
        found = look(store, row, waits, error);
    }
    /* The limit was one for the whole statement, and perhaps it was the server that was slow: the row may be free. */
    if (found == LOOKED_BUSY && waits)
        found = look(store, row, false, error);
    switch (found) {
    case LOOKED_LOCKED:
        return SNK_SQL_ROW_LOCKED;
    case LOOKED_MISSING: /* whoever was about to make it did not */
    case LOOKED_BUSY:
        return SNK_SQL_ROW_BUSY;
    case LOOKED_FAILED:
        break;
    }
    return SNK_SQL_ROW_FAILED;
}

/* ---- Holding, and the end of it ---- */

static snk_sql_beat send_heartbeat(snk_store *base, snk_sql_row *row, sneck_error *error)
{
    snk_my_store *store = snk_my_store_of(base);
    char text[80];
    snk_my_reply reply = { .outcome = SNK_SQL_FAILED };
    (void)snprintf(text, sizeof text, "SET SESSION idle_transaction_timeout = %lld", silence_s(row));
    if (row->is_late || snk_my_conn_send(row->conn, store->options.where, text, strlen(text), &reply))
        snk_my_conn_await(row->conn, store->options.where, -1, snk_time_add(snk_now_ns(), store->options.timeout_ns),
                          &reply);
    snk_my_reply_clear(&reply);
    row->is_late = reply.is_late;
    if (snk_my_look_result(&reply, error) == SNECK_OK)
        return SNK_SQL_BEAT_HEARD;
    return reply.is_broken ? SNK_SQL_BEAT_DEAD : SNK_SQL_BEAT_MISSED;
}

static snk_sql_outcome release(snk_store *base, const snk_claim *claim, snk_sql_row *row, snk_sql_numbers *numbers,
                               sneck_error *error)
{
    snk_my_store *store = snk_my_store_of(base);
    snk_sql_text text;
    snk_my_reply reply = { .outcome = SNK_SQL_FAILED };
    snk_sql_text_init(&text);
    snk_my_write_claim(store, claim, false, &text);
    snk_sql_text_word(&text, "; COMMIT; DO RELEASE_ALL_LOCKS()");
    /* A connection that is gone by now has freed the row long ago, and the tables know. */
    if (text.text != NULL && snk_my_conn_is_alive(row->conn))
        snk_my_conn_query(row->conn, store->options.where, text.text, text.length, &reply);
    bool makes_sense = reply.outcome == SNK_SQL_ANSWERED && snk_sql_numbers_read(numbers, snk_my_reply_text(&reply));
    snk_my_conn_next(row->conn, store->options.where, &reply);
    if (reply.outcome == SNK_SQL_FAILED && makes_sense)
        reply.outcome = SNK_SQL_UNCERTAIN; /* of the commit nobody knows */
    bool is_committed = reply.outcome == SNK_SQL_ANSWERED;
    snk_my_conn_next(row->conn, store->options.where, &reply);
    row->is_late = is_committed && reply.outcome != SNK_SQL_ANSWERED; /* that only matters to the connection */
    snk_my_reply_clear(&reply);
    snk_sql_text_deinit(&text);
    *error = reply.error;
    if (is_committed && !makes_sense)
        (void)snk_fail(error, SNECK_UNKNOWN, 0, "%s: the answer makes no sense", store->options.where);
    return !is_committed ? reply.outcome : makes_sense ? SNK_SQL_ANSWERED : SNK_SQL_UNCERTAIN;
}

static void ask(snk_store *base, const snk_claim *claim, const snk_sql_row *row, snk_answer *answer)
{
    snk_my_ask(snk_my_store_of(base), claim, row != NULL, answer);
}

static int socket_of(const snk_sql_row *row)
{
    const snk_my_conn *conn = row->conn;
    return (int)mysql_get_socket(conn->my);
}

static bool is_alive(const snk_sql_row *row)
{
    return snk_my_conn_is_alive(row->conn);
}

const snk_sql_row_ops snk_my_row_ops = {
    .lock = lock,
    .beat = send_heartbeat,
    .release = release,
    .give = give,
    .socket = socket_of,
    .is_alive = is_alive,
    .ask = ask,
};
