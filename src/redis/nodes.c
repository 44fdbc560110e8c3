/* The servers of a topology: one client each, made when needed, closed when nobody needs it. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "redis/topology_parts.h"

#define KEPT_NS (3 * SNK_NS_PER_S) /* a server that nothing is on is closed after so long */
/* What a server that was replaced has not answered after so long is given up: whoever waits for it should not wait. */
#define FAREWELL_NS (500 * SNK_NS_PER_MS)

/* ---- What a server's client says ---- */

static void on_message(void *context, const snk_redis_message *message)
{
    const snk_node *node = context;
    const snk_redis_listener *listener = &node->topology->plan.server.listener;
    if (node->kind == SNK_NODE_SENTINEL) {
        /* What it says is not believed, only looked into. */
        snk_scout_urge(node->topology);
        return;
    }
    if (listener->message == NULL)
        return;
    snk_redis_message heard = *message;
    /* In a cluster a plain message may come from anywhere, by way of the server that we listen to. */
    if (node->topology->plan.kind == SNK_TOPOLOGY_CLUSTER && !message->sharded)
        heard.run = 0;
    listener->message(listener->context, &heard);
}

static void on_subscribed(void *context, const char *channel, size_t length, snk_redis_run run)
{
    const snk_node *node = context;
    const snk_redis_listener *listener = &node->topology->plan.server.listener;
    if (node->kind == SNK_NODE_SERVER && listener->subscribed != NULL)
        listener->subscribed(listener->context, channel, length, run);
}

static void on_unsubscribed(void *context, const char *channel, size_t length, const sneck_error *why)
{
    const snk_node *node = context;
    snk_topology *topology = node->topology;
    /* With one server there is no other place for it, and where it is forbidden another place is no help. */
    if (node->kind != SNK_NODE_SERVER || topology->plan.kind == SNK_TOPOLOGY_SINGLE || why->status == SNECK_DENIED)
        return;
    pthread_mutex_lock(&topology->mutex);
    if (snk_follows_lost_locked(topology, node, channel, length))
        snk_scout_want_locked(topology);
    pthread_mutex_unlock(&topology->mutex);
}

static void on_deafened(void *context)
{
    const snk_node *node = context;
    const snk_redis_listener *listener = &node->topology->plan.server.listener;
    if (node->topology->plan.kind != SNK_TOPOLOGY_SINGLE)
        snk_scout_want(node->topology);
    if (node->kind == SNK_NODE_SERVER && listener->deafened != NULL)
        listener->deafened(listener->context);
}

void snk_nodes_tell_cuts(snk_topology *topology, const sneck_error *why)
{
    const snk_redis_listener *listener = &topology->plan.server.listener;
    bool any = false;
    pthread_mutex_lock(&topology->mutex);
    for (size_t i = 0; i < SNK_REDIS_NODES_MAX; i++) {
        snk_node *node = atomic_load_explicit(&topology->nodes[i], memory_order_relaxed);
        if (node == NULL || !node->is_cut)
            continue;
        /* Whoever has been replaced, or is not used, may be away. */
        node->is_cut = !node->retired && (node->mapped || node == topology->master);
        any = any || node->is_cut;
    }
    bool changed = any != topology->is_told_cut && !topology->closing;
    if (changed)
        topology->is_told_cut = any;
    pthread_mutex_unlock(&topology->mutex);
    if (changed && any && listener->disconnected != NULL)
        listener->disconnected(listener->context, SNK_REDIS_SHARED, why);
    else if (changed && !any && listener->connected != NULL)
        listener->connected(listener->context, SNK_REDIS_SHARED, 0, true);
}

/* With one server the listener is told as it comes. */
static bool is_one_of_many(const snk_node *node, snk_redis_lane lane)
{
    return node->kind == SNK_NODE_SERVER && node->topology->plan.kind != SNK_TOPOLOGY_SINGLE &&
           lane == SNK_REDIS_SHARED;
}

static void note_cut(snk_node *node, bool is_cut, const sneck_error *why)
{
    pthread_mutex_lock(&node->topology->mutex);
    node->is_cut = is_cut;
    pthread_mutex_unlock(&node->topology->mutex);
    snk_nodes_tell_cuts(node->topology, why);
}

static void on_connected(void *context, snk_redis_lane lane, snk_redis_run run, bool again)
{
    snk_node *node = context;
    const snk_redis_listener *listener = &node->topology->plan.server.listener;
    snk_redis_server server;
    snk_redis_describe(node->redis, &server);
    if (server.version != 0)
        atomic_store_explicit(&node->version, server.version, memory_order_relaxed);
    if (is_one_of_many(node, lane))
        note_cut(node, false, NULL);
    else if (node->kind == SNK_NODE_SERVER && listener->connected != NULL)
        listener->connected(listener->context, lane, run, again);
}

static void on_disconnected(void *context, snk_redis_lane lane, const sneck_error *why)
{
    snk_node *node = context;
    const snk_redis_listener *listener = &node->topology->plan.server.listener;
    if (is_one_of_many(node, lane))
        note_cut(node, true, why);
    else if (node->kind == SNK_NODE_SERVER && listener->disconnected != NULL)
        listener->disconnected(listener->context, lane, why);
}

static void on_log(void *context, sneck_log_level level, const char *text)
{
    const snk_node *node = context;
    const snk_redis_listener *listener = &node->topology->plan.server.listener;
    if (listener->log != NULL)
        listener->log(listener->context, level, text);
}

/* ---- Making ---- */

static void probed(snk_redis_call *call)
{
    snk_node *node = call->context;
    atomic_store_explicit(&node->probing, false, memory_order_release);
}

static void free_node(snk_node *node)
{
    snk_redis_close(node->redis);
    snk_redis_call_deinit(&node->probe);
    snk_commit_deinit(&node->commit);
    free(node);
}

static snk_node *make_node(snk_topology *topology, snk_node_kind kind, const snk_redis_address *address,
                           sneck_error *error)
{
    snk_node *node = calloc(1, sizeof *node);
    if (node == NULL) {
        snk_fail(error, SNECK_NO_MEMORY, ENOMEM, "redis: no memory for a client");
        return NULL;
    }
    node->topology = topology;
    node->kind = kind;
    snk_commit_init(&node->commit);
    snk_redis_config config = kind == SNK_NODE_SENTINEL ? topology->plan.sentinel : topology->plan.server;
    if (address != NULL) {
        node->address = *address;
        config.host = node->address.host;
        config.port = node->address.port;
    }
    config.listener = (snk_redis_listener){ .message = on_message,
                                            .subscribed = on_subscribed,
                                            .unsubscribed = on_unsubscribed,
                                            .deafened = on_deafened,
                                            .connected = on_connected,
                                            .disconnected = on_disconnected,
                                            .log = on_log,
                                            .context = node };
    snk_redis_call_init(&node->probe);
    node->probe.done = probed;
    node->probe.context = node;
    if (snk_redis_call_format(&node->probe, 1, (const char *const[]){ "PING" }, NULL, error) != SNECK_OK ||
        snk_redis_open(&config, &node->redis, error) != SNECK_OK) {
        free_node(node);
        return NULL;
    }
    return node;
}

snk_node *snk_node_find_locked(snk_topology *topology, snk_node_kind kind, const snk_redis_address *address)
{
    for (size_t i = 0; i < SNK_REDIS_NODES_MAX; i++) {
        snk_node *node = atomic_load_explicit(&topology->nodes[i], memory_order_relaxed);
        if (node != NULL && !node->retired && node->kind == kind && snk_redis_address_equal(&node->address, address))
            return node;
    }
    return NULL;
}

/* Enters a node that was made; false when there is no room. */
static bool enter_locked(snk_topology *topology, snk_node *node)
{
    for (size_t i = 0; i < SNK_REDIS_NODES_MAX; i++) {
        if (atomic_load_explicit(&topology->nodes[i], memory_order_relaxed) != NULL)
            continue;
        node->index = (uint16_t)i;
        /* Release: a forked child that sees the entry sees the node. */
        atomic_store_explicit(&topology->nodes[i], node, memory_order_release);
        return true;
    }
    return false;
}

snk_node *snk_node_get(snk_topology *topology, snk_node_kind kind, const snk_redis_address *address, sneck_error *error)
{
    pthread_mutex_lock(&topology->mutex);
    snk_node *node = snk_node_ref_locked(snk_node_find_locked(topology, kind, address));
    pthread_mutex_unlock(&topology->mutex);
    if (node != NULL)
        return node;
    /* Files may be read for it, so the mutex is not held; somebody else may be faster. */
    snk_node *made = make_node(topology, kind, address, error);
    if (made == NULL)
        return NULL;
    pthread_mutex_lock(&topology->mutex);
    node = snk_node_find_locked(topology, kind, address);
    if (node == NULL && !topology->closing && enter_locked(topology, made))
        node = made;
    (void)snk_node_ref_locked(node);
    bool closing = topology->closing;
    pthread_mutex_unlock(&topology->mutex);
    if (node != made)
        free_node(made);
    if (node == NULL && closing)
        snk_fail(error, SNECK_UNAVAILABLE, ECANCELED, "redis: the client is being closed");
    else if (node == NULL)
        snk_fail(error, SNECK_LIMIT, 0, "redis: more than %d servers", SNK_REDIS_NODES_MAX);
    return node;
}

snk_node *snk_node_make_only(snk_topology *topology, const snk_redis_address *address, sneck_error *error)
{
    snk_node *node = make_node(topology, SNK_NODE_SERVER, address, error);
    if (node == NULL)
        return NULL;
    bool entered = enter_locked(topology, node);
    assert(entered);
    (void)entered;
    return snk_node_ref_locked(node);
}

/* ---- Using ---- */

void snk_node_unref_locked(snk_node *node)
{
    if (node == NULL)
        return;
    assert(node->references > 0);
    node->references--;
    node->used_at_ns = node->references == 0 ? snk_now_ns() : 0;
    if (node->references == 0 && (node->retired || node->topology->closing))
        pthread_cond_broadcast(&node->topology->changed); /* the scout sweeps */
}

void snk_node_unref(snk_node *node)
{
    if (node == NULL)
        return;
    snk_topology *topology = node->topology;
    pthread_mutex_lock(&topology->mutex);
    snk_node_unref_locked(node);
    pthread_mutex_unlock(&topology->mutex);
}

void snk_node_retire(snk_node *node)
{
    snk_redis_server server;
    snk_redis_describe(node->redis, &server);
    pthread_mutex_lock(&node->topology->mutex);
    node->retired = true;
    node->mapped = false;
    node->given_up_at_ns = server.connected ? snk_now_ns() + FAREWELL_NS : SNK_NEVER_NS;
    pthread_mutex_unlock(&node->topology->mutex);
    if (!server.connected)
        snk_redis_begin_close(node->redis);
}

bool snk_node_is_down(snk_node *node, sneck_error *why)
{
    snk_redis_server server;
    snk_redis_describe(node->redis, &server);
    if (server.connected || server.failures == 0)
        return false;
    *why = server.last_error;
    /* Whoever finds it idle has the connection made again, since nobody may be sending anything. */
    if (!atomic_exchange_explicit(&node->probing, true, memory_order_acquire)) {
        snk_redis_call_reset(&node->probe);
        snk_redis_submit(node->redis, &(snk_redis_call *){ &node->probe }, 1);
    }
    return true;
}

size_t snk_nodes_find_down(snk_topology *topology, bool down[SNK_REDIS_NODES_MAX])
{
    size_t count = 0;
    for (size_t i = 0; i < SNK_REDIS_NODES_MAX; i++) {
        sneck_error why;
        down[i] = false;
        if (atomic_load_explicit(&topology->nodes[i], memory_order_relaxed) == NULL)
            continue;
        pthread_mutex_lock(&topology->mutex);
        snk_node *node = snk_node_ref_locked(atomic_load_explicit(&topology->nodes[i], memory_order_relaxed));
        bool serves = node != NULL && (node->mapped || node == topology->master);
        pthread_mutex_unlock(&topology->mutex);
        down[i] = node != NULL && node->kind == SNK_NODE_SERVER && snk_node_is_down(node, &why);
        count += down[i] && serves;
        snk_node_unref(node);
    }
    return count;
}

/* ---- Closing ---- */

/* When it may be closed; SNK_NEVER_NS while it is needed. One that was asked just now may be asked again soon. */
static int64_t useless_at_locked(const snk_node *node)
{
    if (node->references > 0)
        return SNK_NEVER_NS;
    if (node->retired || node->topology->closing)
        return 0;
    return node->mapped ? SNK_NEVER_NS : node->used_at_ns + KEPT_NS;
}

static snk_node *take_useless(snk_topology *topology, int64_t *next_at_ns)
{
    int64_t now = snk_now_ns();
    snk_node *useless = NULL;
    *next_at_ns = SNK_NEVER_NS;
    pthread_mutex_lock(&topology->mutex);
    for (size_t i = 0; i < SNK_REDIS_NODES_MAX && useless == NULL; i++) {
        snk_node *node = atomic_load_explicit(&topology->nodes[i], memory_order_relaxed);
        int64_t at_ns = node == NULL ? SNK_NEVER_NS : useless_at_locked(node);
        if (at_ns <= now) {
            useless = node;
            atomic_store_explicit(&topology->nodes[i], NULL, memory_order_release);
        } else if (at_ns < *next_at_ns) {
            *next_at_ns = at_ns;
        }
    }
    pthread_mutex_unlock(&topology->mutex);
    return useless;
}

/* A retired one that had time enough to answer, with a reference. */
static snk_node *take_overdue(snk_topology *topology, int64_t *next_at_ns)
{
    int64_t now = snk_now_ns();
    snk_node *overdue = NULL;
    pthread_mutex_lock(&topology->mutex);
    for (size_t i = 0; i < SNK_REDIS_NODES_MAX && overdue == NULL; i++) {
        snk_node *node = atomic_load_explicit(&topology->nodes[i], memory_order_relaxed);
        if (node == NULL || !node->retired)
            continue;
        if (node->given_up_at_ns <= now) {
            node->given_up_at_ns = SNK_NEVER_NS;
            overdue = snk_node_ref_locked(node);
        } else if (node->given_up_at_ns < *next_at_ns) {
            *next_at_ns = node->given_up_at_ns;
        }
    }
    pthread_mutex_unlock(&topology->mutex);
    return overdue;
}

int64_t snk_nodes_sweep(snk_topology *topology)
{
    int64_t next_at_ns = SNK_NEVER_NS;
    snk_node *found = NULL;
    while ((found = take_useless(topology, &next_at_ns)) != NULL)
        free_node(found);
    while ((found = take_overdue(topology, &next_at_ns)) != NULL) {
        snk_redis_begin_close(found->redis);
        snk_node_unref(found);
    }
    return next_at_ns;
}
