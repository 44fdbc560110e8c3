/* Running statements: which connection, in what form, and how often. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "store/postgres/postgres.h"

/* Nothing of the session is ours: what it needs goes with each transaction, in the same message. */
static void query_pooled(const snk_pg_store *store, snk_pg_conn *conn, snk_pg_statement which,
                         const char *const values[], snk_pg_reply *reply)
{
    char before[160];
    (void)snprintf(before, sizeof before,
                   "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; SET LOCAL statement_timeout = %d;"
                   " SET LOCAL lock_timeout = %d; ",
                   store->options.server_ms, store->options.server_ms);
    char *text = snk_pg_sql_write(conn->pg, before, which, values, "");
    if (text == NULL) {
        (void)snk_fail(&reply->error, SNECK_NO_MEMORY, 0, "out of memory, or a name is no valid text");
        return;
    }
    int64_t until_ns = snk_time_add(snk_now_ns(), store->options.timeout_ns);
    snk_pg_conn_query(conn, store->options.where, text, until_ns, reply);
    free(text);
}

static void run_once(snk_pg_store *store, snk_pg_statement which, const char *const values[], snk_pg_reply *reply)
{
    snk_pg_reply_init(reply);
    bool is_urgent = which == SNK_PG_RENEW || which == SNK_PG_RENEW_MANY;
    int64_t until_ns = snk_time_add(snk_now_ns(), store->options.timeout_ns);
    snk_pg_conn *conn = snk_pg_pool_take(&store->pool, is_urgent, until_ns, &reply->error);
    if (conn == NULL)
        return;
    if (atomic_load(&store->target->is_pooled)) {
        query_pooled(store, conn, which, values, reply);
    } else {
        until_ns = snk_time_add(snk_now_ns(), store->options.timeout_ns);
        snk_pg_conn_execute(conn, store->options.where, which, values, until_ns, reply);
    }
    snk_pg_pool_give(&store->pool, conn, reply->is_broken);
}

/* Those that met in a deadlock should not meet again. */
static void pause_before_try(unsigned tries)
{
    int64_t pause_ns = SNK_NS_PER_MS * tries + snk_now_ns() % SNK_NS_PER_MS;
    struct timespec pause = snk_timespec(pause_ns);
    (void)nanosleep(&pause, NULL);
}

void snk_pg_run(snk_pg_store *store, snk_pg_statement which, const char *const values[], snk_pg_reply *reply)
{
    for (unsigned tries = 1;; tries++) {
        run_once(store, which, values, reply);
        if (reply->outcome != SNK_SQL_FAILED || tries == SNK_PG_TRIES_MAX)
            return;
        /* What was prepared is not there: somebody shares our sessions out. The statement did not run. */
        if (snk_pg_is_strange_session(reply->state))
            atomic_store(&store->target->is_pooled, true);
        else if (snk_pg_is_transient(reply->state))
            pause_before_try(tries);
        else
            return;
    }
}

sneck_status snk_pg_change_result(const snk_pg_reply *reply, sneck_error *error)
{
    if (reply->outcome == SNK_SQL_ANSWERED)
        return SNECK_OK;
    (void)snk_fail_as(error, &reply->error);
    return reply->error.status;
}

sneck_status snk_pg_look_result(const snk_pg_reply *reply, sneck_error *error)
{
    if (reply->outcome == SNK_SQL_ANSWERED)
        return SNECK_OK;
    sneck_status status = reply->outcome == SNK_SQL_UNCERTAIN ? SNECK_UNAVAILABLE : reply->error.status;
    (void)snk_fail_as(error, &reply->error);
    if (error != NULL)
        error->status = status;
    return status;
}
