#include "store/mysql/mysql_store.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static void close_store(snk_store *base)
{
    snk_my_store *store = snk_my_store_of(base);
    snk_sql_ear_deinit(&store->ear);
    snk_sql_rows_deinit(&store->rows);
    snk_my_pool_deinit(&store->row_pool);
    snk_my_pool_deinit(&store->pool);
    snk_waiting_deinit(&store->waiters.claims);
    explicit_bzero(&store->options, sizeof store->options);
    free(store);
}

/* Only descriptors are closed: a good-bye would end the parent's sessions. */
static void abandon(snk_store *base)
{
    snk_my_store *store = snk_my_store_of(base);
    snk_sql_ear_abandon(&store->ear);
    snk_my_pool_abandon(&store->pool);
    snk_my_pool_abandon(&store->row_pool);
    snk_sql_rows_abandon(&store->rows);
    free(store);
}

static const snk_store_ops mysql_ops = {
    .scheme = "mysql",
    .submit = snk_my_submit,
    .wait = snk_my_wait,
    .inspect = snk_my_inspect,
    .list = snk_my_list,
    .break_hold = snk_my_break,
    .tally = snk_my_tally,
    .version = snk_my_version,
    .probe = snk_my_probe,
    .describe = snk_my_describe,
    .reconnect = snk_my_reconnect,
    .close = close_store,
    .abandon = abandon,
};

/* A row that is locked is locked by one: there is nothing to share or count. */
static void limit_to_rows(snk_my_store *store)
{
    static const snk_store_ops row_ops = {
        .scheme = "mysql with mode=row",
        .submit = snk_my_submit,
        .wait = snk_my_wait,
        .inspect = snk_my_inspect,
        .list = snk_my_list,
        .break_hold = snk_my_break,
        .version = snk_my_version,
        .probe = snk_my_probe,
        .describe = snk_my_describe,
        .reconnect = snk_my_reconnect,
        .close = close_store,
        .abandon = abandon,
    };
    store->base.ops = &row_ops;
    store->base.traits.modes = SNK_MODE_BIT(SNK_MODE_EXCLUSIVE);
}

static snk_my_store *new_store(const snk_store_config *config)
{
    snk_my_store *store = calloc(1, sizeof *store);
    if (store == NULL || !snk_waiting_init(&store->waiters.claims)) {
        free(store);
        return NULL;
    }
    store->base.ops = &mysql_ops;
    store->base.traits = (snk_store_traits){
        .tokens = SNK_TOKEN_DURABLE,
        .token_blocks = true,
        .pushes_wakeups = true,
        .modes = SNK_MODES_ALL,
        .keeps_versions = true,
    };
    store->identity = config->identity;
    (void)snk_copy_text(store->prefix, sizeof store->prefix, config->prefix);
    store->retry_ns = config->retry_ns > 0 ? config->retry_ns : SNK_RETRY_MS_DEFAULT * SNK_NS_PER_MS;
    store->waiters.store = &store->base;
    store->waiters.retry_ns = store->retry_ns;
    store->waiters.ask = snk_my_ask_by_mode;
    store->waiters.listen = snk_my_listen;
    store->waiters.bell.news = config->news;
    store->waiters.bell.news_context = config->news_context;
    store->log = config->log;
    store->log_context = config->log_context;
    snk_sql_link_init(&store->link, config);
    snk_sql_ear_init(&store->ear);
    return store;
}

static sneck_status open_pools(snk_my_store *store, sneck_error *error)
{
    if (snk_my_pool_init(&store->pool, &store->options, store->options.connections) &&
        snk_my_pool_init(&store->row_pool, &store->options, SNK_MY_ROWS_MAX) &&
        snk_sql_rows_init(&store->rows, &snk_my_row_ops, &store->base, store->prefix, store->retry_ns)) {
        store->pool.link = &store->link;
        return SNECK_OK;
    }
    return snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory");
}

static sneck_status open_store(const snk_store_config *config, bool sets_up, snk_store **store_out, sneck_error *error)
{
    *store_out = NULL;
    snk_my_store *store = new_store(config);
    if (store == NULL)
        return snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory");
    sneck_status status = snk_my_options_load(&store->options, config->url, error);
    store->base.traits.lanes = store->options.connections;
    if (store->options.locks_rows)
        limit_to_rows(store);
    if (status == SNECK_OK)
        status = open_pools(store, error);
    snk_sql_rows_watch(&store->rows, config->doubt, config->news_context);
    if (status == SNECK_OK)
        status = snk_my_greet(store, sets_up, error);
    if (status != SNECK_OK) {
        close_store(&store->base);
        return status;
    }
    *store_out = &store->base;
    return snk_ok(error);
}

sneck_status snk_mysql_open(const snk_store_config *config, snk_store **store_out, sneck_error *error)
{
    return open_store(config, false, store_out, error);
}

sneck_status snk_mysql_setup(const snk_store_config *config, sneck_error *error)
{
    snk_store *store = NULL;
    sneck_status status = open_store(config, true, &store, error);
    if (status == SNECK_OK)
        close_store(store);
    return status;
}
