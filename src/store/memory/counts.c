/* Counts and versions. */
#include "base/clock.h"
#include "base/error.h"
#include "store/memory/table.h"

static bool count_down(snk_memory_table *table, snk_memory_lock *lock, const snk_id *id)
{
    int64_t now_ns = snk_now_ns();
    if (lock->count == 0 || snk_memory_is_buried_locked(table, id, now_ns))
        return false;
    /* Without memory to remember that it did, it does not. */
    if (!snk_memory_bury_locked(table, id, snk_time_add(now_ns, SNK_TOMBSTONE_NS)))
        return false;
    lock->count--;
    return true;
}

static bool signal_waiters(snk_memory_lock *lock, int64_t value)
{
    int64_t waiting = (int64_t)lock->queue.count;
    lock->count = value < waiting ? value : waiting;
    return lock->count > 0;
}

/* True when something was changed. */
static bool change_locked(snk_memory_table *table, snk_memory_lock *lock, const snk_tally *tally)
{
    switch (tally->verb) {
    case SNK_TALLY_READ:
        return false;
    case SNK_TALLY_SET_IF_ZERO:
        if (lock->count > 0)
            return false;
        lock->count = tally->value;
        return true;
    case SNK_TALLY_SET:
        lock->count = tally->value;
        return true;
    case SNK_TALLY_ADD:
        lock->count = (lock->count < 0 ? 0 : lock->count) + tally->value;
        return true;
    case SNK_TALLY_DOWN:
        return count_down(table, lock, &tally->id);
    case SNK_TALLY_SIGNAL:
        return signal_waiters(lock, tally->value);
    }
    return false;
}

/* The thing, with the table locked; NULL: out of memory, and nothing is locked. */
static snk_memory_lock *find_and_lock(snk_memory *memory, snk_object object, const char *name, sneck_error *error)
{
    char full_name[SNK_FULL_NAME_SIZE];
    snk_memory_name(memory, object, name, full_name);
    (void)pthread_mutex_lock(&memory->table->mutex);
    snk_memory_lock *lock = snk_memory_find_locked(memory->table, full_name, true);
    if (lock != NULL)
        return lock;
    (void)pthread_mutex_unlock(&memory->table->mutex);
    (void)snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory");
    return NULL;
}

sneck_status snk_memory_tally(snk_store *store, const snk_tally *tally, snk_tallied *tallied_out, sneck_error *error)
{
    snk_memory *memory = SNK_CONTAINER(store, snk_memory, base);
    snk_memory_lock *lock = find_and_lock(memory, tally->object, tally->name, error);
    if (lock == NULL)
        return SNECK_NO_MEMORY;
    snk_memory_settle_locked(memory->table, lock, snk_now_ns());
    tallied_out->done = change_locked(memory->table, lock, tally);
    snk_memory_settle_locked(memory->table, lock, snk_now_ns());
    tallied_out->count = lock->count;
    tallied_out->used = snk_memory_used_locked(lock);
    (void)pthread_mutex_unlock(&memory->table->mutex);
    return snk_ok(error);
}

sneck_status snk_memory_version(snk_store *store, const char *name, const uint64_t *expected, uint64_t *version_out,
                                sneck_error *error)
{
    snk_memory *memory = SNK_CONTAINER(store, snk_memory, base);
    snk_memory_lock *lock = find_and_lock(memory, SNK_OBJECT_LOCK, name, error);
    if (lock == NULL)
        return SNECK_NO_MEMORY;
    bool moved = expected != NULL && lock->version != *expected;
    if (expected != NULL && !moved)
        lock->version = snk_tokens_next(lock->version, snk_wall_us(), 1).last;
    *version_out = lock->version;
    (void)pthread_mutex_unlock(&memory->table->mutex);
    if (moved)
        return snk_fail(error, SNECK_CONFLICT, 0, "the version of %.120s is %llu, not %llu", name,
                        (unsigned long long)*version_out, (unsigned long long)*expected);
    return snk_ok(error);
}
