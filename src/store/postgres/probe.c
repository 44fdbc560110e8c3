/* What the watchdog asks about the connections. */
#include "base/clock.h"
#include "base/error.h"
#include "store/postgres/postgres.h"

sneck_status snk_pg_probe(snk_store *base, int64_t timeout_ns, snk_probe *probe_out, sneck_error *error)
{
    snk_pg_store *store = snk_pg_store_of(base);
    static const char clock[] = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint";
    int64_t until_ns = snk_time_add(snk_now_ns(), timeout_ns);
    snk_pg_reply reply;
    snk_pg_reply_init(&reply);
    snk_pg_conn *conn = snk_pg_pool_take(&store->pool, true, until_ns, &reply.error);
    if (conn != NULL) {
        int64_t sent_ns = snk_now_ns();
        snk_pg_conn_query(conn, store->options.where, clock, until_ns, &reply);
        if (reply.outcome == SNK_SQL_ANSWERED)
            snk_sql_read_clock(snk_pg_reply_text(&reply), sent_ns, probe_out);
        /* That the server is silent is for the watchdog to say: it ends all of them then. */
        if (reply.is_late)
            snk_pg_pool_drop(&store->pool, conn);
        else
            snk_pg_pool_give(&store->pool, conn, reply.is_broken);
    }
    sneck_status status = snk_pg_look_result(&reply, error);
    snk_pg_reply_clear(&reply);
    return status;
}

void snk_pg_describe(snk_store *base, snk_store_state *state_out)
{
    snk_sql_link_describe(&snk_pg_store_of(base)->link, state_out);
}

/* With mode=row a hold lives as long as its own connection, which its own renewals look after. */
void snk_pg_reconnect(snk_store *base)
{
    snk_pg_store *store = snk_pg_store_of(base);
    snk_sql_link_down(&store->link, "the server does not answer, and is connected to anew");
    snk_pg_pool_end_all(&store->pool);
}
