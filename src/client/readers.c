/*
 * The read side of a lock for threads. Each thread that reads has a hold of its own in the store, and so a single
 * handle of its own here, made when it first acquires and dropped when it has given all levels back. Only that thread
 * makes, uses and drops it; others find it to interrupt it, and to drop it when the thread ended before it could.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "client/lock.h"

/* So many readers more are looked at before those of threads that ended are searched for. */
#define SWEEP_COUNT_MIN 16

typedef struct reader {
    snk_link link;
    uint64_t owner;
    sneck_lock *handle; /* owned; a single one */
    bool is_in_call;    /* its thread may be about to hold, and drops it if it does not; under readers.mutex */
} reader;

typedef struct readers {
    sneck_lock base;
    pthread_mutex_t mutex;      /* before entry.mutex */
    snk_list list;              /* of owned readers; under mutex */
    size_t count;               /* of them; under mutex */
    size_t sweep_at;            /* so many: those of threads that ended are dropped; under mutex */
    sneck_lock_options options; /* `why` is base.why's */
    char name[];
} readers;

static const snk_lock_ops readers_ops;

static readers *readers_of(const sneck_lock *lock)
{
    return SNK_CONTAINER((sneck_lock *)(uintptr_t)lock, readers, base);
}

static snk_entry_key key_of(uint64_t owner)
{
    return (snk_entry_key){ .object = SNK_OBJECT_LOCK, .mode = SNK_MODE_SHARED, .owner = owner };
}

/* The calling thread's, or NULL. */
static reader *find_own_locked(readers *self)
{
    uint64_t owner = snk_thread_number();
    for (snk_link *link = snk_list_first(&self->list); link != NULL; link = snk_list_next(&self->list, link)) {
        reader *candidate = SNK_CONTAINER(link, reader, link);
        if (candidate->owner == owner)
            return candidate;
    }
    return NULL;
}

/* The same, at the beginning of a call: it stays until the call ends with `settle`. */
static reader *enter_own(readers *self)
{
    (void)pthread_mutex_lock(&self->mutex);
    reader *found = find_own_locked(self);
    if (found != NULL)
        found->is_in_call = true;
    (void)pthread_mutex_unlock(&self->mutex);
    return found;
}

static void take_out_locked(readers *self, reader *from)
{
    snk_list_remove(&from->link);
    self->count--;
}

static void free_reader(reader *left)
{
    sneck_lock_free(left->handle);
    free(left);
}

/*
 * What a thread has not given back before it ended is given back by the watchdog, but nobody drops its reader. Looked
 * for when there are twice as many as the last time.
 */
static void take_abandoned_locked(readers *self, snk_list *abandoned)
{
    snk_list_init(abandoned);
    if (self->count < self->sweep_at)
        return;
    snk_link *next = NULL;
    for (snk_link *link = snk_list_first(&self->list); link != NULL; link = next) {
        next = snk_list_next(&self->list, link);
        reader *candidate = SNK_CONTAINER(link, reader, link);
        if (candidate->is_in_call || snk_single_is_in_use(candidate->handle))
            continue;
        take_out_locked(self, candidate);
        snk_list_append(abandoned, &candidate->link);
    }
    self->sweep_at = 2 * self->count + SWEEP_COUNT_MIN;
}

static void free_list(const snk_list *list)
{
    snk_link *next = NULL;
    for (snk_link *link = snk_list_first(list); link != NULL; link = next) {
        next = snk_list_next(list, link);
        free_reader(SNK_CONTAINER(link, reader, link));
    }
}

static sneck_status add_own(readers *self, reader **reader_out, sneck_error *error)
{
    reader *made = calloc(1, sizeof *made);
    if (made == NULL)
        return snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory for another reader");
    made->owner = snk_thread_number();
    snk_entry_key key = key_of(made->owner);
    sneck_status status = snk_single_new(self->base.client, self->name, &key, &self->options, &made->handle, error);
    if (status != SNECK_OK) {
        free(made);
        return status;
    }
    snk_list abandoned;
    made->is_in_call = true;
    (void)pthread_mutex_lock(&self->mutex);
    take_abandoned_locked(self, &abandoned);
    snk_list_append(&self->list, &made->link);
    self->count++;
    (void)pthread_mutex_unlock(&self->mutex);
    free_list(&abandoned);
    *reader_out = made;
    return SNECK_OK;
}

/*
 * The claim of the caller's own hold of the write side, or zero. From now on that hold is not passed on inside this
 * process, because whoever got it would hold it beside a reader that the store knows of.
 */
static snk_id stand_beside(sneck_client *client, const char *name, uint64_t owner)
{
    snk_id claim = { { 0 } };
    snk_entry_key key = { .object = SNK_OBJECT_LOCK, .mode = SNK_MODE_EXCLUSIVE };
    snk_entry *entry = snk_registry_find(&client->registry, name, &key);
    if (entry == NULL)
        return claim;
    (void)pthread_mutex_lock(&entry->mutex);
    if (snk_machine_levels(&entry->machine, owner, snk_now_ns()) > 0) {
        snk_hold *hold = entry->machine.hold;
        claim = hold->claim;
        hold->token_last = hold->token;
    }
    (void)pthread_mutex_unlock(&entry->mutex);
    snk_registry_unpin(&client->registry, entry);
    return claim;
}

unsigned snk_readers_levels(sneck_client *client, const char *name, uint64_t owner)
{
    snk_entry_key key = key_of(owner);
    snk_entry *entry = snk_registry_find(&client->registry, name, &key);
    if (entry == NULL)
        return 0;
    (void)pthread_mutex_lock(&entry->mutex);
    unsigned levels = snk_machine_levels(&entry->machine, owner, snk_now_ns());
    (void)pthread_mutex_unlock(&entry->mutex);
    snk_registry_unpin(&client->registry, entry);
    return levels;
}

const char *snk_readers_name(const sneck_lock *lock)
{
    return readers_of(lock)->name;
}

/* ---- Operations ---- */

static sneck_status find_single(sneck_lock *lock, bool acquires, sneck_lock **single_out, sneck_error *error)
{
    readers *self = readers_of(lock);
    reader *own = enter_own(self);
    sneck_status status = SNECK_OK;
    /* Without levels of this handle there may be some of another handle on the same name: the machine knows. */
    if (own == NULL)
        status = add_own(self, &own, error);
    if (own == NULL)
        return status;
    if (acquires)
        own->handle->beside = stand_beside(lock->client, self->name, own->owner);
    *single_out = own->handle;
    return SNECK_OK;
}

/* The end of a call: a thread that has nothing of it any more needs no reader. */
static void settle(sneck_lock *lock)
{
    readers *self = readers_of(lock);
    (void)pthread_mutex_lock(&self->mutex);
    reader *own = find_own_locked(self);
    bool is_done = own != NULL && !snk_single_is_in_use(own->handle);
    if (is_done)
        take_out_locked(self, own);
    else if (own != NULL)
        own->is_in_call = false;
    (void)pthread_mutex_unlock(&self->mutex);
    if (is_done)
        free_reader(own);
}

static void settle_when_cancelled(void *argument)
{
    settle(argument);
}

static sneck_status acquire(sneck_lock *lock, const snk_asking *asking, sneck_error *error)
{
    sneck_lock *handle = NULL;
    sneck_status status = find_single(lock, true, &handle, error);
    if (handle == NULL)
        return status;
    pthread_cleanup_push(settle_when_cancelled, lock);
    status = handle->ops->acquire(handle, asking, error);
    pthread_cleanup_pop(0);
    settle(lock);
    return status;
}

static sneck_status release(sneck_lock *lock, sneck_error *error)
{
    sneck_lock *handle = NULL;
    sneck_status status = find_single(lock, false, &handle, error);
    if (handle == NULL)
        return status;
    status = handle->ops->release(handle, error);
    settle(lock);
    return status;
}

static sneck_status extend(sneck_lock *lock, int64_t lease_ms, sneck_error *error)
{
    reader *own = enter_own(readers_of(lock));
    if (own == NULL)
        return snk_fail(error, SNECK_NOT_OWNER, 0, "the calling thread does not read %.120s", readers_of(lock)->name);
    sneck_status status = own->handle->ops->extend(own->handle, lease_ms, error);
    settle(lock);
    return status;
}

static void interrupt(sneck_lock *lock)
{
    readers *self = readers_of(lock);
    (void)pthread_mutex_lock(&self->mutex);
    for (snk_link *link = snk_list_first(&self->list); link != NULL; link = snk_list_next(&self->list, link)) {
        sneck_lock *handle = SNK_CONTAINER(link, reader, link)->handle;
        handle->ops->interrupt(handle);
    }
    (void)pthread_mutex_unlock(&self->mutex);
}

static snk_possession look(const sneck_lock *lock)
{
    readers *self = readers_of(lock);
    (void)pthread_mutex_lock(&self->mutex);
    const reader *own = find_own_locked(self);
    snk_possession nothing = { 0 };
    snk_possession found = own == NULL ? nothing : snk_single_look(own->handle);
    (void)pthread_mutex_unlock(&self->mutex);
    return found;
}

static int lost_fd(sneck_lock *lock)
{
    readers *self = readers_of(lock);
    (void)pthread_mutex_lock(&self->mutex);
    const reader *own = find_own_locked(self);
    int fd = own == NULL ? -1 : own->handle->ops->lost_fd(own->handle);
    (void)pthread_mutex_unlock(&self->mutex);
    return fd;
}

static void free_readers(sneck_lock *lock)
{
    readers *self = readers_of(lock);
    free_list(&self->list);
    (void)pthread_mutex_destroy(&self->mutex);
    snk_why_unref(lock->why);
    free(self);
}

static const snk_lock_ops readers_ops = {
    .acquire = acquire,
    .single = find_single,
    .settle = settle,
    .release = release,
    .extend = extend,
    .interrupt = interrupt,
    .look = look,
    .lost_fd = lost_fd,
    .free = free_readers,
};

sneck_status snk_readers_new(sneck_client *client, const char *name, const sneck_lock_options *options,
                             sneck_lock **lock_out, sneck_error *error)
{
    size_t size = strlen(name) + 1;
    readers *self = calloc(1, sizeof *self + size);
    bool has_why = options->why != NULL && options->why[0] != '\0';
    snk_why *why = self != NULL && has_why ? snk_why_new(options->why) : NULL;
    if (self == NULL || (has_why && why == NULL)) {
        free(self);
        return snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory for another handle");
    }
    (void)pthread_mutex_init(&self->mutex, NULL);
    snk_list_init(&self->list);
    self->sweep_at = SWEEP_COUNT_MIN;
    memcpy(self->name, name, size);
    self->base.ops = &readers_ops;
    self->base.client = client;
    self->base.why = why;
    self->options = *options;
    self->options.why = snk_why_text(why);
    snk_client_ref(client);
    *lock_out = &self->base;
    return snk_ok(error);
}
