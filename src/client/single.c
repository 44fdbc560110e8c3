#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "client/lock.h"
#include "client/perform.h"
#include "client/wait.h"

static const snk_lock_ops single_ops;

/* ---- Life ---- */

uint64_t snk_single_draw_owner(sneck_client *client)
{
    return SNK_OWNER_IS_HANDLE | (atomic_fetch_add_explicit(&client->handle_count, 1, memory_order_relaxed) + 1);
}

sneck_status snk_mode_check(const sneck_client *client, snk_mode mode, sneck_error *error)
{
    if ((client->modes & SNK_MODE_BIT(mode)) != 0)
        return SNECK_OK;
    static const char *const things[] = {
        [SNK_MODE_EXCLUSIVE] = "locks",   [SNK_MODE_SHARED] = "read locks",
        [SNK_MODE_PERMIT] = "semaphores", [SNK_MODE_TAKE] = "counting semaphores and conditions",
        [SNK_MODE_PASS] = "latches",
    };
    const char *hint = client->store->traits.modes_hint;
    return snk_fail(error, SNECK_UNSUPPORTED, 0, "%s cannot keep %s; %s", client->scheme, things[mode],
                    hint == NULL ? "use another store for them" : hint);
}

/* What a handle has of its own; NULL when out of memory. */
static sneck_lock *new_lock(sneck_client *client, const sneck_lock_options *options)
{
    sneck_lock *lock = calloc(1, sizeof *lock);
    if (lock == NULL)
        return NULL;
    lock->ops = &single_ops;
    lock->tag = lock;
    lock->terms = snk_lock_terms(options);
    lock->is_reentrant = options->reentrant;
    if (options->owner == SNECK_OWNER_HANDLE)
        lock->owner = snk_single_draw_owner(client);
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

sneck_status snk_single_new(sneck_client *client, const char *name, const snk_entry_key *key,
                            const sneck_lock_options *options, sneck_lock **lock_out, sneck_error *error)
{
    sneck_status status = watch(client, options, error);
    if (status != SNECK_OK)
        return status;
    sneck_lock *lock = new_lock(client, options);
    if (lock == NULL)
        return snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory for another handle");
    if (key->owner != 0)
        lock->owner = key->owner;
    status = snk_registry_open(&client->registry, name, key, &lock->entry, error);
    if (status != SNECK_OK) {
        snk_why_unref(lock->why);
        snk_ear_free(lock->ear);
        free(lock);
        return status;
    }
    lock->client = client;
    snk_client_ref(client);
    if (lock->ear != NULL)
        listen_to_events(lock, options);
    *lock_out = lock;
    return snk_ok(error);
}

bool snk_single_begin_release(sneck_lock *lock, uint64_t owner, snk_turn *turn)
{
    sneck_client *client = lock->client;
    snk_entry *entry = lock->entry;
    snk_event event = { .kind = SNK_EVENT_RELEASE, .owner = owner };
    snk_turn_init(turn, client, entry);
    (void)pthread_mutex_lock(&entry->mutex);
    snk_turn_take_locked(turn, &event);
    bool sends = turn->actions.send_count > 0 && snk_gate_enter(&client->gate);
    (void)pthread_mutex_unlock(&entry->mutex);
    snk_turn_end(turn);
    if (snk_lock_is_of_thread(lock) && turn->actions.release.status != SNECK_NOT_OWNER)
        snk_presence_drop_level();
    return sends;
}

/* One level less; the result of the call to the store, if there was one. */
static sneck_status release(sneck_lock *lock, uint64_t owner, sneck_error *error)
{
    snk_turn turn;
    bool sends = snk_single_begin_release(lock, owner, &turn);
    sneck_error result = turn.actions.release;
    if (sends) {
        snk_perform(&turn, &result);
        snk_gate_leave(&lock->client->gate);
    }
    return snk_fail_as(error, &result);
}

/* Gives back what only this handle could give back. */
static void release_all(sneck_lock *lock)
{
    bool is_own = (lock->owner & SNK_OWNER_IS_HANDLE) != 0;
    bool is_callers = lock->owner == 0 || lock->owner == snk_thread_number();
    if (!is_own && !(is_callers && snk_registry_is_last_handle(&lock->client->registry, lock->entry)))
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
    snk_callbacks_forget_ear(lock->client, ear);
    snk_ear_free(ear);
}

static void free_single(sneck_lock *lock)
{
    if (snk_forkmark_is_child(&lock->client->fork)) {
        /* Mutexes may be held here by threads that only the parent has, so the entry stays. */
        snk_ear_free(lock->ear);
    } else {
        release_all(lock);
        free_ear(lock);
        snk_registry_drop(&lock->client->registry, lock->entry);
    }
    snk_why_unref(lock->why);
    free(lock);
}

/* ---- Acquire, release ---- */

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
        entry->machine.hold->shown_levels = (uint16_t)levels;
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

sneck_status snk_single_tell_released(sneck_lock *lock, sneck_error *error)
{
    return tell_levels(lock, error);
}

sneck_status snk_single_tell_acquired(sneck_lock *lock, sneck_error *error)
{
    sneck_status status = tell_levels(lock, error);
    if (status != SNECK_OK)
        (void)release(lock, snk_lock_owner(lock), NULL);
    return status;
}

/* A writer that reads already would wait for itself. */
static sneck_status check_upgrade(sneck_lock *lock, sneck_error *error)
{
    if (!lock->is_write_side)
        return SNECK_OK;
    snk_grip grip = snk_entry_grip(lock->entry);
    unsigned writes = snk_single_look(lock).levels;
    unsigned reads = writes > 0 ? 0 : snk_readers_levels(lock->client, lock->entry->name, snk_lock_owner(lock));
    if (!snk_grip_waits_for_itself(&grip, reads, writes))
        return SNECK_OK;
    return snk_fail(error, SNECK_DEADLOCK, 0,
                    "the caller reads %.120s, and would wait for itself: release the read side first",
                    lock->entry->name);
}

snk_terms snk_single_terms(const sneck_lock *lock, int64_t lease_ms)
{
    snk_terms terms = lock->terms;
    if (lease_ms != 0) {
        terms.lease_ns = lease_ms * SNK_NS_PER_MS;
        terms.renew_ns = SNK_NEVER_NS;
    }
    return terms;
}

static sneck_status find_single(sneck_lock *lock, bool acquires, sneck_lock **single_out, sneck_error *error)
{
    *single_out = lock;
    return acquires ? check_upgrade(lock, error) : SNECK_OK;
}

static void settle_single(sneck_lock *lock)
{
    (void)lock;
}

static sneck_status acquire_single(sneck_lock *lock, const snk_asking *asking, sneck_error *error)
{
    snk_terms terms = snk_single_terms(lock, asking->lease_ms);
    sneck_status status = check_upgrade(lock, error);
    if (status == SNECK_OK)
        status = snk_client_start(lock->client, error);
    if (status == SNECK_OK)
        status = snk_wait_acquire(lock, &terms, asking, NULL, error);
    return status == SNECK_OK ? snk_single_tell_acquired(lock, error) : status;
}

static sneck_status release_single(sneck_lock *lock, sneck_error *error)
{
    sneck_status status = release(lock, snk_lock_owner(lock), error);
    return status == SNECK_OK ? snk_single_tell_released(lock, error) : status;
}

static sneck_status extend_single(sneck_lock *lock, int64_t lease_ms, sneck_error *error)
{
    sneck_status status = snk_client_enter(lock->client, error);
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

static void interrupt_single(sneck_lock *lock)
{
    snk_turn turn;
    snk_event event = { .kind = SNK_EVENT_INTERRUPT, .tag = lock->tag };
    snk_turn_run(&turn, lock->client, lock->entry, &event);
    snk_perform(&turn, NULL);
}

/* ---- Looking ---- */

snk_possession snk_single_look(const sneck_lock *lock)
{
    snk_possession found = { 0 };
    snk_entry *entry = lock->entry;
    uint64_t owner = snk_lock_owner(lock);
    (void)pthread_mutex_lock(&entry->mutex);
    int64_t now_ns = snk_now_ns();
    found.levels = snk_machine_levels(&entry->machine, owner, now_ns);
    if (found.levels > 0) {
        found.token = entry->machine.hold->token;
        found.units = entry->machine.hold->units;
        found.remaining_ns = snk_deadline_peek(&entry->machine.deadline) - now_ns;
    }
    (void)pthread_mutex_unlock(&entry->mutex);
    return found;
}

bool snk_single_is_in_use(const sneck_lock *lock)
{
    snk_entry *entry = lock->entry;
    uint64_t owner = snk_lock_owner(lock);
    (void)pthread_mutex_lock(&entry->mutex);
    const snk_machine *machine = &entry->machine;
    bool holds = machine->hold != NULL && machine->hold->owner == owner;
    for (snk_link *link = snk_list_first(&machine->lost); link != NULL && !holds;
         link = snk_list_next(&machine->lost, link))
        holds = SNK_CONTAINER(link, snk_hold, link)->owner == owner;
    (void)pthread_mutex_unlock(&entry->mutex);
    return holds;
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

static int lost_fd_of_single(sneck_lock *lock)
{
    (void)pthread_mutex_lock(&lock->entry->mutex);
    int fd = watch_locked(lock);
    (void)pthread_mutex_unlock(&lock->entry->mutex);
    return fd;
}

static const snk_lock_ops single_ops = {
    .acquire = acquire_single,
    .single = find_single,
    .settle = settle_single,
    .release = release_single,
    .extend = extend_single,
    .interrupt = interrupt_single,
    .look = snk_single_look,
    .lost_fd = lost_fd_of_single,
    .free = free_single,
};
