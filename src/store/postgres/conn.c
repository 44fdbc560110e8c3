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

static void take_result(snk_pg_reply *reply, const char *where, PGresult *result, bool *has_failed)
{
    ExecStatusType status = PQresultStatus(result);
    if (status == PGRES_TUPLES_OK) {
        PQclear(reply->result);
        reply->result = result;
        return;
    }
    if (status != PGRES_COMMAND_OK && !*has_failed) {
        *has_failed = true;
        (void)snk_pg_result_error(result, where, reply->state, &reply->error);
    }
    PQclear(result);
}

/* The request is out of our hands, and its end was not heard. */
static void doubt(snk_pg_reply *reply, const snk_pg_conn *conn, const char *where, bool has_failed)
{
    reply->outcome = SNK_SQL_UNCERTAIN;
    reply->is_broken = true;
    snk_pg_reply_clear(reply);
    if (reply->is_late)
        (void)snk_fail(&reply->error, SNECK_UNKNOWN, ETIMEDOUT, "%s does not answer", where);
    else if (has_failed)
        reply->error.status = SNECK_UNKNOWN;
    else
        (void)snk_fail(&reply->error, SNECK_UNKNOWN, 0, "%s: the connection was cut: %.100s", where,
                       PQerrorMessage(conn->pg));
}

void snk_pg_conn_await(snk_pg_conn *conn, const char *where, int64_t until_ns, snk_pg_reply *reply)
{
    bool has_failed = false;
    PGresult *result = NULL;
    do {
        pumped state = pump(conn->pg, until_ns);
        if (state != PUMP_READY) {
            reply->is_late = state == PUMP_LATE;
            doubt(reply, conn, where, has_failed);
            return;
        }
        result = PQgetResult(conn->pg);
        if (result != NULL)
            take_result(reply, where, result, &has_failed);
    } while (result != NULL);
    /* Only now has the server said that the transaction is over; an error that ends the session says nothing. */
    if (PQstatus(conn->pg) != CONNECTION_OK) {
        doubt(reply, conn, where, has_failed);
        return;
    }
    reply->outcome = has_failed ? SNK_SQL_FAILED : SNK_SQL_ANSWERED;
    reply->is_broken = has_failed && (snk_pg_is_read_only(reply->state) || snk_pg_is_strange_session(reply->state));
    if (has_failed)
        snk_pg_reply_clear(reply);
}

/* ---- Sending ---- */

static bool prepare(snk_pg_conn *conn, const char *where, snk_pg_statement which, int64_t until_ns, snk_pg_reply *reply)
{
    if ((conn->prepared >> which & 1U) != 0)
        return true;
    const snk_pg_sql *sql = &snk_pg_sql_of[which];
    if (PQsendPrepare(conn->pg, sql->name, sql->text, 0, NULL) != 1)
        doubt(reply, conn, where, false);
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
        doubt(reply, conn, where, false);
}

void snk_pg_conn_query(snk_pg_conn *conn, const char *where, const char *text, int64_t until_ns, snk_pg_reply *reply)
{
    if (PQsendQuery(conn->pg, text) == 1)
        snk_pg_conn_await(conn, where, until_ns, reply);
    else
        doubt(reply, conn, where, false);
}
