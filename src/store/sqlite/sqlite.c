#include "store/sqlite/sqlite.h"

#include <stdlib.h>

#include "base/error.h"
#include "store/sqlite/forkgate.h"

static void fail_all(const snk_call *call, snk_answer_kind kind, const sneck_error *error)
{
    for (size_t i = 0; i < call->count; i++) {
        call->answers[i] = (snk_answer){ .kind = kind };
        call->answers[i].error = *error;
    }
}

static void do_call(snk_sqlite *store, snk_call *call)
{
    sneck_error error;
    if (snk_begin(store, true, &error) != SNECK_OK) {
        fail_all(call, SNK_ANSWER_FAILED, &error);
        return;
    }
    for (size_t i = 0; i < call->count && store->code == SQLITE_OK; i++) {
        call->answers[i] = (snk_answer){ .kind = SNK_ANSWER_FAILED };
        if (call->claims[i].grip.object == SNK_OBJECT_LOCK && call->claims[i].grip.mode == SNK_MODE_EXCLUSIVE)
            snk_do_claim(store, &call->claims[i], &call->answers[i]);
        else
            snk_do_crowd_claim(store, &call->claims[i], &call->answers[i]);
    }
    if (store->code == SQLITE_OK)
        snk_reap(store);
    bool uncertain = false;
    if (snk_end(store, &uncertain, &error) != SNECK_OK)
        fail_all(call, uncertain ? SNK_ANSWER_UNCERTAIN : SNK_ANSWER_FAILED, &error);
}

static void submit(snk_store *base, snk_call *call)
{
    do_call(snk_sqlite_of(base), call);
    call->done(call);
}

static void adopt_thread(snk_store *base)
{
    snk_sqlite *store = snk_sqlite_of(base);
    snk_sidecar *sidecar = snk_sidecar_ref(store);
    if (sidecar != NULL && !snk_slot_adopt(sidecar)) {
        snk_sidecar_unref(store, sidecar, false);
        sidecar = NULL;
    }
    pthread_mutex_lock(&store->gate);
    store->adopted = sidecar;
    pthread_mutex_unlock(&store->gate);
}

static void disown_thread(snk_store *base)
{
    snk_sqlite *store = snk_sqlite_of(base);
    pthread_mutex_lock(&store->gate);
    snk_sidecar *sidecar = store->adopted;
    store->adopted = NULL;
    pthread_mutex_unlock(&store->gate);
    if (sidecar == NULL)
        return;
    snk_slot_disown(sidecar);
    snk_sidecar_unref(store, sidecar, false);
}

static int liveness_fd(snk_store *base)
{
    snk_sqlite *store = snk_sqlite_of(base);
    pthread_mutex_lock(&store->gate);
    int fd = store->sidecar == NULL ? -1 : store->sidecar->fd;
    pthread_mutex_unlock(&store->gate);
    return fd;
}

static void close_store(snk_store *base)
{
    snk_sqlite *store = snk_sqlite_of(base);
    snk_forkgate_enter();
    snk_database_close(&store->database);
    snk_forkgate_leave();
    snk_sidecar_unref(store, store->sidecar, false);
    (void)pthread_mutex_destroy(&store->gate);
    (void)pthread_mutex_destroy(&store->mutex);
    free(store);
}

/*
 * The connection is left alone: closing it would roll back what the parent is doing, and SQLite's own mutexes may have
 * been locked when the process was forked. So may ours, which is why no lock is taken here.
 */
static void abandon(snk_store *base)
{
    snk_sqlite *store = snk_sqlite_of(base);
    if (store->adopted != store->sidecar)
        snk_sidecar_close(store->adopted, true);
    snk_sidecar_close(store->sidecar, true);
    free(store);
}

static const snk_store_ops sqlite_ops = {
    .scheme = "sqlite",
    .submit = submit,
    .wait = snk_sqlite_wait,
    .find_grant = snk_sqlite_find_grant,
    .inspect = snk_sqlite_inspect,
    .list = snk_sqlite_list,
    .break_hold = snk_sqlite_break,
    .tally = snk_sqlite_tally,
    .version = snk_sqlite_version,
    .adopt_thread = adopt_thread,
    .disown_thread = disown_thread,
    .liveness_fd = liveness_fd,
    .close = close_store,
    .abandon = abandon,
};

static snk_sqlite *new_store(const snk_store_config *config)
{
    snk_sqlite *store = calloc(1, sizeof *store);
    if (store == NULL)
        return NULL;
    store->base.ops = &sqlite_ops;
    store->identity = config->identity;
    store->retry_ns = config->retry_ns > 0 ? config->retry_ns : SNK_RETRY_MS_DEFAULT * SNK_NS_PER_MS;
    store->log = config->log;
    store->log_context = config->log_context;
    (void)snk_copy_text(store->prefix, sizeof store->prefix, config->prefix);
    if (pthread_mutex_init(&store->mutex, NULL) != 0 || pthread_mutex_init(&store->gate, NULL) != 0) {
        free(store);
        return NULL;
    }
    return store;
}

sneck_status snk_sqlite_open(const snk_store_config *config, snk_store **store_out, sneck_error *error)
{
    *store_out = NULL;
    snk_sqlite *store = new_store(config);
    if (store == NULL)
        return snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory");
    sneck_status status = snk_place_init(&store->place, config->url, error);
    if (status == SNECK_OK) {
        pthread_mutex_lock(&store->mutex);
        snk_forkgate_enter();
        status = snk_attach_locked(store, error);
        snk_forkgate_leave();
        pthread_mutex_unlock(&store->mutex);
    }
    if (status != SNECK_OK) {
        close_store(&store->base);
        return status;
    }
    store->base.traits = (snk_store_traits){
        .tokens = store->place.durable ? SNK_TOKEN_DURABLE : SNK_TOKEN_TIME_FLOORED,
        .token_blocks = true,
        .pushes_wakeups = true,
        .modes = SNK_MODES_ALL,
        .keeps_versions = true,
    };
    *store_out = &store->base;
    return snk_ok(error);
}
