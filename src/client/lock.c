#include "client/lock.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/name.h"
#include "client/perform.h"
#include "client/wait.h"

/* ---- Handles ---- */

sneck_status snk_lock_check(const sneck_lock *lock, sneck_error *error)
{
    if (lock == NULL)
        return snk_fail(error, SNECK_INVALID, 0, "the lock is NULL: make it with sneck_mutex first");
    return snk_client_check(lock->client, error);
}

static sneck_status check_new(sneck_client *client, const char *name, sneck_lock **lock_out, sneck_error *error)
{
    if (lock_out == NULL)
        return snk_fail(error, SNECK_INVALID, 0, "lock_out is NULL: give the address of a sneck_lock *");
    *lock_out = NULL;
    sneck_status status = snk_client_check(client, error);
    return status == SNECK_OK ? snk_name_check(name, error) : status;
}

/* What a handle has of its own; NULL when out of memory. */
static sneck_lock *new_lock(sneck_client *client, const sneck_lock_options *options)
{
    sneck_lock *lock = calloc(1, sizeof *lock);
    if (lock == NULL)
        return NULL;
    lock->terms = snk_lock_terms(options);
    lock->is_reentrant = options->reentrant;
    if (options->owner == SNECK_OWNER_HANDLE)
        lock->owner =
            SNK_OWNER_IS_HANDLE | (atomic_fetch_add_explicit(&client->handle_count, 1, memory_order_relaxed) + 1);
    bool has_why = options->why != NULL && options->why[0] != '\0';
    if (has_why)
        lock->why = snk_why_new(options->why);
    if (options->on_event != NULL)
        lock->ear = snk_ear_new();
    if ((has_why && lock->why == NULL) || (options->on_event != NULL && lock->ear == NULL)) {
        snk_why_unref(lock->why);
        snk_ear_free(lock->ear);
        free(lock);
        return NULL;
    }
    return lock;
}

static void listen_to_events(sneck_lock *lock, const sneck_lock_options *options)
{
    snk_ear *ear = lock->ear;
    ear->on_event = options->on_event;
    ear->event_context = options->event_context;
    ear->heard = snk_events_number(lock->client);
    (void)pthread_mutex_lock(&lock->entry->mutex);
    snk_ear_attach_locked(lock->entry, ear);
    (void)pthread_mutex_unlock(&lock->entry->mutex);
}

/* A lock may want the watchdog in a client that runs without one. */
static sneck_status watch(sneck_client *client, const sneck_lock_options *options, sneck_error *error)
{
    if (options->watchdog_ms == SNECK_NEVER)
        return SNECK_OK;
    snk_watch_want(client, (uint32_t)options->watchdog_ms);
    if (client->settings.watchdog_ms != SNECK_NEVER || !atomic_load(&client->is_started))
        return SNECK_OK;
    (void)pthread_mutex_lock(&client->start_mutex);
    sneck_status status = snk_watch_start(client, error);
    (void)pthread_mutex_unlock(&client->start_mutex);
    return status;
}

sneck_status sneck_mutex(sneck_client *client, const char *name, const sneck_lock_options *options,
                         sneck_lock **lock_out, sneck_error *error)
{
    sneck_lock_options chosen;
    sneck_status status = check_new(client, name, lock_out, error);
    if (status == SNECK_OK)
        status = snk_lock_options_load(&chosen, options, &client->settings, error);
    if (status == SNECK_OK && chosen.on_event != NULL)
        status = snk_events_start(client, error);
    if (status != SNECK_OK)
        return status;
    status = watch(client, &chosen, error);
    if (status != SNECK_OK)
        return status;
    sneck_lock *lock = new_lock(client, &chosen);
    if (lock == NULL)
        return snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory for another handle");
    status = snk_registry_open(&client->registry, name, &lock->entry, error);
    if (status != SNECK_OK) {
        snk_why_unref(lock->why);
        snk_ear_free(lock->ear);
        free(lock);
        return status;
    }
    lock->client = client;
    snk_client_ref(client);
    if (lock->ear != NULL)
        listen_to_events(lock, &chosen);
    *lock_out = lock;
    return snk_ok(error);
}

/* One level less; the result of the call to the store, if there was one. */
static sneck_status release(sneck_lock *lock, uint64_t owner, sneck_error *error)
{
    sneck_client *client = lock->client;
    snk_entry *entry = lock->entry;
    snk_event event = { .kind = SNK_EVENT_RELEASE, .owner = owner };
    snk_turn turn;
    snk_turn_init(&turn, client, entry);
    (void)pthread_mutex_lock(&entry->mutex);
    snk_turn_take_locked(&turn, &event);
    bool sends = turn.actions.send_count > 0 && snk_gate_enter(&client->gate);
    (void)pthread_mutex_unlock(&entry->mutex);
    snk_turn_end(&turn);
    if (lock->owner == 0 && turn.actions.release.status != SNECK_NOT_OWNER)
        snk_presence_drop_level();
    if (!sends)
        return snk_fail_as(error, &turn.actions.release);
    sneck_error result = turn.actions.release;
    snk_perform(&turn, &result);
    snk_gate_leave(&client->gate);
    return snk_fail_as(error, &result);
}

/* Gives back what only this handle could give back. */
static void release_all(sneck_lock *lock)
{
    if (lock->owner == 0 && !snk_registry_is_last_handle(&lock->client->registry, lock->entry))
        return;
    uint64_t owner = snk_lock_owner(lock);
    while (release(lock, owner, NULL) != SNECK_NOT_OWNER)
        ;
}

static void free_ear(sneck_lock *lock)
{
    snk_ear *ear = lock->ear;
    if (ear == NULL)
        return;
    (void)pthread_mutex_lock(&lock->entry->mutex);
    snk_ear_detach_locked(lock->entry, ear);
    (void)pthread_mutex_unlock(&lock->entry->mutex);
    snk_events_await(lock->client, ear);
    snk_ear_free(ear);
}

void sneck_lock_free(sneck_lock *lock)
{
    if (lock == NULL)
        return;
    sneck_client *client = lock->client;
    if (snk_forkmark_is_child(&client->fork)) {
        /* Mutexes may be held here by threads that only the parent has, so the entry stays. */
        snk_ear_free(lock->ear);
    } else {
        release_all(lock);
        free_ear(lock);
        snk_registry_drop(&client->registry, lock->entry);
    }
    snk_why_unref(lock->why);
    free(lock);
    snk_client_unref(client);
}

/* ---- Acquire, release ---- */

/*
 * For a store that shows how often the owner has the lock: tells it, by a renewal. If the store cannot be asked, the
 * level stands all the same, and the next one sets the count right. SNECK_LOST: the store no longer has the claim.
 */
static sneck_status tell_levels(sneck_lock *lock, sneck_error *error)
{
    sneck_client *client = lock->client;
    if (!client->counts_levels || !snk_gate_enter(&client->gate))
        return SNECK_OK;
    snk_entry *entry = lock->entry;
    uint64_t owner = snk_lock_owner(lock);
    snk_turn turn;
    snk_turn_init(&turn, client, entry);
    (void)pthread_mutex_lock(&entry->mutex);
    unsigned levels = snk_machine_levels(&entry->machine, owner, snk_now_ns());
    bool shown = levels > 0 && (levels > 1 || entry->machine.hold->shown_levels > 1);
    if (shown) {
        snk_event event = { .kind = SNK_EVENT_EXTEND, .owner = owner, .lease_ns = entry->machine.hold->terms.lease_ns };
        entry->machine.hold->shown_levels = levels;
        snk_turn_take_locked(&turn, &event);
    }
    (void)pthread_mutex_unlock(&entry->mutex);
    sneck_error result = { .status = SNECK_OK };
    if (shown) {
        snk_turn_end(&turn);
        for (uint32_t i = 0; i < turn.actions.send_count; i++)
            turn.actions.sends[i].levels = levels;
        snk_perform(&turn, &result);
    }
    snk_gate_leave(&client->gate);
    return result.status == SNECK_LOST ? snk_fail_as(error, &result) : SNECK_OK;
}

static sneck_status acquire(sneck_lock *lock, const snk_terms *terms, int64_t wait_ms, sneck_error *error)
{
    sneck_status status = snk_wait_check(wait_ms, error);
    if (status == SNECK_OK)
        status = snk_client_start(lock->client, error);
    if (status == SNECK_OK)
        status = snk_wait_acquire(lock, terms, wait_ms, error);
    if (status != SNECK_OK) {
        snk_metrics_refused(&lock->client->metrics, lock->entry, status);
        return status;
    }
    if (lock->owner == 0)
        snk_presence_add_level();
    return tell_levels(lock, error);
}

sneck_status sneck_acquire(sneck_lock *lock, int64_t wait_ms, sneck_error *error)
{
    sneck_status status = snk_lock_check(lock, error);
    return status == SNECK_OK ? acquire(lock, &lock->terms, wait_ms, error) : status;
}

sneck_status sneck_acquire_for(sneck_lock *lock, int64_t wait_ms, int64_t lease_ms, sneck_error *error)
{
    sneck_status status = snk_lock_check(lock, error);
    if (status == SNECK_OK)
        status = snk_lease_check(lease_ms, error);
    if (status != SNECK_OK)
        return status;
    snk_terms terms = lock->terms;
    terms.lease_ns = lease_ms * SNK_NS_PER_MS;
    terms.renew_ns = SNK_NEVER_NS;
    return acquire(lock, &terms, wait_ms, error);
}

sneck_status sneck_release(sneck_lock *lock, sneck_error *error)
{
    if (lock == NULL)
        return snk_lock_check(lock, error);
    if (snk_forkmark_is_child(&lock->client->fork))
        return snk_fail(error, SNECK_NOT_OWNER, 0, "a child of fork() owns nothing; open a client of its own");
    sneck_status status = snk_lock_check(lock, error);
    if (status == SNECK_OK)
        status = release(lock, snk_lock_owner(lock), error);
    return status == SNECK_OK ? tell_levels(lock, error) : status;
}

sneck_status sneck_extend(sneck_lock *lock, int64_t lease_ms, sneck_error *error)
{
    sneck_status status = snk_lock_check(lock, error);
    if (status == SNECK_OK)
        status = snk_lease_check(lease_ms, error);
    if (status == SNECK_OK)
        status = snk_client_enter(lock->client, error);
    if (status != SNECK_OK)
        return status;
    snk_turn turn;
    snk_event event = {
        .kind = SNK_EVENT_EXTEND,
        .owner = snk_lock_owner(lock),
        .lease_ns = lease_ms * SNK_NS_PER_MS,
    };
    snk_turn_run(&turn, lock->client, lock->entry, &event);
    sneck_error result = turn.actions.release;
    snk_perform(&turn, &result);
    snk_gate_leave(&lock->client->gate);
    return snk_fail_as(error, &result);
}

void sneck_interrupt(sneck_lock *lock)
{
    if (snk_lock_check(lock, NULL) != SNECK_OK)
        return;
    snk_turn turn;
    snk_event event = { .kind = SNK_EVENT_INTERRUPT, .tag = lock };
    snk_turn_run(&turn, lock->client, lock->entry, &event);
    snk_perform(&turn, NULL);
}

/* ---- Looking ---- */

/* What the caller has at this moment. */
typedef struct possession {
    unsigned levels;
    uint64_t token;
    int64_t remaining_ns;
} possession;

static possession look(const sneck_lock *lock)
{
    possession found = { 0 };
    if (snk_lock_check(lock, NULL) != SNECK_OK)
        return found;
    snk_entry *entry = lock->entry;
    uint64_t owner = snk_lock_owner(lock);
    (void)pthread_mutex_lock(&entry->mutex);
    int64_t now_ns = snk_now_ns();
    found.levels = snk_machine_levels(&entry->machine, owner, now_ns);
    if (found.levels > 0) {
        found.token = entry->machine.hold->token;
        found.remaining_ns = snk_deadline_peek(&entry->machine.deadline) - now_ns;
    }
    (void)pthread_mutex_unlock(&entry->mutex);
    return found;
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

static int watch_locked(sneck_lock *lock)
{
    snk_entry *entry = lock->entry;
    if (snk_machine_levels(&entry->machine, snk_lock_owner(lock), snk_now_ns()) == 0)
        return -1;
    if (lock->ear == NULL) {
        lock->ear = snk_ear_new();
        if (lock->ear == NULL)
            return -1;
        snk_ear_attach_locked(entry, lock->ear);
    }
    return snk_ear_watch_locked(entry, lock->ear) ? lock->ear->lost_fd : -1;
}

int sneck_lost_fd(sneck_lock *lock)
{
    if (snk_lock_check(lock, NULL) != SNECK_OK)
        return -1;
    (void)pthread_mutex_lock(&lock->entry->mutex);
    int fd = watch_locked(lock);
    (void)pthread_mutex_unlock(&lock->entry->mutex);
    return fd;
}
