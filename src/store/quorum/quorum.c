#include "store/quorum/quorum.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/futex.h"
#include "base/text.h"
#include "store/quorum/operation.h"
#include "store/redis/entries.h"

/* How much longer opening waits for those who are not among the first majority to answer. */
#define MEET_NS (50 * SNK_NS_PER_MS)
/* How long closing waits for nodes that have not answered yet. */
#define CLOSE_NS (500 * SNK_NS_PER_MS)

int64_t snk_quorum_jitter(snk_quorum_store *store, int64_t limit)
{
    /* A step of a generator that needs no more than to differ between clients. */
    uint64_t random = atomic_fetch_add_explicit(&store->random, UINT64_C(0x9E3779B97F4A7C15), memory_order_relaxed);
    random = (random ^ (random >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    random ^= random >> 27;
    return limit <= 0 ? 0 : (int64_t)(random % (uint64_t)limit);
}

void snk_quorum_work_ended(snk_quorum_store *store)
{
    bool is_closing = atomic_load_explicit(&store->is_closing, memory_order_relaxed);
    if (atomic_fetch_sub_explicit(&store->at_work, 1, memory_order_acq_rel) == 1 && is_closing)
        snk_futex_wake(&store->at_work, INT_MAX, false);
}

/* ---- Closing ---- */

static void await_work(snk_quorum_store *store, int64_t until_ns)
{
    uint32_t at_work = 0;
    while ((at_work = atomic_load_explicit(&store->at_work, memory_order_acquire)) > 0 && snk_now_ns() < until_ns)
        (void)snk_futex_wait_any(&(snk_futex_word){ .word = &store->at_work, .expected = at_work }, 1,
                                 10 * SNK_NS_PER_MS);
}

static void close_store(snk_store *base)
{
    snk_quorum_store *store = snk_quorum_store_of(base);
    atomic_store_explicit(&store->is_closing, true, memory_order_relaxed);
    /* Nodes that are a bit behind get what was sent to them; what one does not answer in time is left to its leases. */
    await_work(store, snk_now_ns() + CLOSE_NS);
    for (uint32_t i = 0; i < store->quorum.nodes; i++)
        if (store->nodes[i].redis != NULL)
            snk_redis_begin_close(store->nodes[i].redis);
    /* All calls end by that. What ends on the thread of one node may just be about to ask another one. */
    await_work(store, SNK_NEVER_NS);
    for (uint32_t i = 0; i < store->quorum.nodes; i++)
        snk_redis_close(store->nodes[i].redis);
    snk_quorum_claims_deinit(&store->claims);
    (void)pthread_mutex_destroy(&store->mutex);
    /* The password goes with it; nobody reads it again. */
    explicit_bzero(&store->options, sizeof store->options);
    free(store);
}

/* What a thread of the parent may have been changing is left alone. */
static void abandon(snk_store *base)
{
    snk_quorum_store *store = snk_quorum_store_of(base);
    for (uint32_t i = 0; i < store->quorum.nodes; i++)
        snk_redis_abandon(store->nodes[i].redis);
    free(store);
}

static const snk_store_ops quorum_ops = {
    .scheme = "redlock",
    .submit = snk_quorum_submit,
    .wait = snk_quorum_wait,
    .inspect = snk_quorum_inspect,
    .list = snk_quorum_list,
    .break_hold = snk_quorum_break,
    .probe = snk_quorum_probe,
    .describe = snk_quorum_describe,
    .each_node = snk_quorum_each_node,
    .reconnect = snk_quorum_reconnect,
    .close = close_store,
    .abandon = abandon,
};

/* ---- Opening ---- */

static snk_quorum_store *new_store(const snk_store_config *config)
{
    snk_quorum_store *store = calloc(1, sizeof *store);
    if (store == NULL || !snk_quorum_claims_init(&store->claims)) {
        free(store);
        return NULL;
    }
    (void)pthread_mutex_init(&store->mutex, NULL);
    store->base.ops = &quorum_ops;
    store->base.traits = (snk_store_traits){
        .tokens = SNK_TOKEN_TIME_FLOORED,
        .modes = SNK_MODE_BIT(SNK_MODE_EXCLUSIVE),
        .pushes_wakeups = true,
        .keeps_no_order = true,
    };
    store->identity = config->identity;
    snk_entry_word(store->host, sizeof store->host, config->identity.host);
    (void)snk_text_number(store->pid, config->identity.pid);
    (void)snk_copy_text(store->prefix, sizeof store->prefix, config->prefix);
    (void)snprintf(store->marker, sizeof store->marker, "{%s}:quorum", store->prefix);
    store->retry_ns = config->retry_ns > 0 ? config->retry_ns : SNK_RETRY_MS_DEFAULT * SNK_NS_PER_MS;
    store->bell.news = config->news;
    store->bell.news_context = config->news_context;
    store->link = config->link;
    store->link_context = config->link_context;
    store->log = config->log;
    store->log_context = config->log_context;
    uint64_t seed = 0;
    memcpy(&seed, config->identity.client.bytes, sizeof seed);
    atomic_init(&store->random, seed);
    return store;
}

static sneck_status open_nodes(snk_quorum_store *store, const snk_url *url, sneck_error *error)
{
    const char *verify = snk_url_value(url, "verify");
    sneck_status status = SNECK_OK;
    for (size_t i = 0; i < url->host_count && status == SNECK_OK; i++) {
        snk_quorum_node *node = &store->nodes[i];
        node->store = store;
        node->index = (uint32_t)i;
        (void)snprintf(node->where, sizeof node->where, "%.80s:%d", url->hosts[i].name,
                       url->hosts[i].port == 0 ? 6379 : url->hosts[i].port);
        snk_redis_config config = {
            .host = url->hosts[i].name,
            .port = url->hosts[i].port,
            .user = url->user,
            .password = store->options.password,
            .database = store->options.database,
            .client_name = "sneck",
            .connect_timeout_ns = SNK_QUORUM_CONNECT_FACTOR * store->options.timeout_ns,
            .command_timeout_ns = store->options.timeout_ns,
            .tls = { .on = strcmp(url->scheme, "redlocks") == 0,
                     .ca = snk_url_value(url, "ca"),
                     .cert = snk_url_value(url, "cert"),
                     .key = snk_url_value(url, "key"),
                     .verify_none = verify != NULL && strcmp(verify, "none") == 0 },
            .listener = snk_quorum_listener(node),
        };
        snk_quorum_watch_link(&config.listener);
        store->quorum.nodes = (uint32_t)i + 1;
        status = snk_quorum_node_open(node, &config, error);
    }
    return status;
}

/*
 * Two names of one server would be two votes of it. That is no danger to exclusion (it votes for one claim at a time, by
 * whichever name), but when it dies two votes are gone. One that is found out later is shown and logged (node.c).
 */
static sneck_status check_independence(snk_quorum_store *store, sneck_error *error)
{
    snk_redis_run runs[SNK_QUORUM_NODES_MAX];
    for (uint32_t i = 0; i < store->quorum.nodes; i++) {
        snk_redis_server server;
        snk_redis_describe(store->nodes[i].redis, &server);
        runs[i] = server.connected ? server.run : 0;
        for (uint32_t j = 0; j < i; j++)
            if (runs[i] != 0 && runs[i] == runs[j])
                return snk_fail(error, SNECK_INVALID, 0,
                                "%s and %s are the same server: a quorum needs independent ones", store->nodes[j].where,
                                store->nodes[i].where);
    }
    return SNECK_OK;
}

static sneck_status judge_hello(snk_quorum_store *store, const snk_operation *hello, sneck_error *error)
{
    uint32_t there = 0;
    for (uint32_t i = 0; i < store->quorum.nodes; i++)
        there += hello->says[i] == SNK_NODE_YES;
    /* Of nodes that do not agree among each other the more are right; the others are of no use until they are mended. */
    if (hello->differ != 0 && __builtin_popcount(hello->differ) >= __builtin_popcount(hello->agree))
        return snk_fail(error, SNECK_INVALID, 0,
                        "the nodes are used with lease_max=%lldms, and this URL says %sms: all clients must agree",
                        (long long)hello->other_lease_max_ms, store->lease_max);
    if (there >= snk_quorum_majority(&store->quorum))
        return SNECK_OK;
    const sneck_error *trouble = &hello->trouble;
    sneck_status status =
        trouble->status == SNECK_UNKNOWN || trouble->status == SNECK_OK ? SNECK_UNAVAILABLE : trouble->status;
    return snk_fail(error, status, trouble->cause, "only %u of %u nodes can be used, and a majority is needed: %.150s",
                    there, store->quorum.nodes, trouble->message);
}

/*
 * So that wrong addresses and passwords are said when the store is opened; and the clocks of the nodes are known. Only a
 * client that agrees with the nodes about the longest lease says it to those that do not know it yet.
 */
static sneck_status greet(snk_quorum_store *store, bool first, bool *is_used_out, sneck_error *error)
{
    int64_t begin_ns = snk_now_ns();
    snk_operation *hello = snk_quorum_hello(store, first, SNK_QUORUM_CONNECT_FACTOR * store->options.timeout_ns, error);
    if (hello == NULL)
        return error->status;
    if (first)
        snk_operation_await_rest(hello, snk_now_ns() + (snk_now_ns() - begin_ns) + MEET_NS);
    (void)pthread_mutex_lock(&hello->mutex);
    sneck_status status = judge_hello(store, hello, error);
    *is_used_out = (uint32_t)__builtin_popcount(hello->agree) >= snk_quorum_majority(&store->quorum);
    hello->is_over = true;
    (void)pthread_mutex_unlock(&hello->mutex);
    snk_operation_unref(hello);
    return status;
}

sneck_status snk_quorum_store_open(const snk_store_config *config, snk_store **store_out, sneck_error *error)
{
    *store_out = NULL;
    snk_quorum_store *store = new_store(config);
    if (store == NULL)
        return snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory");
    sneck_status status = snk_quorum_options_load(&store->options, config->url, error);
    (void)snk_text_number(store->lease_max, store->options.lease_max_ms);
    store->quorum.lease_max_ns = store->options.lease_max_ms * SNK_NS_PER_MS;
    store->base.traits.counts_levels = store->options.count_holds;
    if (status == SNECK_OK)
        status = open_nodes(store, config->url, error);
    bool is_used = false;
    if (status == SNECK_OK)
        status = greet(store, true, &is_used, error);
    if (status == SNECK_OK && !is_used)
        status = greet(store, false, &is_used, error);
    if (status == SNECK_OK)
        status = check_independence(store, error);
    if (status != SNECK_OK) {
        close_store(&store->base);
        return status;
    }
    *store_out = &store->base;
    return snk_ok(error);
}
