/*
 * Several locks as one. They are taken in one order, by store and name, so that two callers who want the same ones
 * cannot wait for each other. First all of one client are tried at once; if one is busy, those that were had are given
 * back, and then one after the other is waited for.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "client/agent.h"
#include "client/lock.h"
#include "client/together.h"

typedef struct multi {
    sneck_lock base;
    pthread_mutex_t mutex; /* of lost_fd; a leaf */
    int lost_fd;           /* an epoll of the members' descriptors; owned; -1: not made yet */
    bool owns_members;
    size_t count;
    sneck_lock *members[]; /* in the order in which they are taken */
} multi;

static const snk_lock_ops multi_ops;

static multi *multi_of(const sneck_lock *lock)
{
    return SNK_CONTAINER((sneck_lock *)(uintptr_t)lock, multi, base);
}

/* ---- Acquire and release ---- */

/* Gives back, last first, what was taken; of several troubles a loss counts most. */
static sneck_status release_members(multi *self, size_t count, sneck_error *error)
{
    sneck_status worst = SNECK_OK;
    (void)snk_ok(error);
    for (size_t i = count; i > 0; i--) {
        sneck_error released;
        sneck_status status = sneck_release(self->members[i - 1], &released);
        if (status != SNECK_OK && (worst == SNECK_OK || status == SNECK_LOST)) {
            worst = status;
            (void)snk_fail_as(error, &released);
        }
    }
    return worst;
}

static bool can_be_tried_together(const multi *self)
{
    for (size_t i = 0; i < self->count; i++) {
        const sneck_lock *member = self->members[i];
        if (member->entry == NULL || member->is_write_side || member->client != self->members[0]->client)
            return false;
        /* Two handles of one lock: the second is another level of the first, so it comes after it. */
        if (i > 0 && member->entry == self->members[i - 1]->entry)
            return false;
    }
    return self->count <= SNK_TOGETHER_MAX && !self->members[0]->client->counts_levels;
}

/* SNECK_OK: all; else none, and the first trouble. */
static sneck_status try_together(multi *self, sneck_error *error)
{
    sneck_error results[SNK_TOGETHER_MAX];
    sneck_error trouble = { .status = SNECK_OK };
    snk_try_together(self->members, self->count, results);
    for (size_t i = 0; i < self->count && trouble.status == SNECK_OK; i++)
        trouble = results[i];
    if (trouble.status == SNECK_OK)
        return snk_ok(error);
    for (size_t i = self->count; i > 0; i--) {
        if (results[i - 1].status == SNECK_OK)
            (void)sneck_release(self->members[i - 1], NULL);
    }
    return snk_fail_as(error, &trouble);
}

typedef struct taking {
    multi *self;
    size_t taken;
} taking;

static void give_back_when_cancelled(void *argument)
{
    taking *cancelled = argument;
    (void)release_members(cancelled->self, cancelled->taken, NULL);
}

static int64_t left_ms(int64_t wait_ms, int64_t until_ns)
{
    if (wait_ms <= 0 || until_ns == SNK_NEVER_NS)
        return wait_ms;
    int64_t left_ns = until_ns - snk_now_ns();
    /* Whoever has no time left still takes what is free, as it would have with more of it. */
    return left_ns > 0 ? (left_ns + SNK_NS_PER_MS - 1) / SNK_NS_PER_MS : 0;
}

static sneck_status take_one_by_one(multi *self, int64_t wait_ms, int64_t lease_ms, sneck_error *error)
{
    sneck_status status = snk_ok(error);
    int64_t until_ns = snk_wait_until_ns(wait_ms);
    taking progress = { .self = self };
    pthread_cleanup_push(give_back_when_cancelled, &progress);
    for (size_t i = 0; i < self->count && status == SNECK_OK; i++) {
        sneck_lock *member = self->members[i];
        status = member->ops->acquire(member, left_ms(wait_ms, until_ns), lease_ms, error);
        if (status == SNECK_OK)
            progress.taken++;
    }
    pthread_cleanup_pop(0);
    if (status == SNECK_OK)
        return status;
    (void)release_members(self, progress.taken, NULL);
    if (status == SNECK_BUSY && wait_ms > 0)
        return snk_fail(error, SNECK_TIMEOUT, 0, "one of %zu locks could not be had in time", self->count);
    return status;
}

static sneck_status acquire(sneck_lock *lock, int64_t wait_ms, int64_t lease_ms, sneck_error *error)
{
    multi *self = multi_of(lock);
    if (lease_ms == 0 && can_be_tried_together(self)) {
        sneck_status status = try_together(self, error);
        if (status != SNECK_BUSY || wait_ms == 0)
            return status;
    }
    return take_one_by_one(self, wait_ms, lease_ms, error);
}

static sneck_status release(sneck_lock *lock, sneck_error *error)
{
    multi *self = multi_of(lock);
    return release_members(self, self->count, error);
}

static sneck_status extend(sneck_lock *lock, int64_t lease_ms, sneck_error *error)
{
    multi *self = multi_of(lock);
    sneck_status status = snk_ok(error);
    for (size_t i = 0; i < self->count && status == SNECK_OK; i++)
        status = sneck_extend(self->members[i], lease_ms, error);
    return status;
}

static void interrupt(sneck_lock *lock)
{
    multi *self = multi_of(lock);
    for (size_t i = 0; i < self->count; i++)
        sneck_interrupt(self->members[i]);
}

/* ---- Looking ---- */

/* Held only when all are: the token is the first one's, the time the shortest. */
static snk_possession look(const sneck_lock *lock)
{
    const multi *self = multi_of(lock);
    snk_possession least = { 0 };
    for (size_t i = 0; i < self->count; i++) {
        snk_possession found = self->members[i]->ops->look(self->members[i]);
        if (found.levels == 0)
            return (snk_possession){ 0 };
        if (i == 0) {
            least = found;
            continue;
        }
        if (found.levels < least.levels)
            least.levels = found.levels;
        if (found.remaining_ns < least.remaining_ns)
            least.remaining_ns = found.remaining_ns;
    }
    return least;
}

static int watch_locked(multi *self)
{
    if (self->lost_fd < 0)
        self->lost_fd = epoll_create1(EPOLL_CLOEXEC);
    if (self->lost_fd < 0)
        return -1;
    for (size_t i = 0; i < self->count; i++) {
        int fd = self->members[i]->ops->lost_fd(self->members[i]);
        struct epoll_event event = { .events = EPOLLIN };
        if (fd < 0)
            return -1;
        (void)epoll_ctl(self->lost_fd, EPOLL_CTL_ADD, fd, &event); /* it may be there from before */
    }
    return self->lost_fd;
}

static int lost_fd(sneck_lock *lock)
{
    multi *self = multi_of(lock);
    (void)pthread_mutex_lock(&self->mutex);
    int fd = watch_locked(self);
    (void)pthread_mutex_unlock(&self->mutex);
    return fd;
}

static sneck_status check(const sneck_lock *lock, sneck_error *error)
{
    const multi *self = multi_of(lock);
    sneck_status status = SNECK_OK;
    for (size_t i = 0; i < self->count && status == SNECK_OK; i++)
        status = snk_lock_check(self->members[i], error);
    return status;
}

/* ---- Life ---- */

static void free_multi(sneck_lock *lock)
{
    multi *self = multi_of(lock);
    for (size_t i = 0; i < self->count && self->owns_members; i++)
        sneck_lock_free(self->members[i]);
    if (self->lost_fd >= 0)
        (void)close(self->lost_fd);
    (void)pthread_mutex_destroy(&self->mutex);
    free(self);
}

static const snk_lock_ops multi_ops = {
    .check = check,
    .acquire = acquire,
    .release = release,
    .extend = extend,
    .interrupt = interrupt,
    .look = look,
    .lost_fd = lost_fd,
    .free = free_multi,
};

/* By store, then by name. */
static int compare(const void *a, const void *b)
{
    const sneck_lock *one = *(sneck_lock *const *)a;
    const sneck_lock *other = *(sneck_lock *const *)b;
    int by_store = strcmp(one->client->store_text, other->client->store_text);
    return by_store != 0 ? by_store : strcmp(snk_lock_name(one), snk_lock_name(other));
}

static size_t count_of(const sneck_lock *lock)
{
    return lock->ops == &multi_ops ? multi_of(lock)->count : 1;
}

/* A member that is itself several locks stands for those, or their order would not be that of all others. */
static void take_members(multi *self, sneck_lock *const members[], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        sneck_lock *const *from = members[i]->ops == &multi_ops ? multi_of(members[i])->members : &members[i];
        memcpy(&self->members[self->count], from, count_of(members[i]) * sizeof(sneck_lock *));
        self->count += count_of(members[i]);
    }
    qsort(self->members, self->count, sizeof(sneck_lock *), compare);
}

static sneck_status check_members(sneck_lock *const members[], size_t count, sneck_error *error)
{
    if (members == NULL || count == 0 || count > SNECK_MULTI_MAX)
        return snk_fail(error, SNECK_INVALID, 0, "%zu members: give 1 to %d locks", count, SNECK_MULTI_MAX);
    sneck_status status = SNECK_OK;
    for (size_t i = 0; i < count && status == SNECK_OK; i++) {
        status = snk_lock_check(members[i], error);
        for (size_t j = 0; j < i && status == SNECK_OK; j++)
            if (members[j] == members[i])
                status = snk_fail(error, SNECK_INVALID, 0, "members %zu and %zu are the same handle", j, i);
    }
    return status;
}

sneck_status snk_multi_new(sneck_lock *const members[], size_t count, bool owns_members, sneck_lock **lock_out,
                           sneck_error *error)
{
    size_t total = 0;
    for (size_t i = 0; i < count; i++)
        total += count_of(members[i]);
    multi *self = calloc(1, sizeof *self + total * sizeof(sneck_lock *));
    if (self == NULL)
        return snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory for a lock of %zu", total);
    take_members(self, members, count);
    (void)pthread_mutex_init(&self->mutex, NULL);
    self->base.ops = &multi_ops;
    self->owns_members = owns_members;
    self->lost_fd = -1;
    *lock_out = &self->base;
    return snk_ok(error);
}

sneck_status sneck_multi_lock(sneck_lock *const members[], size_t count, sneck_lock **lock_out, sneck_error *error)
{
    if (lock_out == NULL)
        return snk_fail(error, SNECK_INVALID, 0, "lock_out is NULL: give the address of a sneck_lock *");
    *lock_out = NULL;
    sneck_status status = check_members(members, count, error);
    return status == SNECK_OK ? snk_multi_new(members, count, false, lock_out, error) : status;
}
