#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/futex.h"
#include "base/mutex.h"
#include "store/sqlite/forkgate.h"
#include "store/sqlite/grants.h"
#include "store/sqlite/sqlite.h"

/* How long a writer mutex that did not come in time is only tried. */
#define DISTRUST_NS (2 * SNK_NS_PER_S)
/* How often to look whether the sidecar was replaced. */
#define SIDECAR_LOOK_NS (10 * SNK_NS_PER_MS)
#define REPLACED_TRIES 5

void snk_set_resource(snk_sqlite *store, snk_object object, const char *name)
{
    (void)snprintf(store->resource, sizeof store->resource, "%s%s%s", snk_object_mark(object), store->prefix, name);
}

static void add_wake(snk_sqlite *store, const snk_stamp *stamp, const snk_wake *wake)
{
    if (stamp->generation != store->sidecar->generation || stamp->slot >= SNK_SIDECAR_SLOTS)
        return;
    store->tells_all = store->tells_all || store->wake_count == SNK_WAKES_MAX;
    if (store->tells_all)
        return;
    store->wakes[store->wake_count] = *wake;
    store->wakes[store->wake_count++].slot = stamp->slot;
}

void snk_add_wake(snk_sqlite *store, const snk_stamp *stamp, const snk_id *claim)
{
    add_wake(store, stamp, &(snk_wake){ .grant = { .claim = *claim } });
}

void snk_add_grant(snk_sqlite *store, const snk_stamp *stamp, const snk_grant *grant)
{
    add_wake(store, stamp, &(snk_wake){ .is_grant = true, .grant = *grant });
}

static snk_slot *slot_of(const snk_sqlite *store, const snk_wake *wake)
{
    return &store->sidecar->file->slots[wake->slot];
}

/* Only who has the writer mutex may write notes. Without one the claim asks, and finds the same. */
static void note_grants(snk_sqlite *store)
{
    for (size_t i = 0; i < store->wake_count && store->has_writer; i++)
        if (store->wakes[i].is_grant)
            snk_grant_write(slot_of(store, &store->wakes[i]), &store->wakes[i].grant);
}

static void deliver_wakes(snk_sqlite *store)
{
    for (size_t i = 0; i < store->wake_count; i++) {
        const snk_wake *wake = &store->wakes[i];
        _Atomic uint32_t *word = &slot_of(store, wake)->words[snk_word_of(&wake->grant.claim)];
        (void)atomic_fetch_add(word, 1);
        snk_futex_wake(word, INT_MAX, true);
    }
    if (store->tells_all)
        snk_sidecar_tell_all(store->sidecar);
}

static void take_turn(snk_sqlite *store, int64_t limit_ns)
{
    int64_t now_ns = snk_now_ns();
    if (now_ns < store->distrust_until_ns)
        limit_ns = 0;
    store->has_writer = snk_sidecar_lock_writer(store->sidecar, limit_ns);
    if (!store->has_writer && limit_ns != 0)
        store->distrust_until_ns = now_ns + DISTRUST_NS;
}

static void end_turn(snk_sqlite *store)
{
    if (store->has_writer)
        snk_sidecar_unlock_writer(store->sidecar);
    store->has_writer = false;
}

static int run(snk_sqlite *store, snk_statement which)
{
    return snk_database_run(&store->database, snk_database_statement(&store->database, which));
}

/* Never leaves a transaction open: a connection that cannot roll back is closed, and opened again by the next call. */
static void roll_back(snk_sqlite *store)
{
    if (store->database.connection == NULL || sqlite3_get_autocommit(store->database.connection) != 0)
        return;
    (void)run(store, SNK_SQL_ROLLBACK);
    if (sqlite3_get_autocommit(store->database.connection) == 0)
        snk_database_close(&store->database);
}

/*
 * Whether both files are those at their paths: otherwise others use other files by now. The database is looked at each
 * time; the sidecar only now and then, because claims stay sound without it: who is in another one counts as alive.
 */
static bool files_are_current(snk_sqlite *store)
{
    if (!snk_file_is(store->place.database, &store->database.id))
        return false;
    if (store->now_ns < store->sidecar_look_ns)
        return true;
    store->sidecar_look_ns = store->now_ns + SIDECAR_LOOK_NS;
    return snk_file_is(store->place.sidecar, &store->sidecar->id);
}

static sneck_status begin_once(snk_sqlite *store, bool writes, int64_t limit_ns, sneck_error *error)
{
    take_turn(store, limit_ns);
    /* Before the transaction: news that comes after it changes the words, and no wait for it sleeps over that. */
    for (size_t i = 0; i < SNK_SIDECAR_WORDS; i++)
        store->words_before[i] =
            atomic_load_explicit(&snk_sidecar_slot(store->sidecar)->words[i], memory_order_acquire);
    store->deaths_before = atomic_load(&store->deaths);
    int code = run(store, writes ? SNK_SQL_BEGIN_WRITE : SNK_SQL_BEGIN_READ);
    if (code != SQLITE_OK) {
        sneck_status status = snk_database_fail(&store->database, &store->place, code, error);
        roll_back(store);
        end_turn(store);
        return status;
    }
    store->code = SQLITE_OK;
    store->writes = writes;
    store->wake_count = 0;
    store->tells_strangers = false;
    store->tells_all = false;
    store->now_ns = snk_now_ns();
    store->wall_us = snk_wall_us();
    return SNECK_OK;
}

static sneck_status begin_locked(snk_sqlite *store, bool writes, int64_t limit_ns, sneck_error *error)
{
    for (int try = 0; try < REPLACED_TRIES; try++) {
        sneck_status status = snk_attach_locked(store, error);
        if (status != SNECK_OK)
            return status;
        status = begin_once(store, writes, limit_ns, error);
        /* Also after an error: SQLite itself stumbles over a file that is gone. */
        if (store->database.connection == NULL || files_are_current(store)) {
            if (status == SNECK_OK && writes && (store->forget_own || store->stamp_own))
                snk_settle_own_locked(store);
            return status;
        }
        roll_back(store);
        end_turn(store);
        snk_detach_replaced_locked(store);
    }
    return snk_fail(error, SNECK_UNAVAILABLE, 0, "%.150s is replaced again and again", store->place.database);
}

sneck_status snk_begin(snk_sqlite *store, bool writes, sneck_error *error)
{
    int64_t limit_ns = snk_clock_read_ns(CLOCK_MONOTONIC) + SNK_TURN_WAIT_NS;
    if (snk_mutex_lock_until(&store->mutex, limit_ns) != 0)
        return snk_fail(error, SNECK_UNAVAILABLE, ETIMEDOUT, "the lock file is busy: other threads wait for it too");
    snk_forkgate_enter();
    sneck_status status = begin_locked(store, writes, limit_ns, error);
    if (status != SNECK_OK) {
        snk_forkgate_leave();
        pthread_mutex_unlock(&store->mutex);
    }
    return status;
}

/*
 * A failed COMMIT leaves the transaction open (BUSY) or has rolled it back (FULL): then it did not happen. After any
 * other error the journal may or may not be gone, so nobody knows.
 */
static bool is_uncertain(int code)
{
    return (code & 0xFF) != SQLITE_BUSY && (code & 0xFF) != SQLITE_FULL && (code & 0xFF) != SQLITE_NOMEM;
}

sneck_status snk_end(snk_sqlite *store, bool *uncertain_out, sneck_error *error)
{
    bool uncertain = false;
    bool committed = false;
    if (store->code == SQLITE_OK) {
        store->code = run(store, SNK_SQL_COMMIT);
        committed = store->code == SQLITE_OK;
        uncertain = !committed && is_uncertain(store->code);
    }
    sneck_status status = SNECK_OK;
    if (store->code != SQLITE_OK)
        status = snk_database_fail(&store->database, &store->place, store->code, error);
    roll_back(store);
    if (committed)
        note_grants(store);
    /* Whoever has its turn after one that died in it tells everybody; who is next in a line looks anyhow. */
    bool tells_inside = store->tells_strangers;
    if (committed && tells_inside)
        deliver_wakes(store);
    end_turn(store);
    if (committed && !tells_inside)
        deliver_wakes(store);
    if (committed && store->writes) {
        store->forget_own = false;
        store->stamp_own = false;
    }
    if (uncertain_out != NULL)
        *uncertain_out = uncertain;
    snk_forkgate_leave();
    pthread_mutex_unlock(&store->mutex);
    return status;
}
