#include "store/postgres/postgres.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"

void snk_pg_resource(const snk_pg_store *store, snk_object object, const char *name,
                     char resource[SNK_PG_RESOURCE_SIZE])
{
    (void)snprintf(resource, SNK_PG_RESOURCE_SIZE, "%s%s%s", snk_object_mark(object), store->prefix, name);
}

void snk_pg_log(const snk_pg_store *store, sneck_log_level level, const char *format, ...)
{
    if (store->log == NULL)
        return;
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (length >= 0)
        store->log(store->log_context, level, text);
}

static void close_store(snk_store *base)
{
    snk_pg_store *store = snk_pg_store_of(base);
    snk_sql_ear_deinit(&store->ear);
    snk_sql_rows_deinit(&store->rows);
    snk_pg_pool_deinit(&store->row_pool);
    snk_pg_pool_deinit(&store->pool);
    snk_waiting_deinit(&store->waiters.claims);
    snk_pg_target_unref(store->target);
    free(store);
}

/*
 * Only descriptors are closed: saying good-bye would end the parent's sessions, and everything else may have been in the
 * middle of a change when the process was forked.
 */
static void abandon(snk_store *base)
{
    snk_pg_store *store = snk_pg_store_of(base);
    snk_sql_ear_abandon(&store->ear);
    snk_pg_pool_abandon(&store->pool);
    snk_pg_pool_abandon(&store->row_pool);
    snk_sql_rows_abandon(&store->rows);
    free(store);
}

static const snk_store_ops postgres_ops = {
    .scheme = "postgres",
    .submit = snk_pg_submit,
    .wait = snk_pg_wait,
    .inspect = snk_pg_inspect,
    .list = snk_pg_list,
    .break_hold = snk_pg_break,
    .tally = snk_pg_tally,
    .version = snk_pg_version,
    .probe = snk_pg_probe,
    .describe = snk_pg_describe,
    .reconnect = snk_pg_reconnect,
    .close = close_store,
    .abandon = abandon,
};

/* A row that is locked is locked by one: there is nothing to share or count. */
static void limit_to_rows(snk_pg_store *store)
{
    static const snk_store_ops row_ops = {
        .scheme = "postgres with mode=row",
        .submit = snk_pg_submit,
        .wait = snk_pg_wait,
        .inspect = snk_pg_inspect,
        .list = snk_pg_list,
        .break_hold = snk_pg_break,
        .version = snk_pg_version,
        .probe = snk_pg_probe,
        .describe = snk_pg_describe,
        .reconnect = snk_pg_reconnect,
        .close = close_store,
        .abandon = abandon,
    };
    store->base.ops = &row_ops;
    store->base.traits.modes = SNK_MODE_BIT(SNK_MODE_EXCLUSIVE);
}

static snk_pg_store *new_store(const snk_store_config *config)
{
    snk_pg_store *store = calloc(1, sizeof *store);
    if (store == NULL || !snk_waiting_init(&store->waiters.claims)) {
        free(store);
        return NULL;
    }
    store->base.ops = &postgres_ops;
    store->base.traits = (snk_store_traits){
        .tokens = SNK_TOKEN_DURABLE,
        .token_blocks = true,
        .pushes_wakeups = true,
        .modes = SNK_MODES_ALL,
        .keeps_versions = true,
    };
    store->identity = config->identity;
    (void)snk_copy_text(store->prefix, sizeof store->prefix, config->prefix);
    (void)snprintf(store->channel, sizeof store->channel, "sneck_%s", config->identity.uuid);
    store->retry_ns = config->retry_ns > 0 ? config->retry_ns : SNK_RETRY_MS_DEFAULT * SNK_NS_PER_MS;
    store->waiters.store = &store->base;
    store->waiters.retry_ns = store->retry_ns;
    store->waiters.ask = snk_pg_ask_by_mode;
    store->waiters.listen = snk_pg_listen;
    store->waiters.bell.news = config->news;
    store->waiters.bell.news_context = config->news_context;
    store->log = config->log;
    store->log_context = config->log_context;
    snk_sql_link_init(&store->link, config);
    snk_sql_ear_init(&store->ear);
    return store;
}

static sneck_status open_pools(snk_pg_store *store, sneck_error *error)
{
    if (snk_pg_pool_init(&store->pool, store->target, store->options.where, store->options.connections) &&
        snk_pg_pool_init(&store->row_pool, store->target, store->options.where, SNK_PG_ROWS_MAX) &&
        snk_sql_rows_init(&store->rows, &snk_pg_row_ops, &store->base, store->prefix, store->retry_ns)) {
        store->pool.link = &store->link;
        return SNECK_OK;
    }
    return snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory");
}

static sneck_status open_store(const snk_store_config *config, bool sets_up, snk_store **store_out, sneck_error *error)
{
    *store_out = NULL;
    snk_pg_store *store = new_store(config);
    if (store == NULL)
        return snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory");
    sneck_status status =
        snk_pg_options_load(&store->options, config->url, store->identity.uuid, &store->target, error);
    store->base.traits.lanes = store->options.connections;
    if (store->options.locks_rows)
        limit_to_rows(store);
    if (status == SNECK_OK)
        status = open_pools(store, error);
    snk_sql_rows_watch(&store->rows, config->doubt, config->news_context);
    if (status == SNECK_OK)
        status = snk_pg_greet(store, sets_up, error);
    if (status != SNECK_OK) {
        close_store(&store->base);
        return status;
    }
    *store_out = &store->base;
    return snk_ok(error);
}

sneck_status snk_postgres_open(const snk_store_config *config, snk_store **store_out, sneck_error *error)
{
    return open_store(config, false, store_out, error);
}

sneck_status snk_postgres_setup(const snk_store_config *config, sneck_error *error)
{
    snk_store *store = NULL;
    sneck_status status = open_store(config, true, &store, error);
    if (status == SNECK_OK)
        close_store(store);
    return status;
}
