/* The public calls on handles: arguments are checked here, once for every kind of handle. */
#include "client/lock.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/name.h"

/* ---- Making and freeing ---- */

sneck_status snk_lock_check(const sneck_lock *lock, sneck_error *error)
{
    if (lock == NULL)
        return snk_fail(error, SNECK_INVALID, 0, "the lock is NULL: make it with sneck_mutex first");
    return lock->client != NULL ? snk_client_check(lock->client, error) : lock->ops->check(lock, false, error);
}

const char *snk_lock_name(const sneck_lock *lock)
{
    return lock->entry != NULL ? lock->entry->name : snk_readers_name(lock);
}

/* Checks what every maker of a handle is given, and fills the defaults in. */
static sneck_status check_new(sneck_client *client, const char *name, const sneck_lock_options *options,
                              sneck_lock_options *chosen, sneck_lock **lock_out, sneck_error *error)
{
    if (lock_out == NULL)
        return snk_fail(error, SNECK_INVALID, 0, "lock_out is NULL: give the address of a sneck_lock *");
    *lock_out = NULL;
    sneck_status status = snk_client_check(client, error);
    if (status == SNECK_OK)
        status = snk_name_check(name, error);
    if (status == SNECK_OK)
        status = snk_lock_options_load(chosen, options, &client->settings, error);
    if (status == SNECK_OK && chosen->on_event != NULL)
        status = snk_callbacks_start(client, error);
    return status;
}

static const snk_entry_key exclusive = { .object = SNK_OBJECT_LOCK, .mode = SNK_MODE_EXCLUSIVE };

sneck_status sneck_mutex(sneck_client *client, const char *name, const sneck_lock_options *options,
                         sneck_lock **lock_out, sneck_error *error)
{
    sneck_lock_options chosen = SNECK_LOCK_OPTIONS_INIT;
    sneck_status status = check_new(client, name, options, &chosen, lock_out, error);
    return status == SNECK_OK ? snk_single_new(client, name, &exclusive, &chosen, lock_out, error) : status;
}

sneck_status sneck_write_lock(sneck_client *client, const char *name, const sneck_lock_options *options,
                              sneck_lock **lock_out, sneck_error *error)
{
    sneck_lock_options chosen = SNECK_LOCK_OPTIONS_INIT;
    sneck_status status = check_new(client, name, options, &chosen, lock_out, error);
    if (status == SNECK_OK)
        status = snk_mode_check(client, SNK_MODE_SHARED, error);
    if (status == SNECK_OK)
        status = snk_single_new(client, name, &exclusive, &chosen, lock_out, error);
    if (status == SNECK_OK)
        (*lock_out)->is_write_side = true;
    return status;
}

sneck_status sneck_read_lock(sneck_client *client, const char *name, const sneck_lock_options *options,
                             sneck_lock **lock_out, sneck_error *error)
{
    sneck_lock_options chosen = SNECK_LOCK_OPTIONS_INIT;
    sneck_status status = check_new(client, name, options, &chosen, lock_out, error);
    if (status == SNECK_OK)
        status = snk_mode_check(client, SNK_MODE_SHARED, error);
    if (status != SNECK_OK)
        return status;
    if (chosen.owner == SNECK_OWNER_THREAD)
        return snk_readers_new(client, name, &chosen, lock_out, error);
    snk_entry_key key = { .mode = SNK_MODE_SHARED, .owner = snk_single_draw_owner(client) };
    return snk_single_new(client, name, &key, &chosen, lock_out, error);
}

void sneck_lock_free(sneck_lock *lock)
{
    if (lock == NULL)
        return;
    sneck_client *client = lock->client;
    lock->ops->free(lock);
    if (client != NULL)
        snk_client_unref(client);
}

/* ---- Acquire, release ---- */

static sneck_status check_acquire(const sneck_lock *lock, int64_t wait_ms, sneck_error *error)
{
    sneck_status status = snk_lock_check(lock, error);
    return status == SNECK_OK ? snk_wait_check(wait_ms, error) : status;
}

sneck_status sneck_acquire(sneck_lock *lock, int64_t wait_ms, sneck_error *error)
{
    sneck_status status = check_acquire(lock, wait_ms, error);
    return status == SNECK_OK ? lock->ops->acquire(lock, &(snk_asking){ .wait_ms = wait_ms }, error) : status;
}

sneck_status sneck_acquire_for(sneck_lock *lock, int64_t wait_ms, int64_t lease_ms, sneck_error *error)
{
    sneck_status status = check_acquire(lock, wait_ms, error);
    if (status == SNECK_OK)
        status = snk_lease_check(lease_ms, error);
    snk_asking asking = { .wait_ms = wait_ms, .lease_ms = lease_ms };
    return status == SNECK_OK ? lock->ops->acquire(lock, &asking, error) : status;
}

sneck_status snk_lock_check_release(const sneck_lock *lock, sneck_error *error)
{
    if (lock != NULL && lock->client == NULL)
        return lock->ops->check(lock, true, error);
    if (lock != NULL && snk_forkmark_is_child(&lock->client->fork))
        return snk_fail(error, SNECK_NOT_OWNER, 0, "a child of fork() owns nothing; open a client of its own");
    return snk_lock_check(lock, error);
}

sneck_status sneck_release(sneck_lock *lock, sneck_error *error)
{
    sneck_status status = snk_lock_check_release(lock, error);
    return status == SNECK_OK ? lock->ops->release(lock, error) : status;
}

sneck_status sneck_extend(sneck_lock *lock, int64_t lease_ms, sneck_error *error)
{
    sneck_status status = snk_lock_check(lock, error);
    if (status == SNECK_OK)
        status = snk_lease_check(lease_ms, error);
    return status == SNECK_OK ? lock->ops->extend(lock, lease_ms, error) : status;
}

void sneck_interrupt(sneck_lock *lock)
{
    if (snk_lock_check(lock, NULL) == SNECK_OK)
        lock->ops->interrupt(lock);
}

/* ---- Looking ---- */

static snk_possession look(const sneck_lock *lock)
{
    if (snk_lock_check(lock, NULL) != SNECK_OK)
        return (snk_possession){ 0 };
    return lock->ops->look(lock);
}

bool sneck_is_held(const sneck_lock *lock)
{
    return look(lock).levels > 0;
}

unsigned sneck_hold_count(const sneck_lock *lock)
{
    return look(lock).levels;
}

uint64_t sneck_token(const sneck_lock *lock)
{
    return look(lock).token;
}

int64_t sneck_remaining_ms(const sneck_lock *lock)
{
    return look(lock).remaining_ns / SNK_NS_PER_MS;
}

int sneck_lost_fd(sneck_lock *lock)
{
    return snk_lock_check(lock, NULL) == SNECK_OK ? lock->ops->lost_fd(lock) : -1;
}
