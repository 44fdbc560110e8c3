#include "client/retirement.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/futex.h"
#include "client/client.h"
#include "client/perform.h"

struct snk_retirement {
    _Atomic unsigned references; /* of whoever began it, and of the release */
    _Atomic uint32_t is_over;    /* a futex: the release has been answered, or was not; then `result` stays */
    sneck_lock *lock;            /* owned */
    snk_id claim;
    int64_t lease_ns;
    int64_t deadline_ns; /* until then the lease cannot have ended in the store */
    sneck_error result;
};

static void use_up(snk_retirement *self)
{
    snk_entry *entry = self->lock->entry;
    (void)pthread_mutex_lock(&entry->mutex);
    snk_hold *hold = entry->machine.hold;
    if (hold != NULL) {
        hold->terms.is_unused = false;
        self->claim = hold->claim;
        self->lease_ns = hold->terms.lease_ns;
    }
    (void)pthread_mutex_unlock(&entry->mutex);
    self->deadline_ns = snk_now_ns() + sneck_remaining_ms(self->lock) * SNK_NS_PER_MS;
}

void snk_retirement_drop(snk_retirement *retirement)
{
    if (retirement == NULL || atomic_fetch_sub(&retirement->references, 1) != 1)
        return;
    sneck_lock_free(retirement->lock);
    free(retirement);
}

static void end(void *context, sneck_status status, const sneck_error *error)
{
    snk_retirement *self = context;
    if (status == SNECK_OK)
        (void)snk_ok(&self->result);
    else
        (void)snk_fail_as(&self->result, error);
    atomic_store(&self->is_over, 1);
    snk_futex_wake(&self->is_over, INT_MAX, false);
    snk_retirement_drop(self);
}

snk_retirement *snk_retirement_begin(sneck_lock *lock)
{
    snk_retirement *made = calloc(1, sizeof *made);
    if (made == NULL) { /* then nobody could wait for it later */
        snk_retirement now = { .lock = lock };
        use_up(&now);
        (void)sneck_release(lock, NULL);
        sneck_lock_free(lock);
        return NULL;
    }
    made->lock = lock;
    atomic_init(&made->references, 2);
    use_up(made);
    sneck_error error;
    sneck_status status = sneck_release_async(lock, end, made, NULL, &error);
    if (status != SNECK_OK)
        end(made, status, &error);
    return made;
}

static void await_end(snk_retirement *self)
{
    const snk_futex_word word = { .word = &self->is_over, .expected = 0 };
    while (atomic_load(&self->is_over) == 0)
        (void)snk_futex_wait_any(&word, 1, SNK_NEVER_NS);
}

/*
 * The release was not answered, and is being repeated. One that uses nothing up takes back what is still there. If nothing
 * is, and the lease cannot have ended, a repeated one has used it up.
 */
static sneck_status take_back(snk_retirement *self, bool *returned_out, sneck_error *error)
{
    sneck_client *client = self->lock->client;
    const snk_entry *entry = self->lock->entry;
    snk_send send = { .ask = SNK_ASK_RELEASE, .claim = self->claim, .lease_ns = self->lease_ns, .was_held = true };
    const snk_claim claim = { .name = entry->name, .why = "", .grip = snk_entry_grip(entry), .send = send };
    snk_answer answer;
    sneck_status status = snk_client_enter(client, error);
    if (status != SNECK_OK)
        return status;
    snk_store_ask(client->store, &claim, &answer);
    snk_gate_leave(&client->gate);
    snk_answer_settle(&answer);
    if (answer.kind == SNK_ANSWER_FAILED || answer.kind == SNK_ANSWER_UNCERTAIN)
        return snk_fail_as(error, &answer.error);
    *returned_out = answer.kind == SNK_ANSWER_DONE;
    if (*returned_out || snk_now_ns() < self->deadline_ns)
        return snk_ok(error);
    return snk_fail(error, SNECK_UNKNOWN, 0, "the store could not be told in time that this was taken for good");
}

sneck_status snk_retirement_settle(snk_retirement *retirement, bool *returned_out, sneck_error *error)
{
    int state = 0;
    *returned_out = false;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    await_end(retirement);
    sneck_status status = retirement->result.status;
    if (status == SNECK_UNAVAILABLE || status == SNECK_UNKNOWN)
        status = take_back(retirement, returned_out, error);
    else if (status != SNECK_OK)
        (void)snk_fail_as(error, &retirement->result);
    snk_retirement_drop(retirement);
    (void)pthread_setcancelstate(state, NULL);
    return status;
}
