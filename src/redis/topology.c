#include "redis/topology.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/ids.h"
#include "redis/topology_parts.h"

#define LOG_LINE_SIZE 512
#define CLOSE_SLICE_NS (10 * SNK_NS_PER_MS)

void snk_topology_log(const snk_topology *topology, sneck_log_level level, const char *format, ...)
{
    const snk_redis_listener *listener = &topology->plan.server.listener;
    if (listener->log == NULL)
        return;
    char line[LOG_LINE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (length >= 0)
        listener->log(listener->context, level, line);
}

/* ---- Opening ---- */

static const snk_topology_ops *ops_of(snk_topology_kind kind)
{
    switch (kind) {
    case SNK_TOPOLOGY_SINGLE:
        return &snk_topology_single;
    case SNK_TOPOLOGY_REPLICATED:
        return &snk_topology_replicated;
    case SNK_TOPOLOGY_SENTINEL:
        return &snk_topology_sentinel;
    case SNK_TOPOLOGY_CLUSTER:
        return &snk_topology_cluster;
    }
    return NULL;
}

static void init_parts(snk_topology *topology)
{
    pthread_condattr_t attributes;
    /* On Linux none of these can fail. */
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&topology->changed, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    (void)pthread_mutex_init(&topology->mutex, NULL);
    snk_follows_init(&topology->follows);
    snk_id seed;
    if (!snk_id_random(&seed))
        seed = (snk_id){ .bytes = { (uint8_t)getpid() } };
    for (size_t i = 0; i < sizeof topology->random; i++)
        topology->random = topology->random << 8 | seed.bytes[i];
    topology->random |= 1;
}

/* A wrong configuration is to be said now, and not when the first server is needed. */
static sneck_status make_first(snk_topology *topology, const snk_topology_config *config, sneck_error *error)
{
    if (config->kind == SNK_TOPOLOGY_SINGLE) {
        snk_redis_address address = { .port = config->server.port };
        bool is_unix = config->server.unix_path != NULL && config->server.unix_path[0] != '\0';
        (void)snk_copy_text(address.host, sizeof address.host, config->server.host == NULL ? "" : config->server.host);
        topology->master = snk_node_make_only(topology, is_unix ? NULL : &address, error);
        if (topology->master == NULL)
            return error->status;
        topology->master->mapped = true;
        return SNECK_OK;
    }
    snk_node_kind kind = config->kind == SNK_TOPOLOGY_SENTINEL ? SNK_NODE_SENTINEL : SNK_NODE_SERVER;
    snk_node *node = snk_node_get(topology, kind, &config->hosts[0], error);
    if (node == NULL)
        return error->status;
    snk_node_unref(node);
    return SNECK_OK;
}

sneck_status snk_topology_open(const snk_topology_config *config, snk_topology **topology_out, sneck_error *error)
{
    *topology_out = NULL;
    sneck_error local;
    snk_topology *topology = calloc(1, sizeof *topology);
    if (topology == NULL)
        return snk_fail(error, SNECK_NO_MEMORY, ENOMEM, "redis: no memory for a client");
    topology->ops = ops_of(config->kind);
    init_parts(topology);
    sneck_status status = snk_plan_init(&topology->plan, config, &local);
    if (status == SNECK_OK)
        status = make_first(topology, config, &local);
    if (status != SNECK_OK) {
        snk_topology_close(topology);
        return snk_fail_as(error, &local);
    }
    *topology_out = topology;
    return snk_ok(error);
}

/* ---- Looking around ---- */

uint32_t snk_topology_part(snk_topology *topology, uint16_t slot)
{
    if (topology->plan.kind != SNK_TOPOLOGY_CLUSTER)
        return 0;
    pthread_mutex_lock(&topology->mutex);
    const snk_node *node = snk_topology_route_locked(topology, slot);
    uint32_t part = node == NULL ? 0 : node->index + UINT32_C(1);
    pthread_mutex_unlock(&topology->mutex);
    return part;
}

snk_node *snk_node_of_map(snk_topology *topology, size_t index)
{
    pthread_mutex_lock(&topology->mutex);
    snk_node *node = topology->nodes[index];
    bool counts = node != NULL && node->kind == SNK_NODE_SERVER && (node->mapped || node == topology->master) &&
                  !node->retired && node->redis != NULL;
    node = counts ? snk_node_ref_locked(node) : NULL;
    pthread_mutex_unlock(&topology->mutex);
    return node;
}

/* One that nobody has needed yet is not connected, and that is no fault. */
static bool is_missing(const snk_redis_server *server)
{
    return !server->connected && (server->connects > 0 || server->failures > 0);
}

void snk_topology_describe(snk_topology *topology, snk_topology_state *state_out)
{
    bool some_connected = false;
    bool some_missing = false;
    *state_out = (snk_topology_state){ .connected = false };
    for (size_t i = 0; i < SNK_REDIS_NODES_MAX; i++) {
        snk_node *node = snk_node_of_map(topology, i);
        if (node == NULL)
            continue;
        snk_redis_server server;
        snk_redis_describe(node->redis, &server);
        some_connected |= server.connected;
        some_missing |= is_missing(&server);
        state_out->connects += server.connects;
        state_out->servers += server.connects > 0;
        state_out->failures += server.failures;
        state_out->in_flight += server.in_flight;
        snk_node_unref(node);
    }
    state_out->connected = some_connected && !some_missing;
}

/* Those that were silent; where there is one master, that one, which was asked by its only client. */
static bool is_to_reconnect(const snk_topology *topology, snk_node *node)
{
    bool was_silent = atomic_exchange_explicit(&node->silent, false, memory_order_relaxed);
    return was_silent || topology->plan.kind != SNK_TOPOLOGY_CLUSTER;
}

void snk_topology_reconnect(snk_topology *topology)
{
    for (size_t i = 0; i < SNK_REDIS_NODES_MAX; i++) {
        snk_node *node = snk_node_of_map(topology, i);
        if (node == NULL)
            continue;
        if (is_to_reconnect(topology, node))
            snk_redis_reconnect(node->redis);
        snk_node_unref(node);
    }
}

snk_redis *snk_topology_alone(const snk_topology *topology)
{
    /* Set when it was made, and never changed. */
    return topology->plan.kind == SNK_TOPOLOGY_SINGLE ? topology->master->redis : NULL;
}

bool snk_topology_is_sharded(snk_topology *topology, uint16_t slot)
{
    if (topology->plan.kind != SNK_TOPOLOGY_CLUSTER)
        return false;
    pthread_mutex_lock(&topology->mutex);
    snk_node *node = snk_topology_route_locked(topology, slot);
    unsigned version = node == NULL ? 0 : atomic_load_explicit(&node->version, memory_order_relaxed);
    pthread_mutex_unlock(&topology->mutex);
    /* One that does not tell is taken for a new one. */
    return version == 0 || version >= SNK_REDIS_SHARDED_SINCE;
}

void snk_topology_displace_locked(snk_topology *topology, uint16_t slot)
{
    topology->is_displaced = true;
    topology->displaced[slot / 8] |= (uint8_t)(1 << slot % 8);
}

/* References to the servers that have keys; how many. `nodes` has room for all. */
static size_t collect(snk_topology *topology, snk_node *nodes[], uint64_t *version_out)
{
    size_t count = 0;
    pthread_mutex_lock(&topology->mutex);
    *version_out = topology->version;
    for (size_t i = 0; i < SNK_REDIS_NODES_MAX; i++) {
        snk_node *node = atomic_load_explicit(&topology->nodes[i], memory_order_relaxed);
        if (node != NULL && node->kind == SNK_NODE_SERVER && node->mapped)
            nodes[count++] = snk_node_ref_locked(node);
    }
    pthread_mutex_unlock(&topology->mutex);
    return count;
}

sneck_status snk_topology_visit(snk_topology *topology, sneck_status (*visit)(void *context, snk_redis *redis),
                                void *context, bool *changed_out, sneck_error *error)
{
    snk_node **nodes = calloc(SNK_REDIS_NODES_MAX, sizeof(snk_node *));
    if (nodes == NULL)
        return snk_fail(error, SNECK_NO_MEMORY, ENOMEM, "redis: no memory to visit the servers");
    uint64_t version = 0;
    size_t count = collect(topology, nodes, &version);
    sneck_status status = SNECK_OK;
    if (count == 0)
        status = snk_fail(error, SNECK_UNAVAILABLE, 0, "redis: no server is known");
    for (size_t i = 0; i < count; i++) {
        if (status == SNECK_OK)
            status = visit(context, nodes[i]->redis);
        snk_node_unref(nodes[i]);
    }
    free(nodes);
    pthread_mutex_lock(&topology->mutex);
    *changed_out = topology->version != version;
    pthread_mutex_unlock(&topology->mutex);
    return status;
}

/* ---- Closing ---- */

void snk_topology_enter(snk_topology *topology)
{
    pthread_mutex_lock(&topology->mutex);
    topology->guests++;
    pthread_mutex_unlock(&topology->mutex);
}

void snk_topology_leave(snk_topology *topology)
{
    pthread_mutex_lock(&topology->mutex);
    topology->guests--;
    if (topology->guests == 0 && topology->closing)
        pthread_cond_broadcast(&topology->changed);
    pthread_mutex_unlock(&topology->mutex);
}

void snk_topology_begin_close(snk_topology *topology)
{
    pthread_mutex_lock(&topology->mutex);
    topology->closing = true;
    pthread_cond_broadcast(&topology->changed);
    pthread_mutex_unlock(&topology->mutex);
    /* From now on no node is entered, and the scout that takes them out is waited for only after this. */
    for (size_t i = 0; i < SNK_REDIS_NODES_MAX; i++) {
        pthread_mutex_lock(&topology->mutex);
        snk_node *node = snk_node_ref_locked(atomic_load_explicit(&topology->nodes[i], memory_order_relaxed));
        pthread_mutex_unlock(&topology->mutex);
        if (node != NULL)
            snk_redis_begin_close(node->redis);
        snk_node_unref(node);
    }
}

/* Waits a moment for those who still use one: calls that are being given up. */
static bool has_nodes(snk_topology *topology)
{
    pthread_mutex_lock(&topology->mutex);
    bool used = false;
    bool any = false;
    for (size_t i = 0; i < SNK_REDIS_NODES_MAX; i++) {
        const snk_node *node = atomic_load_explicit(&topology->nodes[i], memory_order_relaxed);
        any = any || node != NULL;
        used = used || (node != NULL && node->references > 0);
    }
    if (used)
        snk_topology_sleep_locked(topology, snk_now_ns() + CLOSE_SLICE_NS);
    pthread_mutex_unlock(&topology->mutex);
    return any;
}

void snk_topology_close(snk_topology *topology)
{
    if (topology == NULL)
        return;
    snk_topology_begin_close(topology);
    snk_scout_stop(topology);
    pthread_mutex_lock(&topology->mutex);
    while (topology->guests > 0)
        pthread_cond_wait(&topology->changed, &topology->mutex);
    snk_follows_clear_locked(topology);
    snk_node_unref_locked(topology->master);
    topology->master = NULL;
    pthread_mutex_unlock(&topology->mutex);
    while (has_nodes(topology))
        (void)snk_nodes_sweep(topology);
    free(topology->map);
    snk_plan_deinit(&topology->plan);
    pthread_cond_destroy(&topology->changed);
    pthread_mutex_destroy(&topology->mutex);
    free(topology);
}

/* The memory stays, and the mutex is not taken: a thread of the parent may have had it when the process was forked. */
void snk_topology_abandon(snk_topology *topology)
{
    for (size_t i = 0; i < SNK_REDIS_NODES_MAX; i++) {
        const snk_node *node = atomic_load_explicit(&topology->nodes[i], memory_order_acquire);
        if (node != NULL)
            snk_redis_abandon(node->redis);
    }
}
