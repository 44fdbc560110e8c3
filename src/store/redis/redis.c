#include "store/redis/redis.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "store/redis/crowd.h"
#include "store/redis/place.h"
#include "store/redis/entries.h"
#include "store/redis/run.h"

static void close_store(snk_store *base)
{
    snk_redis_store *store = snk_redis_store_of(base);
    snk_topology_close(store->topology);
    free(store->slot_tags);
    snk_waiting_deinit(&store->waiting);
    snk_recent_deinit(&store->recent);
    /* The password goes with it; nobody reads it again. */
    explicit_bzero(&store->options, sizeof store->options);
    free(store);
}

/* The table is left alone: a thread of the parent may have been changing it when the process was forked. */
static void abandon(snk_store *base)
{
    snk_redis_store *store = snk_redis_store_of(base);
    snk_topology_abandon(store->topology);
    free(store);
}

static uint32_t part_of(snk_store *base, const char *name)
{
    snk_redis_store *store = snk_redis_store_of(base);
    snk_keys keys;
    if (store->slot_tags == NULL || snk_keys_make(&keys, store->prefix, name, NULL) != SNECK_OK)
        return 0;
    return snk_topology_part(store->topology, snk_channel_slot(store, &keys));
}

static const snk_store_ops redis_ops = {
    .scheme = "redis",
    .submit = snk_redis_store_submit,
    .wait = snk_redis_store_wait,
    .rouse = snk_redis_store_rouse,
    .part = part_of,
    .inspect = snk_redis_store_inspect,
    .list = snk_redis_store_list,
    .break_hold = snk_redis_store_break,
    .tally = snk_redis_store_tally,
    .version = snk_redis_store_version,
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
    snk_recent_init(&store->recent);
    store->base.ops = &redis_ops;
    store->base.traits = (snk_store_traits){
        .tokens = SNK_TOKEN_TIME_FLOORED,
        .token_blocks = true,
        .modes = SNK_MODE_BIT(SNK_MODE_EXCLUSIVE),
        .pushes_wakeups = true,
        .keeps_versions = true,
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

static sneck_status connect_to(snk_redis_store *store, const snk_url *url, const snk_place *place, sneck_error *error)
{
    const char *verify = snk_url_value(url, "verify");
    const snk_redis_address *first = place->host_count > 0 ? &place->hosts[0] : NULL;
    snk_topology_config config = {
        .kind = place->kind,
        .server = { .host = first == NULL ? NULL : first->host,
                    .port = first == NULL ? 0 : first->port,
                    .unix_path = place->unix_path,
                    .user = url->user,
                    .password = store->options.password,
                    .database = place->database,
                    .client_name = "sneck",
                    .connect_timeout_ns = store->options.timeout_ns,
                    .command_timeout_ns = store->options.timeout_ns,
                    .tls = { .on = place->tls,
                             .ca = snk_url_value(url, "ca"),
                             .cert = snk_url_value(url, "cert"),
                             .key = snk_url_value(url, "key"),
                             .verify_none = verify != NULL && strcmp(verify, "none") == 0 },
                    .listener = snk_wake_listener(store) },
        .displaced = snk_ghosts_seek,
        .hosts = place->hosts,
        .host_count = place->host_count,
        .service = place->service,
        .sentinel_user = snk_url_value(url, "sentinel_user"),
        .sentinel_password = store->options.sentinel_password,
    };
    store->tracks = place->kind != SNK_TOPOLOGY_SINGLE;
    (void)snk_copy_text(store->where, sizeof store->where, place->text);
    return snk_topology_open(&config, &store->topology, error);
}

static sneck_status open_servers(snk_redis_store *store, const snk_url *url, sneck_error *error)
{
    snk_place place;
    sneck_status status = snk_place_load(&place, url, error);
    if (status == SNECK_OK && place.kind == SNK_TOPOLOGY_CLUSTER) {
        store->slot_tags = calloc(SNK_REDIS_SLOTS, sizeof *store->slot_tags);
        if (store->slot_tags == NULL)
            return snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory");
        snk_redis_slot_tags(store->slot_tags);
    }
    return status == SNECK_OK ? connect_to(store, url, &place, error) : status;
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
        call.slot = SNK_REDIS_SLOT_ANY;
        snk_topology_drive(store->topology, calls, 1);
        status = snk_run_result(store, &call, &uncertain, error);
        /* A greeting that may have arrived has changed nothing. */
        if (uncertain && status == SNECK_UNKNOWN)
            status = snk_fail(error, SNECK_UNAVAILABLE, 0, "%s does not answer", store->where);
    }
    snk_redis_call_deinit(&call);
    return status;
}

/* What the options make of it. */
static void set_traits(snk_redis_store *store)
{
    snk_store_traits *traits = &store->base.traits;
    traits->counts_levels = store->options.count_holds;
    traits->slow_looks = store->options.commits; /* such a look may find a grant, whose replicas are waited for */
    if (store->options.layout == SNK_LAYOUT_HASH)
        traits->modes = SNK_MODES_ALL;
    else
        traits->modes_hint = "layout=string has place for one holder; leave it out";
}

sneck_status snk_redis_store_open(const snk_store_config *config, snk_store **store_out, sneck_error *error)
{
    *store_out = NULL;
    snk_redis_store *store = new_store(config);
    if (store == NULL)
        return snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory");
    sneck_status status = snk_redis_options_load(&store->options, config->url, error);
    set_traits(store);
    if (status == SNECK_OK)
        status = open_servers(store, config->url, error);
    if (status == SNECK_OK)
        status = greet(store, error);
    if (status != SNECK_OK) {
        close_store(&store->base);
        return status;
    }
    *store_out = &store->base;
    return snk_ok(error);
}
