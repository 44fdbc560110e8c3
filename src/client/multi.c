/*
 * Several locks as one. They are waited for in one order, by store and name there, so that two callers who want the
 * same ones cannot wait for each other. First all of them are tried at once, whatever stores they are in; if one is busy, those
 * behind it are given back, and it is waited for with only those before it held. Then the rest is tried again.
 */
#include <stdio.h>
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
    pthread_mutex_t mutex;       /* of lost_fd; before those of the members */
    int lost_fd;                 /* an epoll of the members' descriptors; owned; -1: not made yet */
    _Atomic uint32_t interrupts; /* so far */
    bool owns_members;
    size_t count;
    sneck_lock *members[]; /* in the order in which they are taken */
} multi;

static const snk_lock_ops multi_ops;
static snk_possession look(const sneck_lock *lock);

static multi *multi_of(const sneck_lock *lock)
{
    return SNK_CONTAINER((sneck_lock *)(uintptr_t)lock, multi, base);
}

/* ---- Acquire and release ---- */

/* Gives members back; of several troubles a loss counts most. */
static sneck_status release_members(multi *self, size_t count, sneck_error *error)
{
    sneck_error results[SNK_TOGETHER_MAX];
    sneck_status worst = snk_ok(error);
    while (count > 0) {
        size_t some = count < SNK_TOGETHER_MAX ? count : SNK_TOGETHER_MAX;
        count -= some;
        snk_release_together(&self->members[count], some, results);
        for (size_t i = 0; i < some; i++) {
            if (worst == SNECK_OK || (results[i].status == SNECK_LOST && worst != SNECK_LOST))
                worst = snk_fail_as(error, &results[i]);
        }
    }
    return worst;
}

/* An acquire of all members. */
typedef struct taking {
    multi *self;
    snk_asking asking;
    int64_t until_ns;
    size_t taken; /* of the members, in their order */
    size_t pause; /* so many are taken one by one before the rest is tried again */
    sneck_status status;
} taking;

static void give_back(void *argument)
{
    taking *progress = argument;
    if (progress->taken > 0)
        (void)release_members(progress->self, progress->taken, NULL);
}

static bool is_same_thing(const sneck_lock *one, const sneck_lock *other)
{
    return one->client == other->client && strcmp(snk_lock_name(one), snk_lock_name(other)) == 0;
}

/* How many of the members that are left are tried at once: another handle of one lock comes after the first. */
static size_t count_to_try(const taking *progress)
{
    const multi *self = progress->self;
    size_t end = progress->taken + 1;
    while (end < self->count && end - progress->taken < SNK_TOGETHER_MAX &&
           !is_same_thing(self->members[end], self->members[end - 1]))
        end++;
    return end - progress->taken;
}

static bool is_trouble(const sneck_error *result)
{
    return result->status != SNECK_OK && result->status != SNECK_BUSY;
}

/*
 * Tries those that are left at once, and keeps what it gets before the first that is busy. SNECK_BUSY: there is such a
 * one. Whatever else is wrong with one of them counts more, since it is in the way of all.
 */
static sneck_status try_rest(taking *progress, sneck_error *error)
{
    multi *self = progress->self;
    sneck_error results[SNK_TOGETHER_MAX];
    size_t first = progress->taken;
    size_t count = count_to_try(progress);
    snk_try_together(&self->members[first], count, progress->asking.lease_ms, results);
    size_t kept = 0;
    size_t worst = 0;
    while (kept < count && results[kept].status == SNECK_OK)
        kept++;
    worst = kept;
    for (size_t i = kept; i < count && !is_trouble(&results[worst]); i++)
        if (is_trouble(&results[i]))
            worst = i;
    sneck_lock *back[SNK_TOGETHER_MAX];
    size_t back_count = 0;
    for (size_t i = kept; i < count; i++)
        if (results[i].status == SNECK_OK)
            back[back_count++] = self->members[first + i];
    progress->taken += kept;
    sneck_status status = kept == count ? snk_ok(error) : snk_fail_as(error, &results[worst]);
    if (back_count > 0)
        snk_release_together(back, back_count, results);
    return status;
}

static int64_t left_ms(const taking *progress)
{
    int64_t wait_ms = progress->asking.wait_ms;
    if (wait_ms <= 0 || progress->until_ns == SNK_NEVER_NS)
        return wait_ms;
    int64_t left_ns = progress->until_ns - snk_now_ns();
    /* Whoever has no time left still takes what is free, as it would have with more of it. */
    return left_ns > 0 ? (left_ns + SNK_NS_PER_MS - 1) / SNK_NS_PER_MS : 0;
}

static sneck_status wait_for_next(taking *progress, sneck_error *error)
{
    sneck_lock *member = progress->self->members[progress->taken];
    snk_asking asking = progress->asking;
    asking.wait_ms = left_ms(progress);
    sneck_status status = member->ops->acquire(member, &asking, error);
    if (status == SNECK_OK)
        progress->taken++;
    else if (status == SNECK_BUSY && progress->asking.wait_ms != 0)
        status = snk_fail(error, SNECK_TIMEOUT, 0, "one of %zu locks could not be had in time", progress->self->count);
    return status;
}

static bool was_interrupted(const taking *progress)
{
    const snk_asking *asking = &progress->asking;
    return atomic_load_explicit(asking->interrupts, memory_order_relaxed) != asking->interrupts_seen;
}

/*
 * One round: what is left is tried, then waited for a while one by one. That while gets longer, because a try that fails
 * may have taken and given back a lot, and where many are busy there would be many of those.
 */
static sneck_status take_some(taking *progress, sneck_error *error)
{
    const multi *self = progress->self;
    bool is_last = progress->taken + 1 == self->count;
    sneck_status status = is_last ? SNECK_BUSY : try_rest(progress, error);
    if (status != SNECK_BUSY)
        return status;
    if (!is_last && progress->asking.wait_ms == 0)
        return status;
    if (was_interrupted(progress))
        return snk_fail(error, SNECK_CANCELED, 0, "the wait was interrupted");
    size_t until = progress->taken + progress->pause;
    status = SNECK_OK;
    while (progress->taken < self->count && progress->taken < until && status == SNECK_OK)
        status = wait_for_next(progress, error);
    progress->pause *= 2;
    return status;
}

/*
 * All were had, but not at one moment: one whose lease is short may be over before the last one came. Then all are given
 * back, and it begins anew if there is time.
 */
static sneck_status check_all(taking *progress, sneck_error *error)
{
    if (look(&progress->self->base).levels > 0)
        return SNECK_OK;
    give_back(progress);
    progress->taken = 0;
    progress->pause = 1;
    if (left_ms(progress) != 0)
        return SNECK_OK;
    return snk_fail(error, SNECK_LOST, 0, "one of %zu locks was lost before the others were had",
                    progress->self->count);
}

static void take_all(taking *progress, sneck_error *error)
{
    const multi *self = progress->self;
    while (progress->taken < self->count && progress->status == SNECK_OK) {
        progress->status = take_some(progress, error);
        if (progress->status == SNECK_OK && progress->taken == self->count)
            progress->status = check_all(progress, error);
    }
    if (progress->status == SNECK_OK)
        (void)snk_ok(error);
}

static sneck_status acquire(sneck_lock *lock, const snk_asking *asking, sneck_error *error)
{
    multi *self = multi_of(lock);
    taking progress = { .self = self, .asking = *asking, .pause = 1, .status = SNECK_OK };
    progress.until_ns = snk_wait_until_ns(asking->wait_ms);
    progress.asking.interrupts = &self->interrupts;
    progress.asking.interrupts_seen = atomic_load_explicit(&self->interrupts, memory_order_relaxed);
    pthread_cleanup_push(give_back, &progress);
    take_all(&progress, error);
    pthread_cleanup_pop(0);
    if (progress.status != SNECK_OK)
        give_back(&progress);
    return progress.status;
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
    /* First: whoever begins to wait for a member from here on sees it (wait.c). */
    (void)atomic_fetch_add_explicit(&self->interrupts, 1, memory_order_relaxed);
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

static sneck_status check(const sneck_lock *lock, bool releases, sneck_error *error)
{
    const multi *self = multi_of(lock);
    sneck_status status = SNECK_OK;
    for (size_t i = 0; i < self->count && status == SNECK_OK; i++)
        status = releases ? snk_lock_check_release(self->members[i], error) : snk_lock_check(self->members[i], error);
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

static bool is_read_side(const sneck_lock *lock)
{
    return lock->entry == NULL || lock->entry->key.mode == SNK_MODE_SHARED;
}

/* By the names that the store knows: another process may have another prefix, or none, for the same ones. */
static int compare_names(const sneck_lock *one, const sneck_lock *other)
{
    char names[2][SNK_PREFIX_LENGTH_MAX + SNK_NAME_LENGTH_MAX + 1];
    (void)snprintf(names[0], sizeof names[0], "%s%s", one->client->settings.prefix, snk_lock_name(one));
    (void)snprintf(names[1], sizeof names[1], "%s%s", other->client->settings.prefix, snk_lock_name(other));
    return strcmp(names[0], names[1]);
}

/* By store, then by name. What is of one client is together, and whoever writes may read as well, but not the other way. */
static int compare(const void *a, const void *b)
{
    const sneck_lock *one = *(sneck_lock *const *)a;
    const sneck_lock *other = *(sneck_lock *const *)b;
    int order = strcmp(one->client->store_text, other->client->store_text);
    if (order == 0)
        order = compare_names(one, other);
    if (order == 0)
        order =
            ((uintptr_t)one->client > (uintptr_t)other->client) - ((uintptr_t)one->client < (uintptr_t)other->client);
    return order != 0 ? order : (int)is_read_side(one) - (int)is_read_side(other);
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
    size_t total = 0;
    for (size_t i = 0; i < count && status == SNECK_OK; i++) {
        status = snk_lock_check(members[i], error);
        for (size_t j = 0; j < i && status == SNECK_OK; j++)
            if (members[j] == members[i])
                status = snk_fail(error, SNECK_INVALID, 0, "members %zu and %zu are the same handle", j, i);
        total += status == SNECK_OK ? count_of(members[i]) : 0;
    }
    if (status == SNECK_OK && total > SNECK_MULTI_MAX)
        status =
            snk_fail(error, SNECK_INVALID, 0, "the members are %zu locks: give at most %d", total, SNECK_MULTI_MAX);
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
