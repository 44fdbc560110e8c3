/* What the watchdog asks about the connections. */
#include <errno.h>
#include <poll.h>

#include "base/clock.h"
#include "base/error.h"
#include "store/mysql/mysql_store.h"

/* Unlike the library's own time limit this one is in milliseconds. */
static bool is_answered_in_time(snk_my_conn *conn, int64_t until_ns)
{
    struct pollfd polled = { .fd = (int)mysql_get_socket(conn->my), .events = POLLIN };
    int rc = -1;
    do {
        int64_t left_ns = until_ns - snk_now_ns();
        rc = poll(&polled, 1, left_ns <= 0 ? 0 : (int)(left_ns / SNK_NS_PER_MS) + 1);
    } while (rc < 0 && errno == EINTR);
    return rc > 0;
}

sneck_status snk_my_probe(snk_store *base, int64_t timeout_ns, snk_probe *probe_out, sneck_error *error)
{
    static const char clock[] = "SELECT CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS UNSIGNED)";
    snk_my_store *store = snk_my_store_of(base);
    const char *where = store->options.where;
    int64_t until_ns = snk_time_add(snk_now_ns(), timeout_ns);
    snk_my_conn *conn = snk_my_pool_take_within(&store->pool, timeout_ns, error);
    if (conn == NULL)
        return SNECK_UNAVAILABLE;
    int64_t sent_ns = snk_now_ns();
    bool was_sent = mysql_send_query(conn->my, clock, sizeof clock - 1) == 0;
    if (was_sent && !is_answered_in_time(conn, until_ns)) {
        /* That the server is silent is for the watchdog to say: it ends all of them then. */
        snk_my_pool_drop(&store->pool, conn);
        return snk_fail(error, SNECK_UNAVAILABLE, ETIMEDOUT, "%s: no answer", where);
    }
    snk_my_reply reply;
    snk_my_conn_read(conn, where, was_sent, &reply);
    if (reply.outcome == SNK_SQL_ANSWERED)
        snk_sql_read_clock(snk_my_reply_text(&reply), sent_ns, probe_out);
    snk_my_pool_give(&store->pool, conn, reply.is_broken);
    sneck_status status = snk_my_look_result(&reply, error);
    snk_my_reply_clear(&reply);
    return status;
}

void snk_my_describe(snk_store *base, snk_store_state *state_out)
{
    snk_sql_link_describe(&snk_my_store_of(base)->link, state_out);
}

void snk_my_reconnect(snk_store *base)
{
    snk_my_store *store = snk_my_store_of(base);
    snk_sql_link_down(&store->link, "the server does not answer, and is connected to anew");
    snk_my_pool_end_all(&store->pool);
}
