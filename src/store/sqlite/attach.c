#include <limits.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/futex.h"
#include "store/sqlite/settle.h"

#define OPENING_BUSY_MS 20

snk_sidecar *snk_sidecar_ref(snk_sqlite *store)
{
    pthread_mutex_lock(&store->gate);
    snk_sidecar *sidecar = store->sidecar;
    if (sidecar != NULL)
        sidecar->references++;
    pthread_mutex_unlock(&store->gate);
    return sidecar;
}

void snk_sidecar_unref(snk_sqlite *store, snk_sidecar *sidecar, bool abandon)
{
    if (sidecar == NULL)
        return;
    pthread_mutex_lock(&store->gate);
    bool last = --sidecar->references == 0;
    pthread_mutex_unlock(&store->gate);
    if (!last)
        return;
    int cancel_state = PTHREAD_CANCEL_ENABLE;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state); /* close() is a point of cancellation */
    snk_sidecar_close(sidecar, abandon);
    (void)pthread_setcancelstate(cancel_state, NULL);
}

static void set_sidecar(snk_sqlite *store, snk_sidecar *sidecar)
{
    pthread_mutex_lock(&store->gate);
    store->sidecar = sidecar;
    pthread_mutex_unlock(&store->gate);
}

/* Takes the opening lock, with a sidecar that may be new. */
static sneck_status open_sidecar(snk_sqlite *store, snk_sidecar **sidecar_out, sneck_error *error)
{
    if (store->sidecar != NULL) {
        *sidecar_out = store->sidecar;
        return snk_sidecar_reopen(store->sidecar, &store->place, error);
    }
    sneck_status status = snk_sidecar_open(&store->place, sidecar_out, error);
    if (status != SNECK_OK)
        return status;
    status = snk_sidecar_take_slot(*sidecar_out, &store->identity.client, error);
    if (status != SNECK_OK) {
        snk_sidecar_close(*sidecar_out, false);
        *sidecar_out = NULL;
    }
    return status;
}

/*
 * First as it comes, which works even while a process is stopped in a transaction. Between writers that wait for their
 * disk SQLite's own lock is so rarely free that this may fail for ever: then in turn with them.
 */
static sneck_status open_database(snk_sqlite *store, snk_sidecar *sidecar, sneck_error *error)
{
    sneck_error first;
    sneck_status status = snk_database_open(&store->database, &store->place, OPENING_BUSY_MS, &first);
    if (status == SNECK_OK || (first.cause & 0xFF) != SQLITE_BUSY)
        return status == SNECK_OK ? snk_ok(error) : snk_fail_as(error, &first);
    bool has_turn = snk_sidecar_lock_writer(sidecar, snk_clock_read_ns(CLOCK_MONOTONIC) + SNK_TURN_WAIT_NS);
    status = snk_database_open(&store->database, &store->place, SNK_BUSY_MS, error);
    if (has_turn)
        snk_sidecar_unlock_writer(sidecar);
    return status;
}

sneck_status snk_attach_locked(snk_sqlite *store, sneck_error *error)
{
    if (store->sidecar != NULL && store->database.connection != NULL)
        return SNECK_OK;
    sneck_status status = snk_place_prepare(&store->place, error);
    snk_sidecar *sidecar = NULL;
    if (status == SNECK_OK)
        status = open_sidecar(store, &sidecar, error);
    if (status != SNECK_OK)
        return status;
    if (store->database.connection == NULL)
        status = open_database(store, sidecar, error);
    snk_sidecar_opened(sidecar);
    if (store->sidecar == NULL) {
        for (size_t i = 0; i < SNK_SIDECAR_WORDS; i++)
            atomic_store(&store->words_seen[i], atomic_load(&snk_sidecar_slot(sidecar)->words[i]));
        set_sidecar(store, sidecar);
    }
    return status;
}

/* Ends the sleep of every thread of this client: it sleeps in a file that nobody else looks at any more. */
static void wake_own(snk_sidecar *sidecar)
{
    snk_slot *slot = snk_sidecar_slot(sidecar);
    for (size_t i = 0; i < SNK_SIDECAR_WORDS; i++) {
        (void)atomic_fetch_add(&slot->words[i], 1);
        snk_futex_wake(&slot->words[i], INT_MAX, true);
    }
}

static void log_replaced(const snk_sqlite *store, const char *path)
{
    char text[256];
    if (store->log == NULL)
        return;
    (void)snprintf(text, sizeof text, "event=file-replaced path=\"%.200s\"", path);
    store->log(store->log_context, SNECK_LOG_WARNING, text);
}

void snk_detach_replaced_locked(snk_sqlite *store)
{
    snk_sidecar *sidecar = store->sidecar;
    if (store->database.connection != NULL && !snk_file_is(store->place.database, &store->database.id)) {
        snk_database_close(&store->database);
        store->forget_own = true;
        log_replaced(store, store->place.database);
        wake_own(sidecar);
    }
    if (!snk_file_is(store->place.sidecar, &sidecar->id)) {
        set_sidecar(store, NULL);
        store->stamp_own = true;
        log_replaced(store, store->place.sidecar);
        wake_own(sidecar);
        snk_sidecar_unref(store, sidecar, false);
    }
}

/* The lock of the next claim of this client becomes store.resource. */
static bool next_own(snk_sqlite *store, int64_t *place_out, bool *found_out)
{
    sqlite3_stmt *statement = snk_prepare_bare(store, SNK_SQL_OWN_NEXT);
    if (statement == NULL)
        return false;
    (void)sqlite3_bind_blob(statement, 1, store->identity.client.bytes, SNK_ID_BYTES, SQLITE_STATIC);
    if (!snk_step(store, statement, found_out))
        return false;
    if (*found_out) {
        (void)snk_copy_text(store->resource, sizeof store->resource, snk_column_text(statement, 0));
        *place_out = sqlite3_column_int64(statement, 1);
        (void)sqlite3_reset(statement);
    }
    return true;
}

/*
 * A file that was put in place of another is not the truth about claims made in the other, even if it is a copy of it:
 * somebody may have got the lock in between.
 */
static bool forget_own(snk_sqlite *store)
{
    bool found = false;
    int64_t place = 0;
    while (next_own(store, &place, &found) && found) {
        snk_lock_row row;
        if (!snk_lock_read(store, &row) || !snk_claim_remove(store, &row, place) || !snk_settle(store, &row) ||
            !snk_lock_store(store, &row))
            return false;
    }
    return store->code == SQLITE_OK;
}

/* The database is the same, so claims are as good as they were; only where to find their client has changed. */
static void stamp_own(snk_sqlite *store)
{
    sqlite3_stmt *statement = snk_prepare_bare(store, SNK_SQL_OWN_STAMP);
    if (statement == NULL)
        return;
    const snk_stamp stamp = snk_own_stamp(store);
    (void)sqlite3_bind_blob(statement, 1, store->identity.client.bytes, SNK_ID_BYTES, SQLITE_STATIC);
    (void)sqlite3_bind_blob(statement, 2, &stamp, sizeof stamp, SQLITE_STATIC);
    (void)snk_run(store, statement);
}

void snk_settle_own_locked(snk_sqlite *store)
{
    if (store->forget_own && !forget_own(store))
        return;
    if (store->stamp_own)
        stamp_own(store);
}
