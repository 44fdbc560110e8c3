/* What the watchdog asks about the connection. */
#include "base/clock.h"
#include "base/error.h"
#include "store/zookeeper/zookeeper.h"

/*
 * A read, which the server answers that this client is connected to: whether it is silent is the question, not whether a
 * majority is behind it, which another connection would not change. No server says what its clock shows.
 */
sneck_status snk_zk_probe(snk_store *base, int64_t timeout_ns, snk_probe *probe_out, sneck_error *error)
{
    snk_zk_store *store = snk_zk_store_of(base);
    int64_t sent_ns = snk_now_ns();
    snk_zk_trip trip = { .until_ns = snk_time_add(sent_ns, timeout_ns) };
    (void)snk_zk_ask(&trip, SNK_ZK_STAT, store->root);
    snk_zk_back back;
    /* A connection that is lost meanwhile, perhaps because it was given up, is no answer: the next one is asked. */
    snk_zk_outcome outcome = snk_zk_insist(store, &trip, &back);
    snk_zk_trip_end(&back);
    *probe_out = (snk_probe){ .round_trip_ns = snk_now_ns() - sent_ns };
    return outcome == SNK_ZK_ANSWERED ? snk_ok(error) : snk_zk_failure(store, outcome, false, error);
}

void snk_zk_describe(snk_store *base, snk_store_state *state_out)
{
    snk_zk_link_describe(snk_zk_store_of(base)->link, state_out);
}

void snk_zk_reconnect(snk_store *base)
{
    snk_zk_link_reconnect(snk_zk_store_of(base)->link);
}
