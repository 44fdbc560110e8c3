#include "store/postgres/rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "store/postgres/postgres.h"

/*
 * A claim that has the lock in the tables waits so long for the row in the server's own queue: whoever has it is mostly one
 * that has tried, and is about to give it back. After that it comes back to look each retry_ns.
 */
#define ROW_WAIT_MS 20

/* A row that is locked. */
typedef struct row {
    snk_link link;
    snk_id claim;
    char resource[SNK_PG_RESOURCE_SIZE];
    snk_pg_conn *conn; /* owned; its transaction is open */
    char xid[SNK_PG_XID_SIZE];
    int64_t silence_ms; /* after which the server ends the transaction */
    bool is_used;       /* by a thread; under rows.mutex, and the rest is that thread's */
    bool is_late;       /* the answer to the last heartbeat has not come yet */
} row;

/* ---- The table ---- */

static snk_list *bucket_of(snk_pg_rows *rows, const snk_id *claim)
{
    return &rows->buckets[claim->bytes[0] % SNK_PG_ROW_BUCKETS];
}

static row *row_of(snk_link *link)
{
    return SNK_CONTAINER(link, row, link);
}

bool snk_pg_rows_init(snk_pg_rows *rows, snk_pg_target *target, const char *where)
{
    for (size_t i = 0; i < SNK_PG_ROW_BUCKETS; i++)
        snk_list_init(&rows->buckets[i]);
    return pthread_mutex_init(&rows->mutex, NULL) == 0 && pthread_cond_init(&rows->changed, NULL) == 0 &&
           snk_pg_pool_init(&rows->pool, target, where, SNK_PG_ROWS_MAX);
}

void snk_pg_rows_deinit(snk_pg_rows *rows)
{
    for (size_t i = 0; i < SNK_PG_ROW_BUCKETS; i++) {
        snk_link *link = NULL;
        while ((link = snk_list_take_first(&rows->buckets[i])) != NULL) {
            snk_pg_pool_give(&rows->pool, row_of(link)->conn, true);
            free(row_of(link));
        }
    }
    snk_pg_pool_deinit(&rows->pool);
    (void)pthread_cond_destroy(&rows->changed);
    (void)pthread_mutex_destroy(&rows->mutex);
}

static row *find_locked(snk_pg_rows *rows, const snk_id *claim, const char *resource)
{
    const snk_list *bucket = bucket_of(rows, claim);
    for (snk_link *link = snk_list_first(bucket); link != NULL; link = snk_list_next(bucket, link))
        if (snk_id_equal(&row_of(link)->claim, claim) && strcmp(row_of(link)->resource, resource) == 0)
            return row_of(link);
    return NULL;
}

/* The row of a claim, for this thread alone until it is given back or dropped; NULL: it has none. */
static row *use(snk_pg_store *store, const snk_claim *claim)
{
    snk_pg_rows *rows = &store->rows;
    char resource[SNK_PG_RESOURCE_SIZE];
    snk_pg_resource(store, claim->grip.object, claim->name, resource);
    (void)pthread_mutex_lock(&rows->mutex);
    row *found = find_locked(rows, &claim->send.claim, resource);
    while (found != NULL && found->is_used) {
        (void)pthread_cond_wait(&rows->changed, &rows->mutex);
        found = find_locked(rows, &claim->send.claim, resource);
    }
    if (found != NULL)
        found->is_used = true;
    (void)pthread_mutex_unlock(&rows->mutex);
    return found;
}

/* A new row in the table, in use by this thread; NULL: out of memory. */
static row *add(snk_pg_store *store, const snk_claim *claim)
{
    snk_pg_rows *rows = &store->rows;
    row *one = calloc(1, sizeof *one);
    if (one == NULL)
        return NULL;
    one->claim = claim->send.claim;
    snk_pg_resource(store, claim->grip.object, claim->name, one->resource);
    one->is_used = true;
    (void)pthread_mutex_lock(&rows->mutex);
    snk_list_append(bucket_of(rows, &one->claim), &one->link);
    (void)pthread_mutex_unlock(&rows->mutex);
    return one;
}

/* Others may use it. */
static void put_back(snk_pg_rows *rows, row *one)
{
    (void)pthread_mutex_lock(&rows->mutex);
    one->is_used = false;
    (void)pthread_cond_broadcast(&rows->changed);
    (void)pthread_mutex_unlock(&rows->mutex);
}

static void forget(snk_pg_rows *rows, row *one)
{
    (void)pthread_mutex_lock(&rows->mutex);
    snk_list_remove(&one->link);
    (void)pthread_cond_broadcast(&rows->changed);
    (void)pthread_mutex_unlock(&rows->mutex);
    free(one);
}

/* ---- Transactions ---- */

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
    snk_pg_pool_give(&store->rows.pool, conn, reply.outcome != SNK_SQL_ANSWERED);
    snk_pg_reply_clear(&reply);
}

static void drop(snk_pg_store *store, row *one)
{
    snk_pg_conn *conn = one->conn;
    bool is_late = one->is_late;
    forget(&store->rows, one);
    if (is_late)
        snk_pg_pool_give(&store->rows.pool, conn, true);
    else
        roll_back(store, conn);
}

static int64_t silence_ms(int64_t lease_ns)
{
    return (lease_ns + SNK_NS_PER_MS - 1) / SNK_NS_PER_MS;
}

/* One look at the row: locks it in a transaction that stays open, if it is there and free, or with `waits` soon is. */
static void try_lock(snk_pg_store *store, const row *one, bool waits, snk_pg_reply *reply)
{
    char before[256];
    (void)snprintf(before, sizeof before,
                   "BEGIN ISOLATION LEVEL READ COMMITTED;"
                   " SET LOCAL idle_in_transaction_session_timeout = %" PRId64 "; SET LOCAL statement_timeout = %d;"
                   " SET LOCAL lock_timeout = %d; ",
                   one->silence_ms, store->options.server_ms, ROW_WAIT_MS);
    const char *const values[] = { one->resource, waits ? "t" : "f" };
    char *text = snk_pg_sql_write(one->conn->pg, before, SNK_PG_ROW_LOCK, values, "");
    snk_pg_reply_init(reply);
    if (text != NULL)
        snk_pg_conn_query(one->conn, store->options.where, text, limit_of(store), reply);
    else
        (void)snk_fail(&reply->error, SNECK_NO_MEMORY, 0, "out of memory, or a name is no valid text");
    free(text);
}

typedef enum taken {
    ROW_LOCKED,
    ROW_BUSY, /* another transaction has it */
    ROW_FAILED
} taken;

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

/* On failure its connection has been given back. */
static taken lock(snk_pg_store *store, row *one, bool waits, sneck_error *error)
{
    for (int tries = 0;; tries++) {
        snk_pg_reply reply;
        try_lock(store, one, waits, &reply);
        (void)snk_copy_text(one->xid, sizeof one->xid, snk_pg_reply_text(&reply));
        snk_pg_reply_clear(&reply);
        if (reply.outcome == SNK_SQL_ANSWERED && strcmp(one->xid, "0") != 0)
            return ROW_LOCKED;
        if (reply.is_broken)
            snk_pg_pool_give(&store->rows.pool, one->conn, true);
        else
            roll_back(store, one->conn);
        if (reply.outcome != SNK_SQL_ANSWERED) {
            (void)snk_pg_look_result(&reply, error);
            return snk_pg_is_locked(reply.state) ? ROW_BUSY : ROW_FAILED;
        }
        if (tries > 0 || !make_row(store, one->resource, error))
            return ROW_FAILED;
        one->conn = snk_pg_pool_take(&store->rows.pool, false, limit_of(store), error);
        if (one->conn == NULL)
            return ROW_FAILED;
    }
}

/*
 * Locks the row of a lock for a claim. ROW_LOCKED: `*row_out` has it, in use by this thread. It is in the table from the
 * beginning, so that a release of this claim by another thread waits for what comes of it.
 */
static taken take(snk_pg_store *store, const snk_claim *claim, bool waits, row **row_out, sneck_error *error)
{
    *row_out = NULL;
    row *one = add(store, claim);
    if (one == NULL) {
        (void)snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory");
        return ROW_FAILED;
    }
    one->silence_ms = silence_ms(claim->send.lease_ns);
    one->conn = snk_pg_pool_take(&store->rows.pool, false, limit_of(store), error);
    taken result = one->conn == NULL ? ROW_FAILED : lock(store, one, waits, error);
    if (result == ROW_LOCKED)
        *row_out = one;
    else
        forget(&store->rows, one);
    return result;
}

/* ---- Requests ---- */

static void fail(snk_answer *answer, const sneck_error *error)
{
    *answer = (snk_answer){ .kind = SNK_ANSWER_FAILED };
    answer->error = *error;
}

/* The claim has the lock in the tables, but a program of somebody has the row: it is next, and must look. */
static void be_next(const snk_pg_store *store, snk_answer *answer)
{
    *answer = (snk_answer){ .kind = SNK_ANSWER_QUEUED, .look_after_ns = store->retry_ns };
}

/* As above for one that does not want to wait: gives back what it has in the tables. */
static void be_busy(snk_pg_store *store, const snk_claim *claim, snk_answer *answer)
{
    snk_claim release = *claim;
    release.send.ask = SNK_ASK_RELEASE;
    snk_pg_ask(store, &release, NULL, answer);
    if (answer->kind == SNK_ANSWER_DONE || answer->kind == SNK_ANSWER_GONE)
        *answer = (snk_answer){ .kind = SNK_ANSWER_BUSY };
    else
        answer->kind = SNK_ANSWER_UNCERTAIN; /* it may still be there: whoever asked must chase it */
}

/* The claim has the row; it keeps it if it has the lock in the tables as well. */
static void ask_with_row(snk_pg_store *store, const snk_claim *claim, row *one, snk_answer *answer)
{
    snk_pg_ask(store, claim, one->xid, answer);
    if (answer->kind == SNK_ANSWER_HELD)
        put_back(&store->rows, one);
    else
        drop(store, one);
}

static void acquire(snk_pg_store *store, const snk_claim *claim, snk_answer *answer)
{
    row *one = NULL;
    sneck_error error;
    switch (take(store, claim, false, &one, &error)) {
    case ROW_LOCKED:
        ask_with_row(store, claim, one, answer);
        return;
    case ROW_BUSY:
        snk_pg_ask(store, claim, NULL, answer);
        if (answer->kind != SNK_ANSWER_HELD)
            return;
        if (claim->send.queue)
            be_next(store, answer);
        else
            be_busy(store, claim, answer);
        return;
    case ROW_FAILED:
        fail(answer, &error);
        return;
    }
}

typedef enum beat {
    BEAT_HEARD,
    BEAT_MISSED, /* nobody knows; the next one may be heard */
    BEAT_DEAD
} beat;

/* Something is said in the transaction, so that the server does not end it for its silence. */
static beat send_heartbeat(snk_pg_store *store, row *one, int64_t lease_ns, sneck_error *error)
{
    char text[80];
    snk_pg_reply reply;
    snk_pg_reply_init(&reply);
    if (one->is_late) {
        snk_pg_conn_await(one->conn, store->options.where, limit_of(store), &reply);
    } else {
        if (silence_ms(lease_ns) > one->silence_ms)
            one->silence_ms = silence_ms(lease_ns);
        (void)snprintf(text, sizeof text, "SET LOCAL idle_in_transaction_session_timeout = %" PRId64, one->silence_ms);
        snk_pg_conn_query(one->conn, store->options.where, text, limit_of(store), &reply);
    }
    snk_pg_reply_clear(&reply);
    one->is_late = reply.outcome == SNK_SQL_UNCERTAIN && reply.is_late;
    if (snk_pg_look_result(&reply, error) == SNECK_OK)
        return BEAT_HEARD;
    /* An error that the server reports ends the transaction, though not the session. */
    return one->is_late || (!reply.is_broken && !snk_pg_is_proof(reply.state)) ? BEAT_MISSED : BEAT_DEAD;
}

static void renew_held(snk_pg_store *store, const snk_claim *claim, row *one, snk_answer *answer)
{
    sneck_error error;
    bool was_late = one->is_late;
    beat heard = send_heartbeat(store, one, claim->send.lease_ns, &error);
    /* The answer to an old one says nothing about this one, which is what the lease counts from. */
    if (heard == BEAT_HEARD && was_late)
        heard = send_heartbeat(store, one, claim->send.lease_ns, &error);
    switch (heard) {
    case BEAT_HEARD:
        snk_pg_ask(store, claim, one->xid, answer);
        if (answer->kind == SNK_ANSWER_GONE)
            drop(store, one);
        else
            put_back(&store->rows, one);
        return;
    case BEAT_MISSED:
        fail(answer, &error);
        put_back(&store->rows, one);
        return;
    case BEAT_DEAD:
        /* The server frees the row when a connection is gone, so there is nothing left to hold. */
        one->is_late = true;
        drop(store, one);
        *answer = (snk_answer){ .kind = SNK_ANSWER_GONE };
        return;
    }
}

static void renew(snk_pg_store *store, const snk_claim *claim, snk_answer *answer)
{
    row *one = use(store, claim);
    if (one != NULL) {
        renew_held(store, claim, one, answer);
        return;
    }
    snk_pg_ask(store, claim, NULL, answer);
    if (answer->kind != SNK_ANSWER_HELD)
        return;
    sneck_error error;
    switch (take(store, claim, true, &one, &error)) {
    case ROW_LOCKED:
        ask_with_row(store, claim, one, answer);
        return;
    case ROW_BUSY:
        be_next(store, answer);
        return;
    case ROW_FAILED:
        fail(answer, &error);
        return;
    }
}

/* In the transaction itself: the commit frees the row and ends the claim in one step. */
static void release_with_row(snk_pg_store *store, const snk_claim *claim, row *one, snk_pg_reply *reply)
{
    char id[SNK_ID_TEXT_SIZE];
    char tombstone[24];
    snk_id_to_hex(&claim->send.claim, id);
    (void)snprintf(tombstone, sizeof tombstone, "%" PRId64, snk_sql_tombstone_us(&claim->send));
    const char *const values[] = { one->resource, id, tombstone, "f" };
    /* The short patience was for the row; an error here would free it while the tables still say that it is held. */
    char before[64];
    (void)snprintf(before, sizeof before, "SET LOCAL lock_timeout = %d; ", store->options.server_ms);
    char *text = snk_pg_sql_write(one->conn->pg, before, SNK_PG_RELEASE, values, "; COMMIT");
    if (text != NULL)
        snk_pg_conn_query(one->conn, store->options.where, text, limit_of(store), reply);
    free(text);
}

/* Releases a claim that has no row, as far as this thread knows. */
static void release_without_row(snk_pg_store *store, const snk_claim *claim, snk_answer *answer)
{
    snk_pg_ask(store, claim, NULL, answer);
    /* A renewal on another thread may have taken the row before this was done, and seen the claim hold the lock. */
    row *one = use(store, claim);
    if (one != NULL)
        drop(store, one);
}

static void release(snk_pg_store *store, const snk_claim *claim, snk_answer *answer)
{
    row *one = use(store, claim);
    snk_pg_reply reply;
    snk_pg_reply_init(&reply);
    /* A connection that is gone by now has freed the row long ago, and the tables know. */
    if (one != NULL && !one->is_late && snk_pg_conn_is_alive(one->conn))
        release_with_row(store, claim, one, &reply);
    snk_sql_numbers numbers;
    *answer = (snk_answer){ .kind = SNK_ANSWER_FAILED };
    bool done = reply.outcome == SNK_SQL_ANSWERED && snk_sql_numbers_read(&numbers, snk_pg_reply_text(&reply)) &&
                snk_sql_answer(&numbers, &claim->send, store->retry_ns, answer);
    if (done) {
        snk_pg_pool_give(&store->rows.pool, one->conn, false);
        forget(&store->rows, one);
    } else if (one != NULL) {
        one->is_late = true; /* whatever is the matter with it, it ends */
        drop(store, one);
    }
    snk_pg_reply_clear(&reply);
    if (reply.outcome == SNK_SQL_UNCERTAIN) {
        answer->kind = SNK_ANSWER_UNCERTAIN;
        answer->error = reply.error;
    } else if (!done) {
        release_without_row(store, claim, answer);
    }
}

void snk_pg_row_ask(snk_pg_store *store, const snk_claim *claim, snk_answer *answer)
{
    switch (claim->send.ask) {
    case SNK_ASK_ACQUIRE:
        acquire(store, claim, answer);
        return;
    case SNK_ASK_RENEW:
        renew(store, claim, answer);
        return;
    case SNK_ASK_RELEASE:
        release(store, claim, answer);
        return;
    }
}
