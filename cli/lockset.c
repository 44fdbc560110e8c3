#include "lockset.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "client/tally.h"

static int by_name(const void *a, const void *b)
{
    const struct snk_lockset_member *left = a;
    const struct snk_lockset_member *right = b;
    return strcmp(left->name, right->name);
}

static sneck_status sort_members(snk_lockset *set, const char *first, sneck_error *error)
{
    qsort(set->members, set->count, sizeof set->members[0], by_name);
    for (size_t i = 0; i < set->count; i++) {
        if (i > 0 && strcmp(set->members[i - 1].name, set->members[i].name) == 0)
            return snk_fail(error, SNECK_INVALID, 0, "the lock %s is named twice", set->members[i].name);
        if (set->members[i].name == first)
            set->first = i;
    }
    return snk_ok(error);
}

static sneck_status open_permit(sneck_client *client, const char *name, const snk_lockset_way *way,
                                sneck_lock **lock_out, sneck_error *error)
{
    sneck_semaphore *semaphore = NULL;
    sneck_lock_options options;
    sneck_status status = sneck_semaphore_open(client, name, NULL, &semaphore, error);
    if (status == SNECK_OK)
        status = sneck_semaphore_set_permits(semaphore, way->slots, error);
    sneck_semaphore_free(semaphore);
    if (status == SNECK_OK)
        status = snk_lock_options_load(&options, &way->options, &client->settings, error);
    snk_entry_key key = { .object = SNK_OBJECT_LOCK, .mode = SNK_MODE_PERMIT, .units = 1 };
    return status == SNECK_OK ? snk_claim_open(client, name, key, &options, lock_out, error) : status;
}

static sneck_status open_member(sneck_client *client, const char *name, const snk_lockset_way *way,
                                sneck_lock **lock_out, sneck_error *error)
{
    if (way->slots > 0)
        return open_permit(client, name, way, lock_out, error);
    if (way->shared)
        return sneck_read_lock(client, name, &way->options, lock_out, error);
    return sneck_mutex(client, name, &way->options, lock_out, error);
}

sneck_status snk_lockset_open(snk_lockset *set, sneck_client *client, const char *const names[], size_t count,
                              const snk_lockset_way *way, sneck_error *error)
{
    *set = (snk_lockset){ .client = client, .done_fd = -1 };
    if (count > SNK_RUN_LOCKS_MAX)
        return snk_fail(error, SNECK_INVALID, 0, "at most %d locks at once", SNK_RUN_LOCKS_MAX);
    for (size_t i = 0; i < count; i++)
        set->members[i].name = names[i];
    set->count = count;
    sneck_status status = sort_members(set, names[0], error);
    for (size_t i = 0; i < count && status == SNECK_OK; i++)
        status = open_member(client, set->members[i].name, way, &set->members[i].lock, error);
    if (status != SNECK_OK)
        return status;
    set->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (set->done_fd < 0)
        return snk_fail(error, SNECK_NO_MEMORY, errno, "eventfd: %s", strerror(errno));
    return SNECK_OK;
}

void snk_lockset_close(snk_lockset *set)
{
    for (size_t i = 0; i < set->count; i++)
        sneck_lock_free(set->members[i].lock);
    if (set->done_fd >= 0)
        close(set->done_fd);
    *set = (snk_lockset){ .done_fd = -1 };
}

static int64_t remaining_wait_ms(const snk_lockset *set)
{
    int64_t now_ns = snk_now_ns();
    if (set->tries_once || now_ns >= set->give_up_at_ns)
        return 0;
    if (set->give_up_at_ns == SNK_NEVER_NS)
        return SNECK_FOREVER;
    return (set->give_up_at_ns - now_ns + SNK_NS_PER_MS - 1) / SNK_NS_PER_MS;
}

static snk_lockset_state give_up(snk_lockset *set)
{
    sneck_error why = set->result;
    set->failed = set->members[set->held].name;
    (void)snk_lockset_release(set, NULL);
    set->result = why;
    return SNK_LOCKSET_FAILED;
}

/* The asker. */
static void *acquire(void *context)
{
    snk_lockset *set = context;
    uint64_t one = 1;
    sneck_status status = sneck_acquire(set->members[set->held].lock, remaining_wait_ms(set), &set->result);
    set->result.status = status;
    ssize_t written = write(set->done_fd, &one, sizeof one);
    (void)written; /* an eventfd always takes a 1 */
    return NULL;
}

/* Asks for members[held]. */
static snk_lockset_state ask(snk_lockset *set)
{
    int failure = pthread_create(&set->asker, NULL, acquire, set);
    set->is_asking = failure == 0;
    if (set->is_asking)
        return SNK_LOCKSET_WAITING;
    snk_fail(&set->result, SNECK_NO_MEMORY, failure, "cannot start a thread: %s", strerror(failure));
    return give_up(set);
}

snk_lockset_state snk_lockset_begin(snk_lockset *set, int64_t wait_ms)
{
    set->tries_once = wait_ms == 0;
    set->give_up_at_ns = wait_ms == SNECK_FOREVER || wait_ms > SNK_NEVER_NS / SNK_NS_PER_MS
                             ? SNK_NEVER_NS
                             : snk_time_add(snk_now_ns(), wait_ms * SNK_NS_PER_MS);
    set->held = 0;
    return ask(set);
}

/* The first ones may be lost while the last one was waited for. */
static snk_lockset_state check_all(snk_lockset *set)
{
    const char *lost = snk_lockset_lost(set);
    if (lost == NULL)
        return SNK_LOCKSET_ACQUIRED;
    (void)snk_lockset_release(set, NULL);
    if (set->tries_once || snk_now_ns() >= set->give_up_at_ns) {
        set->failed = lost;
        snk_fail(&set->result, SNECK_TIMEOUT, 0, "the lock %s was lost while waiting for the others", lost);
        return SNK_LOCKSET_FAILED;
    }
    return ask(set);
}

snk_lockset_state snk_lockset_step(snk_lockset *set)
{
    uint64_t count = 0;
    if (read(set->done_fd, &count, sizeof count) != (ssize_t)sizeof count)
        return SNK_LOCKSET_WAITING;
    pthread_join(set->asker, NULL);
    set->is_asking = false;
    if (set->result.status != SNECK_OK)
        return give_up(set);
    set->held++;
    if (set->canceled) {
        snk_fail(&set->result, SNECK_CANCELED, 0, "interrupted");
        (void)snk_lockset_release(set, NULL);
        return SNK_LOCKSET_FAILED;
    }
    return set->held < set->count ? ask(set) : check_all(set);
}

void snk_lockset_cancel(snk_lockset *set)
{
    set->canceled = true; /* should this one still succeed, the next ones are not asked for */
    if (set->is_asking)
        sneck_interrupt(set->members[set->held].lock);
}

const char *snk_lockset_waits_for(const snk_lockset *set)
{
    return set->members[set->held < set->count ? set->held : set->count - 1].name;
}

const char *snk_lockset_lost(const snk_lockset *set)
{
    for (size_t i = 0; i < set->count; i++) {
        if (!sneck_is_held(set->members[i].lock))
            return set->members[i].name;
    }
    return NULL;
}

uint64_t snk_lockset_token(const snk_lockset *set)
{
    return sneck_token(set->members[set->first].lock);
}

int64_t snk_lockset_remaining_ms(const snk_lockset *set)
{
    int64_t least = INT64_MAX;
    for (size_t i = 0; i < set->count; i++) {
        int64_t remaining = sneck_remaining_ms(set->members[i].lock);
        if (remaining < least)
            least = remaining;
    }
    return least;
}

sneck_status snk_lockset_release(snk_lockset *set, sneck_error *error)
{
    sneck_error worst;
    (void)snk_ok(&worst);
    while (set->held > 0) {
        sneck_error one;
        sneck_status status = sneck_release(set->members[--set->held].lock, &one);
        if (status != SNECK_OK && worst.status != SNECK_LOST)
            worst = one;
    }
    return worst.status == SNECK_OK ? snk_ok(error) : snk_fail_as(error, &worst);
}
