/* What is known of the nodes without asking them. */
#include <stdlib.h>

#include "base/clock.h"
#include "store/quorum/quorum.h"

static int compare_times(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a;
    int64_t right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

/* What the middle one of the clocks shows. */
static int64_t middle_locked(const snk_quorum_store *store, int64_t now_ns)
{
    int64_t times[SNK_QUORUM_NODES_MAX];
    size_t count = 0;
    for (uint32_t i = 0; i < store->quorum.nodes; i++)
        if (store->nodes[i].clock.known)
            times[count++] = snk_node_clock_us(&store->nodes[i].clock, now_ns);
    if (count == 0)
        return 0;
    qsort(times, count, sizeof times[0], compare_times);
    return times[count / 2];
}

int64_t snk_quorum_time_us(snk_quorum_store *store)
{
    (void)pthread_mutex_lock(&store->mutex);
    int64_t time_us = middle_locked(store, snk_now_ns());
    (void)pthread_mutex_unlock(&store->mutex);
    return time_us;
}

/* When the votes of a node count: it may have been restarted, or emptied, or both. */
static int64_t counts_in_ms(const snk_quorum_node *node, int64_t now_ns)
{
    int64_t from_ns = node->clock.counts_from_ns;
    if (from_ns == SNK_NEVER_NS)
        from_ns = now_ns; /* nothing is known about it */
    if (node->young_until_ns > from_ns)
        from_ns = node->young_until_ns;
    return from_ns > now_ns ? (from_ns - now_ns + SNK_NS_PER_MS - 1) / SNK_NS_PER_MS : 0;
}

void snk_quorum_report(snk_quorum_store *store, sneck_node nodes_out[SNK_QUORUM_NODES_MAX])
{
    int64_t now_ns = snk_now_ns();
    (void)pthread_mutex_lock(&store->mutex);
    int64_t middle_us = middle_locked(store, now_ns);
    for (uint32_t i = 0; i < store->quorum.nodes; i++) {
        const snk_quorum_node *node = &store->nodes[i];
        const snk_node_clock *clock = &node->clock;
        bool away = !clock->known || node->trouble.status != SNECK_OK;
        bool refuses = atomic_load_explicit(&node->other_lease_max_ms, memory_order_relaxed) != 0;
        int64_t young_ms = counts_in_ms(node, now_ns);
        nodes_out[i] = (sneck_node){
            .name = node->where,
            .state = away           ? "away"
                     : refuses      ? "refuses"
                     : young_ms > 0 ? "young"
                                    : "counts",
            .trouble = away            ? ""
                       : refuses       ? "it is used with another lease_max"
                       : node->is_twin ? "it is the same server as another node"
                                       : "",
            .latency_us = clock->known ? clock->round_trip_ns / SNK_NS_PER_US : -1,
            .clock_offset_us = clock->known ? snk_node_clock_us(clock, now_ns) - middle_us : 0,
            .counts_in_ms = away || refuses ? 0 : young_ms,
        };
    }
    (void)pthread_mutex_unlock(&store->mutex);
}

void snk_quorum_each_node(snk_store *base, snk_node_fn callback, void *context)
{
    snk_quorum_store *store = snk_quorum_store_of(base);
    sneck_node nodes[SNK_QUORUM_NODES_MAX];
    snk_quorum_report(store, nodes);
    for (uint32_t i = 0; i < store->quorum.nodes; i++)
        callback(context, &nodes[i]);
}

void snk_quorum_describe(snk_store *base, snk_store_state *state_out)
{
    snk_quorum_store *store = snk_quorum_store_of(base);
    *state_out = (snk_store_state){ .nodes = store->quorum.nodes };
    for (uint32_t i = 0; i < store->quorum.nodes; i++) {
        snk_redis_server server;
        snk_redis_describe(store->nodes[i].redis, &server);
        state_out->nodes_up += server.connected;
        state_out->connects += server.connects;
        state_out->servers += server.connects > 0;
        state_out->failures += server.failures;
        state_out->in_flight += server.in_flight;
    }
    state_out->connected = state_out->nodes_up >= snk_quorum_majority(&store->quorum);
}
