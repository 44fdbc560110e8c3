#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/name.h"
#include "client/retirement.h"
#include "client/tally.h"
#include "engine/renewal.h"

/* How long a count-down that was not answered is asked again. */
#define ASK_AGAIN_NS (3 * SNK_NS_PER_S)

struct sneck_latch {
    sneck_client *client;       /* a reference */
    sneck_lock_options options; /* of those who wait */
    char name[];
};

static sneck_status load_options(const sneck_client *client, const sneck_latch_options *options,
                                 sneck_lock_options *of_waiters, sneck_error *error)
{
    sneck_latch_options chosen = SNECK_LATCH_OPTIONS_INIT;
    sneck_status status = SNECK_OK;
    if (options != NULL)
        status = snk_options_copy(&chosen, options, sizeof chosen, "SNECK_LATCH_OPTIONS", error);
    if (status != SNECK_OK)
        return status;
    sneck_lock_options wanted = SNECK_LOCK_OPTIONS_INIT;
    wanted.lease_ms = chosen.lease_ms;
    wanted.owner = SNECK_OWNER_HANDLE;
    return snk_lock_options_load(of_waiters, &wanted, &client->settings, error);
}

sneck_status sneck_latch_open(sneck_client *client, const char *name, const sneck_latch_options *options,
                              sneck_latch **latch_out, sneck_error *error)
{
    if (latch_out == NULL)
        return snk_fail(error, SNECK_INVALID, 0, "latch_out is NULL: give the address of a sneck_latch *");
    *latch_out = NULL;
    sneck_lock_options of_waiters;
    sneck_status status = snk_client_check(client, error);
    if (status == SNECK_OK)
        status = snk_name_check(name, error);
    if (status == SNECK_OK)
        status = load_options(client, options, &of_waiters, error);
    if (status == SNECK_OK)
        status = snk_mode_check(client, SNK_MODE_PASS, error);
    if (status != SNECK_OK)
        return status;
    size_t size = strlen(name) + 1;
    sneck_latch *latch = calloc(1, sizeof *latch + size);
    if (latch == NULL)
        return snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory for a latch");
    memcpy(latch->name, name, size);
    latch->options = of_waiters;
    latch->client = client;
    snk_client_ref(client);
    *latch_out = latch;
    return snk_ok(error);
}

void sneck_latch_free(sneck_latch *latch)
{
    if (latch == NULL)
        return;
    snk_client_unref(latch->client);
    free(latch);
}

static sneck_status check(const sneck_latch *latch, sneck_error *error)
{
    if (latch == NULL)
        return snk_fail(error, SNECK_INVALID, 0, "the latch is NULL: make it with sneck_latch_open first");
    return snk_client_check(latch->client, error);
}

static snk_tally tally_of(const sneck_latch *latch, snk_tally_verb verb, int64_t value)
{
    return (snk_tally){ .object = SNK_OBJECT_LATCH, .verb = verb, .name = latch->name, .value = value };
}

sneck_status sneck_latch_set(sneck_latch *latch, int64_t count, sneck_error *error)
{
    snk_tallied tallied;
    sneck_status status = check(latch, error);
    if (status == SNECK_OK && (count < 1 || count > INT32_MAX))
        status = snk_fail(error, SNECK_INVALID, 0, "a count of %lld: give 1 to %d", (long long)count, INT32_MAX);
    if (status != SNECK_OK)
        return status;
    snk_tally tally = tally_of(latch, SNK_TALLY_SET_IF_ZERO, count);
    status = snk_client_tally(latch->client, &tally, &tallied, error);
    if (status == SNECK_OK && !tallied.done)
        status = snk_fail(error, SNECK_CONFLICT, 0, "the latch %.120s is set, with %lld left to be counted down",
                          latch->name, (long long)tallied.count);
    return status;
}

sneck_status sneck_latch_count_down(sneck_latch *latch, sneck_error *error)
{
    snk_tallied tallied;
    sneck_status status = check(latch, error);
    if (status != SNECK_OK)
        return status;
    snk_tally tally = tally_of(latch, SNK_TALLY_DOWN, 1);
    if (!snk_idpool_draw(&latch->client->ids, &tally.id))
        return snk_fail(error, SNECK_UNAVAILABLE, 0, "the kernel gives no random bytes for a request");
    int64_t until_ns = snk_now_ns() + ASK_AGAIN_NS;
    status = snk_client_tally(latch->client, &tally, &tallied, error);
    for (uint32_t failures = 1; status == SNECK_UNKNOWN && snk_now_ns() < until_ns; failures++) {
        struct timespec pause = snk_timespec(snk_backoff_ns(failures, SNK_BACKOFF_NS_MAX));
        (void)nanosleep(&pause, NULL);
        sneck_error again;
        if (snk_client_tally(latch->client, &tally, &tallied, &again) == SNECK_OK)
            return snk_ok(error);
    }
    return status;
}

sneck_status sneck_latch_count(sneck_latch *latch, int64_t *count_out, sneck_error *error)
{
    if (count_out == NULL)
        return snk_fail(error, SNECK_INVALID, 0, "count_out is NULL: give the address of an int64_t");
    *count_out = 0;
    snk_tallied tallied;
    sneck_status status = check(latch, error);
    if (status != SNECK_OK)
        return status;
    snk_tally tally = tally_of(latch, SNK_TALLY_READ, 0);
    status = snk_client_tally(latch->client, &tally, &tallied, error);
    if (status == SNECK_OK)
        *count_out = tallied.count;
    return status;
}

static void free_cancelled(void *claim)
{
    sneck_lock_free(claim);
}

/* Waits in the store's queue. What is granted to those who wait is worth nothing afterwards: it goes by itself. */
static sneck_status wait_in_queue(const sneck_latch *latch, int64_t wait_ms, sneck_error *error)
{
    sneck_lock *claim = NULL;
    snk_entry_key key = { .object = SNK_OBJECT_LATCH, .mode = SNK_MODE_PASS };
    sneck_status status = snk_claim_open(latch->client, latch->name, key, &latch->options, &claim, error);
    if (status != SNECK_OK)
        return status;
    pthread_cleanup_push(free_cancelled, claim);
    status = sneck_acquire(claim, wait_ms, error);
    pthread_cleanup_pop(0);
    if (status == SNECK_OK)
        snk_retirement_drop(snk_retirement_begin(claim));
    else
        sneck_lock_free(claim);
    return status;
}

sneck_status sneck_latch_wait(sneck_latch *latch, int64_t wait_ms, sneck_error *error)
{
    sneck_status status = check(latch, error);
    if (status == SNECK_OK)
        status = snk_wait_check(wait_ms, error);
    if (status != SNECK_OK)
        return status;
    snk_tallied tallied;
    snk_tally tally = tally_of(latch, SNK_TALLY_READ, 0);
    status = snk_client_tally(latch->client, &tally, &tallied, error);
    if (status != SNECK_OK || tallied.count == 0)
        return status;
    if (wait_ms == 0)
        return snk_fail(error, SNECK_BUSY, 0, "the latch %.120s has %lld left to be counted down", latch->name,
                        (long long)tallied.count);
    return wait_in_queue(latch, wait_ms, error);
}
