#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/name.h"
#include "client/retirement.h"
#include "client/tally.h"

struct sneck_semaphore {
    sneck_client *client;       /* a reference */
    sneck_lock_options options; /* of each permit; `why` is the semaphore's */
    snk_why *why;               /* a reference; NULL: none */
    bool leased;
    char name[];
};

struct sneck_permit {
    sneck_client *client;   /* a reference */
    sneck_lock *claim;      /* owned; NULL: of a plain semaphore, where the units are taken for good */
    snk_retirement *taking; /* owned; NULL for a leased one: the end of that claim */
    uint32_t units;
    char name[];
};

/* ---- Semaphores ---- */

static sneck_status load_options(const sneck_client *client, const sneck_semaphore_options *options,
                                 sneck_semaphore_options *chosen, sneck_lock_options *of_permits, sneck_error *error)
{
    *chosen = (sneck_semaphore_options)SNECK_SEMAPHORE_OPTIONS_INIT;
    sneck_status status = SNECK_OK;
    if (options != NULL)
        status = snk_options_copy(chosen, options, sizeof *chosen, "SNECK_SEMAPHORE_OPTIONS", error);
    if (status != SNECK_OK)
        return status;
    sneck_lock_options wanted = SNECK_LOCK_OPTIONS_INIT;
    wanted.lease_ms = chosen->lease_ms;
    wanted.renew_ms = chosen->renew_ms;
    wanted.fair = chosen->fair;
    wanted.why = chosen->why;
    wanted.owner = SNECK_OWNER_HANDLE;
    return snk_lock_options_load(of_permits, &wanted, &client->settings, error);
}

static sneck_semaphore *new_semaphore(sneck_client *client, const char *name, const sneck_lock_options *options)
{
    size_t size = strlen(name) + 1;
    sneck_semaphore *semaphore = calloc(1, sizeof *semaphore + size);
    bool has_why = options->why != NULL && options->why[0] != '\0';
    snk_why *why = semaphore != NULL && has_why ? snk_why_new(options->why) : NULL;
    if (semaphore == NULL || (has_why && why == NULL)) {
        free(semaphore);
        return NULL;
    }
    memcpy(semaphore->name, name, size);
    semaphore->options = *options;
    semaphore->options.why = snk_why_text(why);
    semaphore->why = why;
    semaphore->client = client;
    snk_client_ref(client);
    return semaphore;
}

sneck_status sneck_semaphore_open(sneck_client *client, const char *name, const sneck_semaphore_options *options,
                                  sneck_semaphore **semaphore_out, sneck_error *error)
{
    if (semaphore_out == NULL)
        return snk_fail(error, SNECK_INVALID, 0, "semaphore_out is NULL: give the address of a sneck_semaphore *");
    *semaphore_out = NULL;
    sneck_semaphore_options chosen;
    sneck_lock_options of_permits;
    sneck_status status = snk_client_check(client, error);
    if (status == SNECK_OK)
        status = snk_name_check(name, error);
    if (status == SNECK_OK)
        status = load_options(client, options, &chosen, &of_permits, error);
    if (status == SNECK_OK)
        status = snk_mode_check(client, chosen.leased ? SNK_MODE_PERMIT : SNK_MODE_TAKE, error);
    if (status != SNECK_OK)
        return status;
    sneck_semaphore *semaphore = new_semaphore(client, name, &of_permits);
    if (semaphore == NULL)
        return snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory for a semaphore");
    semaphore->leased = chosen.leased;
    *semaphore_out = semaphore;
    return snk_ok(error);
}

void sneck_semaphore_free(sneck_semaphore *semaphore)
{
    if (semaphore == NULL)
        return;
    snk_client_unref(semaphore->client);
    snk_why_unref(semaphore->why);
    free(semaphore);
}

static sneck_status check(const sneck_semaphore *semaphore, sneck_error *error)
{
    if (semaphore == NULL)
        return snk_fail(error, SNECK_INVALID, 0, "the semaphore is NULL: make it with sneck_semaphore_open first");
    return snk_client_check(semaphore->client, error);
}

static sneck_status count(sneck_semaphore *semaphore, snk_tally_verb verb, int64_t value, snk_tallied *tallied,
                          sneck_error *error)
{
    snk_tally tally = { .object = SNK_OBJECT_LOCK, .verb = verb, .name = semaphore->name, .value = value };
    return snk_client_tally(semaphore->client, &tally, tallied, error);
}

sneck_status sneck_semaphore_set_permits(sneck_semaphore *semaphore, int64_t permits, sneck_error *error)
{
    snk_tallied tallied;
    sneck_status status = check(semaphore, error);
    if (status == SNECK_OK && (permits < 0 || permits > INT32_MAX))
        status = snk_fail(error, SNECK_INVALID, 0, "%lld permits: give 0 to %d", (long long)permits, INT32_MAX);
    return status == SNECK_OK ? count(semaphore, SNK_TALLY_SET, permits, &tallied, error) : status;
}

sneck_status sneck_semaphore_add(sneck_semaphore *semaphore, uint32_t units, sneck_error *error)
{
    snk_tallied tallied;
    sneck_status status = check(semaphore, error);
    if (status == SNECK_OK && semaphore->leased)
        status = snk_fail(error, SNECK_INVALID, 0,
                          "permits of a leased semaphore go back by sneck_permit_release; to have more of them use "
                          "sneck_semaphore_set_permits");
    if (status == SNECK_OK && (units < 1 || units > INT32_MAX))
        status = snk_fail(error, SNECK_INVALID, 0, "%u units: give 1 to %d", units, INT32_MAX);
    return status == SNECK_OK ? count(semaphore, SNK_TALLY_ADD, units, &tallied, error) : status;
}

sneck_status sneck_semaphore_available(sneck_semaphore *semaphore, int64_t *count_out, sneck_error *error)
{
    if (count_out == NULL)
        return snk_fail(error, SNECK_INVALID, 0, "count_out is NULL: give the address of an int64_t");
    *count_out = 0;
    snk_tallied tallied = { 0 };
    sneck_status status = check(semaphore, error);
    if (status == SNECK_OK)
        status = count(semaphore, SNK_TALLY_READ, 0, &tallied, error);
    if (status == SNECK_OK && tallied.count > tallied.used)
        *count_out = tallied.count - tallied.used;
    return status;
}

/* ---- Permits ---- */

static sneck_permit *new_permit(const sneck_semaphore *semaphore)
{
    size_t size = strlen(semaphore->name) + 1;
    sneck_permit *permit = calloc(1, sizeof *permit + size);
    if (permit == NULL)
        return NULL;
    memcpy(permit->name, semaphore->name, size);
    permit->client = semaphore->client;
    snk_client_ref(permit->client);
    return permit;
}

static void free_permit(sneck_permit *permit)
{
    sneck_lock_free(permit->claim);
    snk_retirement_drop(permit->taking);
    snk_client_unref(permit->client);
    free(permit);
}

static void free_cancelled(void *permit)
{
    free_permit(permit);
}

static sneck_status take(const sneck_semaphore *semaphore, sneck_permit *permit, uint32_t units, int64_t wait_ms,
                         sneck_error *error)
{
    snk_entry_key key = {
        .object = SNK_OBJECT_LOCK,
        .mode = semaphore->leased ? SNK_MODE_PERMIT : SNK_MODE_TAKE,
        .units = units,
    };
    sneck_status status =
        snk_claim_open(semaphore->client, semaphore->name, key, &semaphore->options, &permit->claim, error);
    if (status != SNECK_OK)
        return status;
    pthread_cleanup_push(free_cancelled, permit);
    status = sneck_acquire(permit->claim, wait_ms, error);
    pthread_cleanup_pop(0);
    if (status != SNECK_OK)
        return status;
    permit->units = units > 0 ? units : snk_single_look(permit->claim).units;
    if (!semaphore->leased) {
        permit->taking = snk_retirement_begin(permit->claim);
        permit->claim = NULL;
    }
    return SNECK_OK;
}

static sneck_status acquire(const sneck_semaphore *semaphore, uint32_t units, int64_t wait_ms,
                            sneck_permit **permit_out, sneck_error *error)
{
    sneck_permit *permit = new_permit(semaphore);
    if (permit == NULL)
        return snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory for a permit");
    sneck_status status = take(semaphore, permit, units, wait_ms, error);
    if (status != SNECK_OK)
        free_permit(permit);
    else
        *permit_out = permit;
    return status;
}

static sneck_status check_permit_out(sneck_permit **permit_out, sneck_error *error)
{
    if (permit_out == NULL)
        return snk_fail(error, SNECK_INVALID, 0, "permit_out is NULL: give the address of a sneck_permit *");
    *permit_out = NULL;
    return SNECK_OK;
}

sneck_status sneck_semaphore_acquire(sneck_semaphore *semaphore, uint32_t units, int64_t wait_ms,
                                     sneck_permit **permit_out, sneck_error *error)
{
    sneck_status status = check_permit_out(permit_out, error);
    if (status == SNECK_OK)
        status = check(semaphore, error);
    if (status == SNECK_OK)
        status = snk_wait_check(wait_ms, error);
    if (status == SNECK_OK && (units < 1 || units > INT32_MAX))
        status = snk_fail(error, SNECK_INVALID, 0, "%u units: give 1 to %d", units, INT32_MAX);
    if (semaphore == NULL || status != SNECK_OK)
        return status;
    return acquire(semaphore, units, wait_ms, permit_out, error);
}

sneck_status sneck_semaphore_drain(sneck_semaphore *semaphore, sneck_permit **permit_out, sneck_error *error)
{
    sneck_status status = check_permit_out(permit_out, error);
    if (status == SNECK_OK)
        status = check(semaphore, error);
    if (status == SNECK_OK && !semaphore->leased)
        status = snk_fail(error, SNECK_INVALID, 0,
                          "a plain semaphore is drained by sneck_semaphore_set_permits(semaphore, 0, error)");
    if (semaphore == NULL || status != SNECK_OK)
        return status;
    return acquire(semaphore, 0, 0, permit_out, error);
}

/* Not before they are taken for good: with a process that dies in between they would come back twice. */
static sneck_status give_back_plain(sneck_permit *permit, sneck_error *error)
{
    snk_tallied tallied;
    sneck_status status = permit->taking == NULL ? SNECK_OK : snk_retirement_await(permit->taking, error);
    permit->taking = NULL;
    if (status != SNECK_OK)
        return status;
    snk_tally tally = {
        .object = SNK_OBJECT_LOCK,
        .verb = SNK_TALLY_ADD,
        .name = permit->name,
        .value = permit->units,
    };
    return snk_client_tally(permit->client, &tally, &tallied, error);
}

sneck_status sneck_permit_release(sneck_permit *permit, sneck_error *error)
{
    if (permit == NULL)
        return snk_fail(error, SNECK_INVALID, 0, "the permit is NULL: have it from sneck_semaphore_acquire first");
    sneck_status status = SNECK_OK;
    if (snk_forkmark_is_child(&permit->client->fork))
        status = snk_fail(error, SNECK_NOT_OWNER, 0, "a child of fork() owns nothing; open a client of its own");
    else if (permit->claim != NULL)
        status = sneck_release(permit->claim, error);
    else
        status = give_back_plain(permit, error);
    free_permit(permit);
    return status;
}

sneck_status sneck_permit_extend(sneck_permit *permit, int64_t lease_ms, sneck_error *error)
{
    if (permit == NULL)
        return snk_fail(error, SNECK_INVALID, 0, "the permit is NULL: have it from sneck_semaphore_acquire first");
    if (permit->claim == NULL)
        return snk_fail(error, SNECK_INVALID, 0, "a permit of a plain semaphore has no lease to prolong");
    return sneck_extend(permit->claim, lease_ms, error);
}

bool sneck_permit_is_held(const sneck_permit *permit)
{
    return permit != NULL && (permit->claim == NULL || sneck_is_held(permit->claim));
}

uint32_t sneck_permit_units(const sneck_permit *permit)
{
    return permit == NULL ? 0 : permit->units;
}

uint64_t sneck_permit_token(const sneck_permit *permit)
{
    return permit == NULL || permit->claim == NULL ? 0 : sneck_token(permit->claim);
}

int64_t sneck_permit_remaining_ms(const sneck_permit *permit)
{
    return permit == NULL || permit->claim == NULL ? 0 : sneck_remaining_ms(permit->claim);
}

int sneck_permit_lost_fd(sneck_permit *permit)
{
    return permit == NULL || permit->claim == NULL ? -1 : sneck_lost_fd(permit->claim);
}
