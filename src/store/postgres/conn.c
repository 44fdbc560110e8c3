#include "store/postgres/conn.h"

#include <errno.h>
#include <poll.h>

#include "base/clock.h"
#include "base/error.h"
#include "store/postgres/dial.h"

_Static_assert(SNK_PG_STATEMENTS <= 32, "prepared statements are bits of a word");

void snk_pg_reply_init(snk_pg_reply *reply)
{
    *reply = (snk_pg_reply){ .outcome = SNK_SQL_FAILED };
}

void snk_pg_reply_clear(snk_pg_reply *reply)
{
    PQclear(reply->result);
    reply->result = NULL;
}

const char *snk_pg_reply_text(const snk_pg_reply *reply)
{
    return reply->result != NULL && PQntuples(reply->result) > 0 ? PQgetvalue(reply->result, 0, 0) : "";
}

bool snk_pg_conn_is_alive(const snk_pg_conn *conn)
{
    if (PQstatus(conn->pg) != CONNECTION_OK)
        return false;
    int fd = PQsocket(conn->pg);
    struct pollfd polled = { .fd = fd, .events = POLLIN };
    while (poll(&polled, 1, 0) > 0) {
        if (PQconsumeInput(conn->pg) == 0 || PQstatus(conn->pg) != CONNECTION_OK)
            return false;
        (void)PQisBusy(conn->pg); /* lets libpq look at what it has read */
        PGnotify *notice = NULL;
        while ((notice = PQnotifies(conn->pg)) != NULL)
            PQfreemem(notice);
    }
    return true;
}

/* ---- Waiting for the whole answer ---- */

typedef enum pumped {
    PUMP_READY,  /* the next result can be had without waiting */
    PUMP_LATE,   /* time is over */
    PUMP_BROKEN, /* the connection is gone */
} pumped;

static pumped pump(PGconn *pg, int64_t until_ns)
{
    for (;;) {
        int unsent = PQflush(pg);
        if (unsent < 0)
            return PUMP_BROKEN;
        if (unsent == 0 && PQisBusy(pg) == 0)
            return PUMP_READY;
        short events = unsent > 0 ? POLLIN | POLLOUT : POLLIN;
        short ready = snk_pg_poll(PQsocket(pg), events, -1, until_ns);
        if (ready == 0)
            return PUMP_LATE;
        if ((ready & ~POLLOUT) != 0 && PQconsumeInput(pg) == 0)
            return PUMP_BROKEN;
    }
}

/* What became of the results so far. */
typedef struct progress {
    bool has_failed;
    bool is_proof; /* the server itself said so: then it has rolled back */
} progress;

static void take_result(snk_pg_reply *reply, const char *where, PGresult *result, progress *so_far)
{
    ExecStatusType status = PQresultStatus(result);
    if (status == PGRES_TUPLES_OK) {
        PQclear(reply->result);
        reply->result = result;
        return;
    }
    if (status != PGRES_COMMAND_OK && !so_far->has_failed) {
        so_far->has_failed = true;
        (void)snk_pg_result_error(result, where, reply->state, &reply->error);
        so_far->is_proof = snk_pg_is_proof(reply->state);
    }
    PQclear(result);
}

/* The request is out of our hands, and its end was not heard. */
static void doubt(snk_pg_reply *reply, const snk_pg_conn *conn, const char *where, const progress *so_far)
{
    reply->outcome = SNK_SQL_UNCERTAIN;
    snk_pg_reply_clear(reply);
    if (reply->is_late)
        (void)snk_fail(&reply->error, SNECK_UNKNOWN, ETIMEDOUT, "%s does not answer", where);
    else if (so_far->has_failed)
        reply->error.status = SNECK_UNKNOWN;
    else
        (void)snk_fail(&reply->error, SNECK_UNKNOWN, 0, "%s: the connection was cut: %.100s", where,
                       PQerrorMessage(conn->pg));
}

void snk_pg_conn_await(snk_pg_conn *conn, const char *where, int64_t until_ns, snk_pg_reply *reply)
{
    progress so_far = { .has_failed = false };
    PGresult *result = NULL;
    reply->is_broken = true;
    do {
        pumped state = pump(conn->pg, until_ns);
        if (state != PUMP_READY) {
            reply->is_late = state == PUMP_LATE;
            doubt(reply, conn, where, &so_far);
            return;
        }
        result = PQgetResult(conn->pg);
        if (result != NULL)
            take_result(reply, where, result, &so_far);
    } while (result != NULL);
    /* Only now has the server said that the transaction is over; an error that ends the session says nothing. */
    reply->is_broken = PQstatus(conn->pg) != CONNECTION_OK;
    if (reply->is_broken || (so_far.has_failed && !so_far.is_proof)) {
        doubt(reply, conn, where, &so_far);
        return;
    }
    reply->outcome = so_far.has_failed ? SNK_SQL_FAILED : SNK_SQL_ANSWERED;
    if (so_far.has_failed) {
        reply->is_broken = snk_pg_is_read_only(reply->state) || snk_pg_is_strange_session(reply->state);
        snk_pg_reply_clear(reply);
    }
}

/* ---- Sending ---- */

/*
 * libpq did not take a request. If the connection is still there that was for want of memory, and what may have left of it
 * is no whole request: it is not carried out, and the session must end unless it was one message, of which nothing left.
 */
static void note_unsent(snk_pg_reply *reply, const snk_pg_conn *conn, const char *where, bool is_one_message)
{
    if (PQstatus(conn->pg) != CONNECTION_OK) {
        reply->is_broken = true;
        doubt(reply, conn, where, &(progress){ .has_failed = false });
        return;
    }
    reply->outcome = SNK_SQL_FAILED;
    reply->is_broken = !is_one_message;
    (void)snk_fail(&reply->error, SNECK_NO_MEMORY, 0, "%s: %.100s", where, PQerrorMessage(conn->pg));
}

static bool prepare(snk_pg_conn *conn, const char *where, snk_pg_statement which, int64_t until_ns, snk_pg_reply *reply)
{
    if ((conn->prepared >> which & 1U) != 0)
        return true;
    const snk_pg_sql *sql = &snk_pg_sql_of[which];
    if (PQsendPrepare(conn->pg, sql->name, sql->text, 0, NULL) != 1)
        note_unsent(reply, conn, where, false);
    else
        snk_pg_conn_await(conn, where, until_ns, reply);
    if (reply->outcome == SNK_SQL_ANSWERED) {
        conn->prepared |= 1U << which;
        return true;
    }
    /* Whatever became of that, the statement itself was not sent. */
    if (reply->outcome == SNK_SQL_UNCERTAIN)
        reply->error.status = SNECK_UNAVAILABLE;
    reply->outcome = SNK_SQL_FAILED;
    reply->is_broken = true;
    return false;
}

void snk_pg_conn_execute(snk_pg_conn *conn, const char *where, snk_pg_statement which, const char *const values[],
                         int64_t until_ns, snk_pg_reply *reply)
{
    const snk_pg_sql *sql = &snk_pg_sql_of[which];
    if (!prepare(conn, where, which, until_ns, reply))
        return;
    if (PQsendQueryPrepared(conn->pg, sql->name, sql->parameters, values, NULL, NULL, 0) == 1)
        snk_pg_conn_await(conn, where, until_ns, reply);
    else
        note_unsent(reply, conn, where, false);
}

void snk_pg_conn_query(snk_pg_conn *conn, const char *where, const char *text, int64_t until_ns, snk_pg_reply *reply)
{
    if (PQsendQuery(conn->pg, text) == 1)
        snk_pg_conn_await(conn, where, until_ns, reply);
    else
        note_unsent(reply, conn, where, true);
}
