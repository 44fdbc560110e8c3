/* What the watchdog asks: whether a majority of the nodes answers. And what the client is told when they come and go. */
#include "base/clock.h"
#include "base/error.h"
#include "store/quorum/operation.h"

/* ---- A sign of life ---- */

snk_operation *snk_quorum_hello(snk_quorum_store *store, bool first, int64_t timeout_ns, sneck_error *error)
{
    snk_node_words words;
    snk_send nothing = { .lease_ns = 0 };
    snk_operation *hello = snk_operation_new(store, first ? SNK_OPERATION_MEET : SNK_OPERATION_HELLO, "", &nothing);
    if (hello == NULL) {
        (void)snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory");
        return NULL;
    }
    hello->script = SNK_NODE_HELLO;
    hello->timeout_ns = timeout_ns;
    snk_node_words_begin(&words, SNK_NODE_HELLO, 1);
    snk_node_words_add(&words, store->marker);
    snk_node_words_add(&words, store->lease_max);
    snk_node_words_add(&words, first ? "0" : "1");
    if (snk_operation_prepare(hello, &words, error) != SNECK_OK) {
        snk_operation_unref(hello);
        return NULL;
    }
    snk_operations_ask(store, &hello, 1);
    return hello;
}

/* Fewer than a majority have answered: those that are silent are remembered, for whoever makes their connections anew. */
static sneck_status judge_locked(snk_quorum_store *store, const snk_operation *hello, sneck_error *error)
{
    uint32_t answered = 0;
    uint32_t mute = 0;
    for (uint32_t i = 0; i < store->quorum.nodes; i++) {
        answered += hello->says[i] == SNK_NODE_YES;
        mute |= (uint32_t)(hello->says[i] == SNK_NODE_SILENT) << i;
    }
    atomic_store_explicit(&store->mute, mute, memory_order_relaxed);
    if (answered >= snk_quorum_majority(&store->quorum))
        return SNECK_OK;
    return snk_fail(error, SNECK_UNAVAILABLE, hello->trouble.cause, "only %u of %u nodes answer: %.150s", answered,
                    store->quorum.nodes, hello->trouble.message);
}

/* It takes as long as the majority does; each node has its usual time, or what there is if that is less. */
sneck_status snk_quorum_probe(snk_store *base, int64_t timeout_ns, snk_probe *probe_out, sneck_error *error)
{
    snk_quorum_store *store = snk_quorum_store_of(base);
    int64_t node_ns = store->options.timeout_ns < timeout_ns ? store->options.timeout_ns : timeout_ns;
    int64_t begin_ns = snk_now_ns();
    *probe_out = (snk_probe){ .round_trip_ns = 0 };
    snk_operation *hello = snk_quorum_hello(store, false, node_ns, error);
    if (hello == NULL)
        return SNECK_NO_MEMORY;
    probe_out->round_trip_ns = snk_now_ns() - begin_ns;
    (void)pthread_mutex_lock(&hello->mutex);
    sneck_status status = judge_locked(store, hello, error);
    hello->is_over = true;
    (void)pthread_mutex_unlock(&hello->mutex);
    snk_operation_unref(hello);
    int64_t time_us = snk_quorum_time_us(store);
    probe_out->has_clock = time_us != 0;
    probe_out->clock_offset_ns = probe_out->has_clock ? (time_us - snk_wall_us()) * SNK_NS_PER_US : 0;
    return status;
}

void snk_quorum_reconnect(snk_store *base)
{
    snk_quorum_store *store = snk_quorum_store_of(base);
    uint32_t mute = atomic_exchange_explicit(&store->mute, 0, memory_order_relaxed);
    for (uint32_t i = 0; i < store->quorum.nodes; i++)
        if ((mute >> i & 1) != 0)
            snk_redis_reconnect(store->nodes[i].redis);
}

/* ---- Coming and going ---- */

/* A majority is connected no more, or is again. Which of the nodes it was does not matter. */
static void note_link(snk_quorum_node *node, bool is_up, const char *why)
{
    snk_quorum_store *store = node->store;
    uint32_t majority = snk_quorum_majority(&store->quorum);
    (void)pthread_mutex_lock(&store->mutex);
    uint32_t before = store->linked;
    store->linked = is_up ? before | UINT32_C(1) << node->index : before & ~(UINT32_C(1) << node->index);
    bool had = (uint32_t)__builtin_popcount(before) >= majority;
    bool has = (uint32_t)__builtin_popcount(store->linked) >= majority;
    bool is_told = had != has && (had || store->was_linked);
    store->was_linked = store->was_linked || had;
    (void)pthread_mutex_unlock(&store->mutex);
    if (is_told && store->link != NULL && !atomic_load_explicit(&store->is_closing, memory_order_relaxed))
        store->link(store->link_context, has, why);
}

static void on_connected(void *context, snk_redis_lane lane, snk_redis_run run, bool again)
{
    (void)lane;
    (void)run;
    (void)again;
    note_link(context, true, "");
}

static void on_disconnected(void *context, snk_redis_lane lane, const sneck_error *why)
{
    (void)lane;
    note_link(context, false, why->message);
}

void snk_quorum_watch_link(snk_redis_listener *listener)
{
    listener->connected = on_connected;
    listener->disconnected = on_disconnected;
}
