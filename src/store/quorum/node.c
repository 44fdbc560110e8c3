/* One node: whether it can be asked, what its clock shows, since when it counts. */
#include <stdio.h>

#include "base/clock.h"
#include "base/error.h"
#include "store/quorum/quorum.h"

sneck_status snk_quorum_node_open(snk_quorum_node *node, const snk_redis_config *config, sneck_error *error)
{
    snk_node_clock_init(&node->clock);
    (void)snk_ok(&node->trouble);
    return snk_redis_open(config, &node->redis, error);
}

bool snk_quorum_node_is_askable(snk_quorum_node *node)
{
    if (!atomic_load_explicit(&node->is_down, memory_order_relaxed))
        return true;
    return !atomic_exchange_explicit(&node->is_probed, true, memory_order_relaxed);
}

void snk_quorum_node_asked(snk_quorum_node *node, const snk_redis_call *call)
{
    bool is_down = call->outcome == SNK_REDIS_NOT_SENT;
    if (is_down || call->outcome == SNK_REDIS_UNCERTAIN) {
        (void)pthread_mutex_lock(&node->store->mutex);
        node->trouble = call->error;
        (void)pthread_mutex_unlock(&node->store->mutex);
    }
    if (atomic_load_explicit(&node->is_down, memory_order_relaxed) != is_down)
        atomic_store_explicit(&node->is_down, is_down, memory_order_relaxed);
    if (atomic_load_explicit(&node->is_probed, memory_order_relaxed))
        atomic_store_explicit(&node->is_probed, false, memory_order_relaxed);
}

/* Answers come from one run of the server; how long that has been running is known since its greeting. */
static void follow_run_locked(snk_quorum_node *node, snk_redis_run run, const snk_redis_server *server)
{
    if (server->run != run || run == 0)
        return; /* it was restarted again meanwhile: nothing is known about the one that answered */
    int64_t after_ns = node->run == 0 ? 0 : node->run_heard_at_ns;
    node->run = run;
    node->is_twin = false;
    for (uint32_t i = 0; i < node->store->quorum.nodes; i++)
        node->is_twin |= i != node->index && node->store->nodes[i].run == run;
    node->clock.counts_from_ns = SNK_NEVER_NS;
    int64_t now_ns = snk_now_ns();
    snk_node_clock_started(&node->clock, &node->store->quorum, now_ns - server->started_at_ns, after_ns, now_ns);
}

static void tell_twin(const snk_quorum_node *node)
{
    char line[256];
    (void)snprintf(line, sizeof line, "event=same-server server=\"%s\" error=\"another node is the same server\"",
                   node->where);
    if (node->store->log != NULL)
        node->store->log(node->store->log_context, SNECK_LOG_WARNING, line);
}

/* True when what is known about the node is about this run of it. */
static bool is_run(snk_quorum_node *node, snk_redis_run run)
{
    (void)pthread_mutex_lock(&node->store->mutex);
    bool is_known = node->run == run && run != 0;
    (void)pthread_mutex_unlock(&node->store->mutex);
    if (is_known)
        return true;
    snk_redis_server server;
    snk_redis_describe(node->redis, &server);
    (void)pthread_mutex_lock(&node->store->mutex);
    bool was_twin = node->is_twin;
    follow_run_locked(node, run, &server);
    is_known = node->run == run && run != 0;
    bool is_news = node->is_twin && !was_twin;
    (void)pthread_mutex_unlock(&node->store->mutex);
    if (is_news)
        tell_twin(node);
    return is_known;
}

void snk_quorum_node_heard(snk_quorum_node *node, const snk_redis_call *call, int64_t time_us)
{
    (void)pthread_mutex_lock(&node->store->mutex);
    (void)snk_ok(&node->trouble);
    int64_t sent_at_ns = call->sent_at_ns;
    /* An answer that was not looked at at once does not tell how long it took. */
    if (call->lingered && node->clock.known && call->reply_at_ns - sent_at_ns > node->clock.round_trip_ns)
        sent_at_ns = call->reply_at_ns - node->clock.round_trip_ns;
    snk_node_clock_heard(&node->clock, time_us, sent_at_ns, call->reply_at_ns);
    if (call->run == node->run)
        node->run_heard_at_ns = call->reply_at_ns;
    (void)pthread_mutex_unlock(&node->store->mutex);
}

bool snk_quorum_node_counts(snk_quorum_node *node, const snk_redis_call *call, int64_t *wait_ns_out)
{
    *wait_ns_out = 0;
    if (!is_run(node, call->run)) {
        *wait_ns_out = SNK_NS_PER_S;
        return false;
    }
    (void)pthread_mutex_lock(&node->store->mutex);
    bool counts = snk_node_clock_counts(&node->clock, call->sent_at_ns);
    if (!counts)
        *wait_ns_out = node->clock.counts_from_ns - call->sent_at_ns;
    else
        node->young_until_ns = 0;
    (void)pthread_mutex_unlock(&node->store->mutex);
    return counts;
}

void snk_quorum_node_is_young(snk_quorum_node *node, int64_t for_ns)
{
    (void)pthread_mutex_lock(&node->store->mutex);
    node->young_until_ns = snk_time_add(snk_now_ns(), for_ns);
    (void)pthread_mutex_unlock(&node->store->mutex);
}

bool snk_quorum_node_agrees(snk_quorum_node *node, int64_t lease_max_ms)
{
    snk_quorum_store *store = node->store;
    bool agrees = lease_max_ms == store->options.lease_max_ms;
    int64_t other_ms = agrees ? 0 : lease_max_ms;
    /* Mostly nothing changes. */
    bool is_news = atomic_load_explicit(&node->other_lease_max_ms, memory_order_relaxed) != other_ms &&
                   atomic_exchange_explicit(&node->other_lease_max_ms, other_ms, memory_order_relaxed) != other_ms;
    if (is_news && !agrees && store->log != NULL) {
        char line[256];
        (void)snprintf(line, sizeof line, "event=node-refuses server=\"%s\" lease_max=%sms there=%lldms", node->where,
                       store->lease_max, (long long)lease_max_ms);
        store->log(store->log_context, SNECK_LOG_WARNING, line);
    }
    return agrees;
}
