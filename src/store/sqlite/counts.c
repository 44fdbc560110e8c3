/* Counts and versions. */
#include "base/clock.h"
#include "base/error.h"
#include "store/sqlite/crowd.h"
#include "store/tokens.h"

static bool count_down(snk_sqlite *store, snk_lock_row *row, const snk_id *id, bool *done_out)
{
    bool repeated = false;
    if (row->count == 0 || (row->tombstones_until_ns > store->now_ns && !snk_tombstone_find(store, id, &repeated)))
        return store->code == SQLITE_OK;
    if (repeated)
        return true;
    *done_out = true;
    return snk_tombstone_add(store, row, id, snk_time_add(store->now_ns, SNK_TOMBSTONE_NS)) &&
           snk_lock_set_count(store, row, row->count - 1);
}

static bool signal_waiters(snk_sqlite *store, snk_lock_row *row, int64_t value, bool *done_out)
{
    int64_t waiting = 0;
    if (!snk_crowd_waiting(store, &waiting))
        return false;
    int64_t count = value < waiting ? value : waiting;
    *done_out = count > 0;
    return count == 0 || snk_lock_set_count(store, row, count);
}

static bool change(snk_sqlite *store, snk_lock_row *row, const snk_tally *tally, bool *done_out)
{
    switch (tally->verb) {
    case SNK_TALLY_READ:
        return true;
    case SNK_TALLY_SET_IF_ZERO:
        *done_out = row->count <= 0;
        return !*done_out || snk_lock_set_count(store, row, tally->value);
    case SNK_TALLY_SET:
        *done_out = true;
        return snk_lock_set_count(store, row, tally->value);
    case SNK_TALLY_ADD:
        *done_out = true;
        return snk_lock_set_count(store, row, (row->count < 0 ? 0 : row->count) + tally->value);
    case SNK_TALLY_DOWN:
        return count_down(store, row, &tally->id, done_out);
    case SNK_TALLY_SIGNAL:
        return signal_waiters(store, row, tally->value, done_out);
    }
    return false;
}

/* In a transaction: settles, changes, and settles again, because a count may be what somebody waits for. */
static bool do_tally(snk_sqlite *store, const snk_tally *tally, snk_tallied *tallied)
{
    snk_lock_row row;
    *tallied = (snk_tallied){ .count = tally->object == SNK_OBJECT_LOCK ? -1 : 0 };
    if (!snk_lock_read(store, &row))
        return false;
    if (!row.found && tally->verb == SNK_TALLY_READ)
        return true;
    if ((!row.found && !snk_lock_add(store, &row)) || !snk_crowd_settle(store, &row) ||
        !change(store, &row, tally, &tallied->done) || !snk_crowd_settle(store, &row))
        return false;
    tallied->count = row.count;
    return snk_crowd_used(store, &row, &tallied->used);
}

/* Ends the transaction. What is not known to have happened is SNECK_UNKNOWN. */
static sneck_status end(snk_sqlite *store, bool done, sneck_error *error)
{
    if (!done && store->code == SQLITE_OK)
        store->code = SQLITE_INTERNAL;
    bool uncertain = false;
    sneck_status status = snk_end(store, &uncertain, error);
    if (!uncertain)
        return status == SNECK_OK ? snk_ok(error) : status;
    if (error != NULL)
        error->status = SNECK_UNKNOWN;
    return SNECK_UNKNOWN;
}

sneck_status snk_sqlite_tally(snk_store *base, const snk_tally *tally, snk_tallied *tallied_out, sneck_error *error)
{
    snk_sqlite *store = snk_sqlite_of(base);
    sneck_status status = snk_begin(store, true, error);
    if (status != SNECK_OK)
        return status;
    snk_set_resource(store, tally->object, tally->name);
    return end(store, do_tally(store, tally, tallied_out), error);
}

/* A file that is kept counts; one that may be lost starts at the clock, so that no version comes twice. */
static uint64_t next_version(const snk_sqlite *store, uint64_t version)
{
    return store->place.durable ? version + 1 : snk_tokens_next(version, store->wall_us, 1).last;
}

static bool do_version(snk_sqlite *store, const uint64_t *expected, uint64_t *version_out, bool *moved_out)
{
    snk_lock_row row;
    if (!snk_lock_read(store, &row))
        return false;
    *version_out = row.version;
    *moved_out = expected != NULL && *expected != row.version;
    if (expected == NULL || *moved_out)
        return true;
    if ((!row.found && !snk_lock_add(store, &row)) ||
        !snk_lock_set_version(store, &row, next_version(store, row.version)))
        return false;
    *version_out = row.version;
    return true;
}

sneck_status snk_sqlite_version(snk_store *base, const char *name, const uint64_t *expected, uint64_t *version_out,
                                sneck_error *error)
{
    snk_sqlite *store = snk_sqlite_of(base);
    sneck_status status = snk_begin(store, expected != NULL, error);
    if (status != SNECK_OK)
        return status;
    snk_set_resource(store, SNK_OBJECT_LOCK, name);
    bool moved = false;
    bool done = do_version(store, expected, version_out, &moved);
    status = end(store, done, error);
    if (status == SNECK_OK && moved)
        status = snk_fail(error, SNECK_CONFLICT, 0, "the version of %.120s is %llu, not %llu", name,
                          (unsigned long long)*version_out, (unsigned long long)*expected);
    return status;
}
