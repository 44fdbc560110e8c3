#include "store/postgres/rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "store/postgres/postgres.h"

static int64_t limit_of(const snk_pg_store *store)
{
    return snk_time_add(snk_now_ns(), store->options.timeout_ns);
}

/* Ends the transaction of a connection, whatever it did, and gives it back. */
static void roll_back(snk_pg_store *store, snk_pg_conn *conn)
{
    snk_pg_reply reply;
    snk_pg_reply_init(&reply);
    snk_pg_conn_query(conn, store->options.where, "ROLLBACK", limit_of(store), &reply);
    snk_pg_pool_give(&store->row_pool, conn, reply.outcome != SNK_SQL_ANSWERED);
    snk_pg_reply_clear(&reply);
}

static void give(snk_store *base, snk_sql_row *row, bool committed)
{
    snk_pg_store *store = snk_pg_store_of(base);
    if (committed || row->is_late)
        snk_pg_pool_give(&store->row_pool, row->conn, !committed);
    else
        roll_back(store, row->conn);
}

/* ---- Locking ---- */

/* One look at the row: locks it in a transaction that stays open, if it is there and free, or with `waits` soon is. */
static void try_lock(snk_pg_store *store, const snk_sql_row *row, bool waits, snk_pg_reply *reply)
{
    char before[256];
    (void)snprintf(before, sizeof before,
                   "BEGIN ISOLATION LEVEL READ COMMITTED;"
                   " SET LOCAL idle_in_transaction_session_timeout = %" PRId64 "; SET LOCAL statement_timeout = %d;"
                   " SET LOCAL lock_timeout = %d; ",
                   row->silence_ms, store->options.server_ms, SNK_SQL_ROW_WAIT_MS);
    const char *const values[] = { row->resource, waits ? "t" : "f" };
    snk_pg_conn *conn = row->conn;
    char *text = snk_pg_sql_write(conn->pg, before, SNK_PG_ROW_LOCK, values, "");
    snk_pg_reply_init(reply);
    if (text != NULL)
        snk_pg_conn_query(conn, store->options.where, text, limit_of(store), reply);
    else
        (void)snk_fail(&reply->error, SNECK_NO_MEMORY, 0, "out of memory, or a name is no valid text");
    free(text);
}

/* Makes the row, on a connection for statements: everybody must see it. */
static bool make_row(snk_pg_store *store, const char *resource, sneck_error *error)
{
    snk_pg_reply reply;
    const char *const values[] = { resource };
    snk_pg_run(store, SNK_PG_ROW_MAKE, values, &reply);
    bool done = snk_pg_look_result(&reply, error) == SNECK_OK;
    snk_pg_reply_clear(&reply);
    return done;
}

static snk_sql_taken lock(snk_store *base, snk_sql_row *row, bool waits, sneck_error *error)
{
    snk_pg_store *store = snk_pg_store_of(base);
    for (int tries = 0;; tries++) {
        snk_pg_reply reply;
        row->conn = snk_pg_pool_take(&store->row_pool, false, limit_of(store), error);
        if (row->conn == NULL)
            return SNK_SQL_ROW_FAILED;
        try_lock(store, row, waits, &reply);
        (void)snk_copy_text(row->mark, sizeof row->mark, snk_pg_reply_text(&reply));
        snk_pg_reply_clear(&reply);
        if (reply.outcome == SNK_SQL_ANSWERED && strcmp(row->mark, "0") != 0)
            return SNK_SQL_ROW_LOCKED;
        if (reply.is_broken)
            snk_pg_pool_give(&store->row_pool, row->conn, true);
        else
            roll_back(store, row->conn);
        if (reply.outcome != SNK_SQL_ANSWERED) {
            (void)snk_pg_look_result(&reply, error);
            return snk_pg_is_locked(reply.state) ? SNK_SQL_ROW_BUSY : SNK_SQL_ROW_FAILED;
        }
        if (tries > 0) /* somebody has removed it */
            return SNK_SQL_ROW_BUSY;
        if (!make_row(store, row->resource, error))
            return SNK_SQL_ROW_FAILED;
    }
}

/* ---- Holding, and the end of it ---- */

static snk_sql_beat send_heartbeat(snk_store *base, snk_sql_row *row, sneck_error *error)
{
    snk_pg_store *store = snk_pg_store_of(base);
    char text[80];
    snk_pg_reply reply;
    snk_pg_reply_init(&reply);
    if (row->is_late) {
        snk_pg_conn_await(row->conn, store->options.where, limit_of(store), &reply);
    } else {
        (void)snprintf(text, sizeof text, "SET LOCAL idle_in_transaction_session_timeout = %" PRId64, row->silence_ms);
        snk_pg_conn_query(row->conn, store->options.where, text, limit_of(store), &reply);
    }
    snk_pg_reply_clear(&reply);
    row->is_late = reply.outcome == SNK_SQL_UNCERTAIN && reply.is_late;
    if (snk_pg_look_result(&reply, error) == SNECK_OK)
        return SNK_SQL_BEAT_HEARD;
    /* An error that the server reports ends the transaction, though not the session. */
    return row->is_late || (!reply.is_broken && !snk_pg_is_proof(reply.state)) ? SNK_SQL_BEAT_MISSED
                                                                               : SNK_SQL_BEAT_DEAD;
}

static snk_sql_outcome release(snk_store *base, const snk_claim *claim, snk_sql_row *row, snk_sql_numbers *numbers,
                               sneck_error *error)
{
    snk_pg_store *store = snk_pg_store_of(base);
    snk_pg_conn *conn = row->conn;
    char id[SNK_ID_TEXT_SIZE];
    char tombstone[24];
    /* A connection that is gone by now has freed the row long ago, and the tables know. */
    if (!snk_pg_conn_is_alive(conn))
        return SNK_SQL_FAILED;
    snk_id_to_hex(&claim->send.claim, id);
    (void)snprintf(tombstone, sizeof tombstone, "%" PRId64, snk_sql_tombstone_us(&claim->send));
    const char *const values[] = { row->resource, id, tombstone, "f" };
    /* The short patience was for the row; an error here would free it while the tables still say that it is held. */
    char before[64];
    (void)snprintf(before, sizeof before, "SET LOCAL lock_timeout = %d; ", store->options.server_ms);
    char *text = snk_pg_sql_write(conn->pg, before, SNK_PG_RELEASE, values, "; COMMIT");
    snk_pg_reply reply;
    snk_pg_reply_init(&reply);
    if (text != NULL)
        snk_pg_conn_query(conn, store->options.where, text, limit_of(store), &reply);
    free(text);
    if (reply.outcome == SNK_SQL_ANSWERED && !snk_sql_numbers_read(numbers, snk_pg_reply_text(&reply)))
        reply.outcome = SNK_SQL_FAILED;
    *error = reply.error;
    snk_pg_reply_clear(&reply);
    return reply.outcome;
}

static void ask(snk_store *base, const snk_claim *claim, const snk_sql_row *row, snk_answer *answer)
{
    snk_pg_ask(snk_pg_store_of(base), claim, row == NULL ? NULL : row->mark, answer);
}

static int socket_of(const snk_sql_row *row)
{
    const snk_pg_conn *conn = row->conn;
    return PQsocket(conn->pg);
}

static bool is_alive(const snk_sql_row *row)
{
    return snk_pg_conn_is_alive(row->conn);
}

const snk_sql_row_ops snk_pg_row_ops = {
    .lock = lock,
    .beat = send_heartbeat,
    .release = release,
    .give = give,
    .socket = socket_of,
    .is_alive = is_alive,
    .ask = ask,
};
