/*
 * Rows of locks that nobody uses are removed a few at a time, in passing, so that a program with ever new names does not
 * fill the disk. The highest token of what was removed becomes the floor of all new rows.
 */
#include "base/clock.h"
#include "base/error.h"
#include "store/sqlite/rows.h"

#define EACH_TRANSACTIONS 256
#define LOOKS 32
#define UNUSED_NS (600 * SNK_NS_PER_S)

/* Looks at the row after store.reap_after. `*token_out` is 0 when it stays. */
static bool look_at_next(snk_sqlite *store, uint64_t *token_out, bool *found_out)
{
    *token_out = 0;
    sqlite3_stmt *statement = snk_prepare(store, SNK_SQL_REAP_LOOK);
    if (statement == NULL)
        return false;
    (void)sqlite3_bind_text(statement, 1, store->reap_after, -1, SQLITE_STATIC);
    (void)sqlite3_bind_int64(statement, 2, store->now_ns - UNUSED_NS);
    (void)sqlite3_bind_int64(statement, 3, store->now_ns);
    (void)sqlite3_bind_int64(statement, 4, store->wall_us / 1000 - (int64_t)SNK_INCIDENT_AGE_S * 1000);
    if (!snk_step(store, statement, found_out))
        return false;
    if (*found_out) {
        (void)snk_copy_text(store->resource, sizeof store->resource, snk_column_text(statement, 0));
        if (sqlite3_column_int(statement, 2) != 0)
            *token_out = (uint64_t)sqlite3_column_int64(statement, 1);
        (void)sqlite3_reset(statement);
    }
    (void)snk_copy_text(store->reap_after, sizeof store->reap_after, *found_out ? store->resource : "");
    return true;
}

static bool remove_row(snk_sqlite *store)
{
    return snk_run(store, snk_prepare(store, SNK_SQL_REAP_REMOVE)) &&
           snk_run(store, snk_prepare(store, SNK_SQL_REAP_INCIDENTS)) &&
           snk_run(store, snk_prepare(store, SNK_SQL_REAP_TOMBSTONES));
}

static void raise_floor(snk_sqlite *store, uint64_t token)
{
    sqlite3_stmt *statement = snk_prepare_bare(store, SNK_SQL_FLOOR_RAISE);
    if (statement != NULL)
        (void)sqlite3_bind_int64(statement, 1, (sqlite3_int64)token);
    (void)snk_run(store, statement);
}

void snk_reap(snk_sqlite *store)
{
    if (store->reap_countdown-- > 0)
        return;
    store->reap_countdown = EACH_TRANSACTIONS;
    uint64_t highest = 0;
    bool found = true;
    for (int i = 0; i < LOOKS && found; i++) {
        uint64_t token = 0;
        if (!look_at_next(store, &token, &found))
            return;
        if (found && token != 0 && !remove_row(store))
            return;
        highest = token > highest ? token : highest;
    }
    if (highest != 0)
        raise_floor(store, highest);
}
