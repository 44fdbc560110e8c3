#include "store/mysql/mysql_store.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"

static void close_store(snk_store *base)
{
    snk_my_store *store = snk_my_store_of(base);
    snk_my_pool_deinit(&store->pool);
    explicit_bzero(&store->options, sizeof store->options);
    free(store);
}

/* Only descriptors are closed: a good-bye would end the parent's sessions. */
static void abandon(snk_store *base)
{
    snk_my_store *store = snk_my_store_of(base);
    snk_my_pool_abandon(&store->pool);
    free(store);
}

/* Nobody tells: there may be news whenever it is time to look. */
static bool wait_for_news(snk_store *base, uint64_t ticket, _Atomic uint32_t *word, uint32_t expected, int64_t until_ns)
{
    snk_my_store *store = snk_my_store_of(base);
    int64_t now_ns = snk_now_ns();
    int64_t look_ns = ticket == 0 ? store->retry_ns : snk_my_look_of(ticket);
    /* Whoever sleeps for all claims of this client has nothing to look for while none of them waits. */
    bool none_waits = ticket == 0 && now_ns - atomic_load(&store->queued_at_ns) > 10 * store->retry_ns;
    int64_t look_at_ns = snk_time_add(now_ns, look_ns);
    if (look_at_ns >= until_ns || none_waits)
        return snk_bell_wait(&store->bell, 0, word, expected, until_ns);
    (void)snk_bell_wait(&store->bell, 0, word, expected, look_at_ns);
    return snk_now_ns() >= look_at_ns && atomic_load(word) == expected;
}

static const snk_store_ops mysql_ops = {
    .scheme = "mysql",
    .submit = snk_my_submit,
    .wait = wait_for_news,
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

static snk_my_store *new_store(const snk_store_config *config)
{
    snk_my_store *store = calloc(1, sizeof *store);
    if (store == NULL || !snk_my_pool_init(&store->pool, &store->options, &store->link)) {
        free(store);
        return NULL;
    }
    store->base.ops = &mysql_ops;
    store->base.traits = (snk_store_traits){
        .tokens = SNK_TOKEN_DURABLE,
        .token_blocks = true,
        .modes = SNK_MODES_ALL,
        .keeps_versions = true,
    };
    store->identity = config->identity;
    (void)snk_copy_text(store->prefix, sizeof store->prefix, config->prefix);
    store->retry_ns = config->retry_ns > 0 ? config->retry_ns : SNK_RETRY_MS_DEFAULT * SNK_NS_PER_MS;
    snk_sql_link_init(&store->link, config);
    store->bell.news = config->news;
    store->bell.news_context = config->news_context;
    return store;
}

static sneck_status open_store(const snk_store_config *config, bool sets_up, snk_store **store_out, sneck_error *error)
{
    *store_out = NULL;
    snk_my_store *store = new_store(config);
    if (store == NULL)
        return snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory");
    sneck_status status = snk_my_options_load(&store->options, config->url, error);
    store->base.traits.lanes = store->options.connections;
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
