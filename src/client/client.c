#include "client/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "client/agent.h"
#include "client/perform.h"

/* ---- Checks ---- */

sneck_status snk_client_check(const sneck_client *client, sneck_error *error)
{
    if (client == NULL)
        return snk_fail(error, SNECK_INVALID, 0, "the client is NULL: open it with sneck_open first");
    if (snk_forkmark_is_child(&client->fork))
        return snk_fail(error, SNECK_INVALID, 0,
                        "the client belongs to the parent of this process; open another one after fork()");
    if (atomic_load_explicit(&client->is_closed, memory_order_acquire))
        return snk_fail(error, SNECK_INVALID, 0, "the client is closed; only sneck_lock_free is left to call");
    return SNECK_OK;
}

sneck_status snk_client_enter(sneck_client *client, sneck_error *error)
{
    sneck_status status = snk_client_check(client, error);
    if (status == SNECK_OK && !snk_gate_enter(&client->gate))
        status = snk_fail(error, SNECK_INVALID, 0, "the client is being closed");
    return status;
}

/* ---- Threads ---- */

static sneck_status start_locked(sneck_client *client, sneck_error *error)
{
    sneck_status status = snk_client_check(client, error);
    if (status == SNECK_OK)
        status = snk_keeper_start(client, error);
    if (status == SNECK_OK)
        status = snk_renewer_start(client, error);
    if (status == SNECK_OK)
        status = snk_watch_start(client, error);
    if (status == SNECK_OK && client->settings.on_event != NULL)
        status = snk_callbacks_start(client, error);
    if (status == SNECK_OK)
        atomic_store_explicit(&client->is_started, true, memory_order_release);
    return status;
}

sneck_status snk_client_start(sneck_client *client, sneck_error *error)
{
    if (atomic_load_explicit(&client->is_started, memory_order_acquire))
        return SNECK_OK;
    int state = 0;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    (void)pthread_mutex_lock(&client->start_mutex);
    sneck_status status = start_locked(client, error);
    (void)pthread_mutex_unlock(&client->start_mutex);
    (void)pthread_setcancelstate(state, NULL);
    return status;
}

/* ---- Opening ---- */

static bool draw_id(void *context, snk_id *id_out)
{
    return snk_idpool_draw(context, id_out);
}

/* The store has news about a claim: whoever waits with it is called. */
static void on_news(void *context, const char *name, const snk_id *claim, const snk_grant *grant)
{
    sneck_client *client = context;
    for (snk_entry *entry = snk_registry_next_named(&client->registry, name, NULL); entry != NULL;
         entry = snk_registry_next_named(&client->registry, name, entry)) {
        snk_turn turn;
        snk_turn_init(&turn, client, entry);
        (void)pthread_mutex_lock(&entry->mutex);
        snk_turn_call_locked(&turn, claim, grant);
        (void)pthread_mutex_unlock(&entry->mutex);
        snk_turn_end(&turn);
    }
}

static void on_link(void *context, bool is_up, const char *why)
{
    snk_note note = {
        .kind = is_up ? SNECK_EVENT_CONNECTION_UP : SNECK_EVENT_CONNECTION_DOWN,
        .status = is_up ? SNECK_OK : SNECK_UNAVAILABLE,
    };
    snk_events_emit(context, NULL, &note, why);
}

static sneck_status fill_identity(snk_identity *identity, sneck_error *error)
{
    if (!snk_id_random(&identity->client))
        return snk_fail(error, SNECK_UNAVAILABLE, 0, "the kernel gives no random bytes for the client's id");
    snk_id_to_uuid(&identity->client, identity->uuid);
    if (gethostname(identity->host, sizeof identity->host) != 0)
        (void)snk_copy_text(identity->host, sizeof identity->host, "localhost");
    identity->host[sizeof identity->host - 1] = '\0';
    identity->pid = getpid();
    return SNECK_OK;
}

/* Without user and password, which may differ. */
static void describe_store(sneck_client *client, const snk_url *url)
{
    size_t length = (size_t)snprintf(client->store_text, sizeof client->store_text, "%s:", url->scheme);
    for (size_t i = 0; i < url->host_count && length < sizeof client->store_text; i++)
        length += (size_t)snprintf(client->store_text + length, sizeof client->store_text - length, "%s:%d,",
                                   url->hosts[i].name, url->hosts[i].port);
    if (length < sizeof client->store_text)
        (void)snprintf(client->store_text + length, sizeof client->store_text - length, "%s", url->path);
}

static sneck_status open_store(sneck_client *client, const snk_url *url, sneck_error *error)
{
    snk_store_config config = {
        .url = url,
        .prefix = client->settings.prefix,
        .retry_ns = client->settings.retry_ms * SNK_NS_PER_MS,
        .lease_ns = client->settings.lease_ms * SNK_NS_PER_MS,
        .news = on_news,
        .news_context = client,
        .link = on_link,
        .link_context = client,
        .log = client->settings.log == NULL ? NULL : snk_log_store,
        .log_context = client,
    };
    sneck_status status = fill_identity(&config.identity, error);
    if (status == SNECK_OK)
        status = snk_store_open(&config, &client->store, error);
    if (status != SNECK_OK)
        return status;
    memcpy(&client->registry.seed, config.identity.client.bytes, sizeof client->registry.seed);
    client->engine = (snk_engine){
        .draw_id = draw_id,
        .context = &client->ids,
        .retry_ns = config.retry_ns,
        .token_blocks = client->store->traits.token_blocks,
        .pushes_wakeups = client->store->traits.pushes_wakeups,
    };
    client->counts_levels = client->store->traits.counts_levels;
    client->modes = client->store->traits.modes;
    client->scheme = client->store->ops->scheme;
    describe_store(client, url);
    (void)snk_copy_text(client->metrics.backend, sizeof client->metrics.backend, client->store->ops->scheme);
    return SNECK_OK;
}

static sneck_client *new_client(void)
{
    sneck_client *client = calloc(1, sizeof *client);
    if (client == NULL || !snk_metrics_init(&client->metrics)) {
        free(client);
        return NULL;
    }
    atomic_init(&client->references, 1);
    snk_forkmark_init(&client->fork);
    snk_idpool_init(&client->ids);
    snk_registry_init(&client->registry);
    snk_renewer_init(&client->renewer);
    snk_errands_init(&client->errands);
    snk_keeper_init(&client->keeper);
    snk_events_init(&client->events);
    snk_callbacks_init(&client->callbacks);
    snk_watch_init(&client->watch);
    snk_log_init(&client->log);
    (void)pthread_mutex_init(&client->start_mutex, NULL);
    client->registry.engine = &client->engine;
    client->registry.renewals = &client->renewer.timers;
    client->registry.deadlines = &client->keeper.deadlines;
    client->registry.metrics = &client->metrics;
    return client;
}

static void free_client(sneck_client *client)
{
    snk_watch_deinit(client);
    snk_callbacks_deinit(client);
    snk_events_deinit(client);
    snk_registry_deinit(&client->registry);
    snk_keeper_deinit(&client->keeper);
    snk_errands_deinit(&client->errands);
    snk_renewer_deinit(&client->renewer);
    snk_log_deinit(&client->log);
    snk_metrics_deinit(&client->metrics);
    snk_idpool_deinit(&client->ids);
    snk_forkmark_deinit(&client->fork);
    (void)pthread_mutex_destroy(&client->start_mutex);
    free(client);
}

static sneck_status open_client(sneck_client *client, const snk_url *url, const sneck_client_options *options,
                                sneck_error *error)
{
    sneck_status status = snk_settings_load(&client->settings, url, options, error);
    if (status != SNECK_OK)
        return status;
    client->registry.count_max = client->settings.max_locks;
    if (client->settings.watchdog_ms != SNECK_NEVER)
        snk_watch_want(client, (uint32_t)client->settings.watchdog_ms);
    return open_store(client, url, error);
}

sneck_status sneck_open(const char *url, const sneck_client_options *options, sneck_client **client_out,
                        sneck_error *error)
{
    if (client_out == NULL)
        return snk_fail(error, SNECK_INVALID, 0, "client_out is NULL: give the address of a sneck_client *");
    *client_out = NULL;
    snk_url parsed;
    sneck_status status = snk_url_parse(&parsed, snk_settings_url(url), error);
    if (status != SNECK_OK)
        return status;
    sneck_client *client = new_client();
    if (client == NULL) {
        snk_url_deinit(&parsed);
        return snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory for a client");
    }
    status = open_client(client, &parsed, options, error);
    snk_url_deinit(&parsed);
    if (status != SNECK_OK) {
        snk_callbacks_stop(client); /* what a store has to say about its failure is told */
        free_client(client);
        return status;
    }
    const char *words = strcmp(client->scheme, "memory") == 0 ? NULL : snk_settings_url(url);
    snk_waits_join(&client->neighbour, client, words, client->settings.prefix);
    *client_out = client;
    return snk_ok(error);
}

/* ---- Closing ---- */

void snk_client_ref(sneck_client *client)
{
    (void)atomic_fetch_add_explicit(&client->references, 1, memory_order_relaxed);
}

void snk_client_unref(sneck_client *client)
{
    if (atomic_fetch_sub_explicit(&client->references, 1, memory_order_acq_rel) != 1)
        return;
    if (!snk_forkmark_is_child(&client->fork)) {
        free_client(client);
        return;
    }
    /* What the parent's threads were changing at the moment of fork() must not be walked through. */
    snk_forkmark_deinit(&client->fork);
    free(client);
}

/*
 * Every wait is interrupted and every hold given back. Once the time is over the rest is left to its leases: the store
 * was slow, or there were very many.
 */
static void close_machines(sneck_client *client, int64_t until_ns)
{
    for (snk_entry *entry = snk_registry_first(&client->registry); entry != NULL;
         entry = snk_registry_next(&client->registry, entry)) {
        snk_turn turn;
        snk_event event = { .kind = SNK_EVENT_CLOSE };
        snk_turn_run(&turn, client, entry, &event);
        if (snk_now_ns() < until_ns)
            snk_perform(&turn, NULL);
    }
}

static void close_child(sneck_client *client)
{
    client->store->ops->abandon(client->store);
    if (client->events.fd >= 0)
        (void)close(client->events.fd);
    if (client->keeper.clock_fd >= 0)
        (void)close(client->keeper.clock_fd);
    snk_client_unref(client);
}

void sneck_close(sneck_client *client)
{
    if (client == NULL)
        return;
    if (snk_forkmark_is_child(&client->fork)) {
        close_child(client);
        return;
    }
    if (snk_callbacks_is_own_thread(client)) {
        snk_log_write(client, SNECK_LOG_ERROR, "close-refused", NULL);
        return;
    }
    int state = 0;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    int64_t until_ns = snk_time_add(snk_now_ns(), SNK_CLOSE_WAIT_NS);
    atomic_store_explicit(&client->is_closed, true, memory_order_release);
    snk_waits_leave(&client->neighbour);
    snk_registry_begin_close(&client->registry);
    close_machines(client, until_ns);
    snk_gate_close(&client->gate);
    (void)pthread_mutex_lock(&client->start_mutex);
    (void)pthread_mutex_unlock(&client->start_mutex);
    snk_watch_stop(client);
    snk_errands_stop(client);
    snk_renewer_stop(client, until_ns);
    snk_keeper_stop(client);
    snk_callbacks_stop(client);
    client->store->ops->close(client->store);
    client->store = NULL;
    snk_client_unref(client);
    (void)pthread_setcancelstate(state, NULL);
}
