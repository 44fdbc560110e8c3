/*
 * Conditions. Whoever waits has a claim in the condition's queue before it gives the lock up, so that no signal of
 * somebody who holds the lock can be missed. A signal is granted to the first claim of the queue; it is used up when
 * its receiver has the lock again, and goes to the next one if the receiver dies, gives up or cannot have the lock again
 * before that.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/name.h"
#include "client/perform.h"
#include "client/retirement.h"
#include "client/tally.h"
#include "client/wait.h"

#define CONDITION_NAME_LENGTH_MAX 64

struct sneck_condition {
    sneck_lock *lock;           /* borrowed */
    sneck_client *client;       /* a reference */
    sneck_lock_options options; /* of those who wait */
    char name[SNK_NAME_LENGTH_MAX + 1];
};

/* ---- Life ---- */

static sneck_status check_open(sneck_lock *lock, const char *name, sneck_condition **condition_out, sneck_error *error)
{
    if (condition_out == NULL)
        return snk_fail(error, SNECK_INVALID, 0, "condition_out is NULL: give the address of a sneck_condition *");
    *condition_out = NULL;
    sneck_status status = snk_lock_check(lock, error);
    if (status != SNECK_OK)
        return status;
    if (lock->entry == NULL || lock->entry->key.mode != SNK_MODE_EXCLUSIVE)
        return snk_fail(error, SNECK_INVALID, 0,
                        "a condition needs one lock that is held alone: sneck_mutex, or sneck_write_lock");
    status = snk_text_check(name, "the condition's name", 1, CONDITION_NAME_LENGTH_MAX, error);
    if (name == NULL || status != SNECK_OK)
        return status;
    if (strchr(name, '/') != NULL)
        return snk_fail(error, SNECK_INVALID, 0, "the condition's name must not have a '/'");
    if (strlen(lock->entry->name) + 1 + strlen(name) > SNK_NAME_LENGTH_MAX)
        status = snk_fail(error, SNECK_INVALID, 0, "the names of lock and condition are longer than %d bytes together",
                          SNK_NAME_LENGTH_MAX - 1);
    return status == SNECK_OK ? snk_mode_check(lock->client, SNK_MODE_TAKE, error) : status;
}

sneck_status sneck_condition_open(sneck_lock *lock, const char *name, sneck_condition **condition_out,
                                  sneck_error *error)
{
    sneck_status status = check_open(lock, name, condition_out, error);
    if (status != SNECK_OK)
        return status;
    sneck_condition *condition = calloc(1, sizeof *condition);
    if (condition == NULL)
        return snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory for a condition");
    sneck_lock_options wanted = SNECK_LOCK_OPTIONS_INIT;
    wanted.lease_ms = lock->terms.lease_ns / SNK_NS_PER_MS;
    wanted.owner = SNECK_OWNER_HANDLE;
    status = snk_lock_options_load(&condition->options, &wanted, &lock->client->settings, error);
    if (status != SNECK_OK) {
        free(condition);
        return status;
    }
    (void)snprintf(condition->name, sizeof condition->name, "%s/%s", lock->entry->name, name);
    condition->lock = lock;
    condition->client = lock->client;
    snk_client_ref(condition->client);
    *condition_out = condition;
    return snk_ok(error);
}

void sneck_condition_free(sneck_condition *condition)
{
    if (condition == NULL)
        return;
    snk_client_unref(condition->client);
    free(condition);
}

static sneck_status check(const sneck_condition *condition, sneck_error *error)
{
    if (condition == NULL)
        return snk_fail(error, SNECK_INVALID, 0, "the condition is NULL: make it with sneck_condition_open first");
    return snk_client_check(condition->client, error);
}

/* ---- Waiting ---- */

typedef struct waiting {
    sneck_condition *condition;
    sneck_lock *claim;
    unsigned levels;  /* that the caller had, and has to get back */
    bool gave_up;     /* the lock was released */
    bool interrupted; /* while it took the lock again */
    sneck_error released;
} waiting;

/* False: the lock was lost, or the store could not be told. */
static bool release_levels(void *context)
{
    waiting *self = context;
    self->gave_up = true;
    for (unsigned i = 0; i < self->levels && self->released.status == SNECK_OK; i++)
        (void)sneck_release(self->condition->lock, &self->released);
    return self->released.status == SNECK_OK;
}

/* Whoever is interrupted here has the lock all the same when it returns, as whoever waits for a condition expects. */
static sneck_status acquire_level(waiting *self, sneck_error *error)
{
    sneck_status status = sneck_acquire(self->condition->lock, SNECK_FOREVER, error);
    while (status == SNECK_CANCELED && snk_client_check(self->condition->client, NULL) == SNECK_OK) {
        self->interrupted = true;
        status = sneck_acquire(self->condition->lock, SNECK_FOREVER, error);
    }
    return status;
}

static sneck_status acquire_levels(waiting *self, sneck_error *error)
{
    sneck_status status = SNECK_OK;
    for (unsigned i = 0; i < self->levels && status == SNECK_OK; i++)
        status = acquire_level(self, error);
    return status;
}

/* Cancelled while it waits: as with pthread_cond_wait, the thread has the lock when its cleanup handlers run. */
static void on_cancel(void *context)
{
    waiting *self = context;
    if (self->gave_up)
        (void)acquire_levels(self, NULL);
    sneck_lock_free(self->claim);
}

static sneck_status wait_for_signal(waiting *self, int64_t wait_ms, sneck_error *error)
{
    sneck_status status = snk_client_start(self->condition->client, error);
    if (status != SNECK_OK)
        return status;
    snk_wait_hook hook = { .registered = release_levels, .context = self };
    pthread_cleanup_push(on_cancel, self);
    status = snk_wait_acquire(self->claim, &self->claim->terms, &(snk_asking){ .wait_ms = wait_ms }, &hook, error);
    pthread_cleanup_pop(0);
    return status;
}

static sneck_status take_lock_again(waiting *self, sneck_status waited, sneck_error *error)
{
    if (self->released.status != SNECK_OK)
        return snk_fail_as(error, &self->released);
    if (!self->gave_up)
        return waited;
    sneck_error taken;
    int state = 0;
    /* Whoever is cancelled here would leave without the lock that its cleanup handlers believe it has. */
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    sneck_status status = acquire_levels(self, &taken);
    (void)pthread_setcancelstate(state, NULL);
    if (status != SNECK_OK)
        return snk_fail_as(error, &taken);
    if (self->interrupted && waited == SNECK_OK)
        return snk_fail(error, SNECK_CANCELED, 0, "interrupted while it took the lock again");
    return waited;
}

sneck_status sneck_condition_wait(sneck_condition *condition, int64_t wait_ms, sneck_error *error)
{
    sneck_status status = check(condition, error);
    if (status == SNECK_OK)
        status = snk_wait_check(wait_ms, error);
    if (status != SNECK_OK)
        return status;
    waiting self = { .condition = condition, .levels = sneck_hold_count(condition->lock) };
    if (self.levels == 0)
        return snk_fail(error, SNECK_NOT_OWNER, 0, "only who holds the lock can wait for a condition of it");
    if (wait_ms == 0)
        return snk_fail(error, SNECK_TIMEOUT, 0, "not signalled in no time");
    snk_entry_key key = { .object = SNK_OBJECT_CONDITION, .mode = SNK_MODE_TAKE, .units = 1 };
    status = snk_claim_open(condition->client, condition->name, key, &condition->options, &self.claim, error);
    if (status != SNECK_OK)
        return status;
    self.claim->tag = condition;
    status = wait_for_signal(&self, wait_ms, error);
    status = take_lock_again(&self, status, error);
    /* Used up only now, with the lock in hand: else it goes to somebody else. */
    if (status == SNECK_OK)
        snk_retirement_drop(snk_retirement_begin(self.claim));
    else
        sneck_lock_free(self.claim);
    return status;
}

/* ---- Signals ---- */

static sneck_status send_signal(sneck_condition *condition, int64_t count, sneck_error *error)
{
    snk_tallied tallied;
    sneck_status status = check(condition, error);
    snk_tally tally = {
        .object = SNK_OBJECT_CONDITION,
        .verb = SNK_TALLY_SIGNAL,
        .value = count,
    };
    if (status != SNECK_OK)
        return status;
    tally.name = condition->name;
    return snk_client_tally(condition->client, &tally, &tallied, error);
}

sneck_status sneck_condition_signal(sneck_condition *condition, sneck_error *error)
{
    return send_signal(condition, 1, error);
}

sneck_status sneck_condition_broadcast(sneck_condition *condition, sneck_error *error)
{
    return send_signal(condition, INT32_MAX, error);
}

void sneck_condition_interrupt(sneck_condition *condition)
{
    if (check(condition, NULL) != SNECK_OK)
        return;
    for (snk_entry *entry = snk_registry_next_named(&condition->client->registry, condition->name, NULL); entry != NULL;
         entry = snk_registry_next_named(&condition->client->registry, condition->name, entry)) {
        snk_turn turn;
        snk_event event = { .kind = SNK_EVENT_INTERRUPT, .tag = condition };
        snk_turn_run(&turn, condition->client, entry, &event);
        snk_perform(&turn, NULL);
    }
}
