/* What the watchdog asks about the connections. */
#include "base/clock.h"
#include "base/error.h"
#include "store/mysql/mysql_store.h"

sneck_status snk_my_probe(snk_store *base, int64_t timeout_ns, snk_probe *probe_out, sneck_error *error)
{
    static const char clock[] = "SELECT CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS UNSIGNED)";
    snk_my_store *store = snk_my_store_of(base);
    const char *where = store->options.where;
    int64_t until_ns = snk_time_add(snk_now_ns(), timeout_ns);
    snk_my_reply reply = { .outcome = SNK_SQL_FAILED };
    snk_my_conn *conn = snk_my_pool_take_within(&store->pool, timeout_ns, &reply.error);
    if (conn != NULL) {
        int64_t sent_ns = snk_now_ns();
        if (snk_my_conn_send(conn, where, clock, sizeof clock - 1, &reply))
            snk_my_conn_await(conn, where, -1, until_ns, &reply);
        if (reply.outcome == SNK_SQL_ANSWERED)
            snk_sql_read_clock(snk_my_reply_text(&reply), sent_ns, probe_out);
        /* That the server is silent is for the watchdog to say: it ends all of them then. */
        if (reply.is_late)
            snk_my_pool_drop(&store->pool, conn);
        else
            snk_my_pool_give(&store->pool, conn, reply.is_broken);
    }
    sneck_status status = snk_my_look_result(&reply, error);
    snk_my_reply_clear(&reply);
    return status;
}

void snk_my_describe(snk_store *base, snk_store_state *state_out)
{
    snk_sql_link_describe(&snk_my_store_of(base)->link, state_out);
}

/* With mode=row a hold lives as long as its own connection, which its own renewals look after. */
void snk_my_reconnect(snk_store *base)
{
    snk_my_store *store = snk_my_store_of(base);
    snk_sql_link_down(&store->link, "the server does not answer, and is connected to anew");
    snk_my_pool_end_all(&store->pool);
}
