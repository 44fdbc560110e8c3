#include "store/redis/redis.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "store/redis/entries.h"
#include "store/redis/run.h"

static void close_store(snk_store *base)
{
    snk_redis_store *store = snk_redis_store_of(base);
    if (store->redis != NULL)
        snk_redis_begin_close(store->redis);
    snk_redis_close(store->redis);
    snk_waiting_deinit(&store->waiting);
    /* The password goes with it; nobody reads it again. */
    explicit_bzero(&store->options, sizeof store->options);
    free(store);
}

/* The table is left alone: a thread of the parent may have been changing it when the process was forked. */
static void abandon(snk_store *base)
{
    snk_redis_store *store = snk_redis_store_of(base);
    snk_redis_abandon(store->redis);
    free(store);
}

static const snk_store_ops redis_ops = {
    .scheme = "redis",
    .submit = snk_redis_store_submit,
    .wait = snk_redis_store_wait,
    .rouse = snk_redis_store_rouse,
    .inspect = snk_redis_store_inspect,
    .list = snk_redis_store_list,
    .break_hold = snk_redis_store_break,
    .check = snk_redis_store_check,
    .probe = snk_redis_store_probe,
    .describe = snk_redis_store_describe,
    .reconnect = snk_redis_store_reconnect,
    .close = close_store,
    .abandon = abandon,
};

static snk_redis_store *new_store(const snk_store_config *config)
{
    snk_redis_store *store = calloc(1, sizeof *store);
    if (store == NULL || !snk_waiting_init(&store->waiting)) {
        free(store);
        return NULL;
    }
    store->base.ops = &redis_ops;
    store->base.traits = (snk_store_traits){
        .tokens = SNK_TOKEN_TIME_FLOORED,
        .token_blocks = true,
        .modes = SNK_MODE_BIT(SNK_MODE_EXCLUSIVE),
        .pushes_wakeups = true,
    };
    store->identity = config->identity;
    snk_entry_word(store->host, sizeof store->host, config->identity.host);
    (void)snk_copy_text(store->prefix, sizeof store->prefix, config->prefix);
    store->retry_ns = config->retry_ns > 0 ? config->retry_ns : SNK_RETRY_MS_DEFAULT * SNK_NS_PER_MS;
    store->bell.news = config->news;
    store->bell.news_context = config->news_context;
    store->link = config->link;
    store->link_context = config->link_context;
    store->log = config->log;
    store->log_context = config->log_context;
    return store;
}

static sneck_status check_place(const snk_url *url, bool is_unix, sneck_error *error)
{
    if (is_unix && (url->path[0] != '/' || url->path[1] == '\0'))
        return snk_fail(error, SNECK_INVALID, 0, "the store's URL is redis+unix:///path/to.sock");
    if (!is_unix && (url->host_count != 1 || url->hosts[0].name[0] == '\0'))
        return snk_fail(error, SNECK_INVALID, 0, "the store's URL is %s://[user:password@]host[:6379][/db]",
                        url->scheme);
    return SNECK_OK;
}

static sneck_status open_redis(snk_redis_store *store, const snk_url *url, sneck_error *error)
{
    bool is_unix = strcmp(url->scheme, "redis+unix") == 0;
    sneck_status status = check_place(url, is_unix, error);
    if (status != SNECK_OK)
        return status;
    const char *verify = snk_url_value(url, "verify");
    snk_redis_config config = {
        .host = is_unix ? NULL : url->hosts[0].name,
        .port = is_unix ? 0 : url->hosts[0].port,
        .unix_path = is_unix ? url->path : NULL,
        .user = url->user,
        .password = store->options.password,
        .database = store->options.database,
        .client_name = "sneck",
        .connect_timeout_ns = store->options.timeout_ns,
        .command_timeout_ns = store->options.timeout_ns,
        .tls = { .on = strcmp(url->scheme, "rediss") == 0,
                 .ca = snk_url_value(url, "ca"),
                 .cert = snk_url_value(url, "cert"),
                 .key = snk_url_value(url, "key"),
                 .verify_none = verify != NULL && strcmp(verify, "none") == 0 },
        .listener = snk_wake_listener(store),
    };
    if (is_unix)
        (void)snprintf(store->where, sizeof store->where, "redis %.100s", url->path);
    else
        (void)snprintf(store->where, sizeof store->where, "redis %.100s:%d", url->hosts[0].name,
                       url->hosts[0].port == 0 ? 6379 : url->hosts[0].port);
    return snk_redis_open(&config, &store->redis, error);
}

/* So that a wrong address or password is said when the store is opened, not at the first lock. */
static sneck_status greet(snk_redis_store *store, sneck_error *error)
{
    snk_redis_call call;
    snk_redis_call *const calls[] = { &call };
    const char *const arguments[] = { "PING" };
    snk_redis_call_init(&call);
    sneck_status status = snk_redis_call_format(&call, 1, arguments, NULL, error);
    if (status == SNECK_OK) {
        bool uncertain = false;
        snk_redis_drive(store->redis, calls, 1);
        status = snk_run_result(store, &call, &uncertain, error);
        /* A greeting that may have arrived has changed nothing. */
        if (uncertain && status == SNECK_UNKNOWN)
            status = snk_fail(error, SNECK_UNAVAILABLE, 0, "%s does not answer", store->where);
    }
    snk_redis_call_deinit(&call);
    return status;
}

sneck_status snk_redis_store_open(const snk_store_config *config, snk_store **store_out, sneck_error *error)
{
    *store_out = NULL;
    snk_redis_store *store = new_store(config);
    if (store == NULL)
        return snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory");
    sneck_status status = snk_redis_options_load(&store->options, config->url, error);
    store->base.traits.counts_levels = store->options.count_holds;
    if (status == SNECK_OK)
        status = open_redis(store, config->url, error);
    if (status == SNECK_OK)
        status = greet(store, error);
    if (status != SNECK_OK) {
        close_store(&store->base);
        return status;
    }
    *store_out = &store->base;
    return snk_ok(error);
}

sneck_status snk_redis_later_open(const snk_store_config *config, snk_store **store_out, sneck_error *error)
{
    *store_out = NULL;
    return snk_fail(error, SNECK_UNSUPPORTED, 0, "%.40s: is not there yet; use redis://, rediss:// or redis+unix://",
                    config->url->scheme);
}
