#include "client/retirement.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/futex.h"

struct snk_retirement {
    _Atomic unsigned references; /* of whoever began it, and of the release */
    _Atomic uint32_t is_over;    /* a futex; then `result` stays */
    sneck_lock *lock;            /* owned by the release */
    sneck_error result;
};

static void use_up(sneck_lock *lock)
{
    snk_entry *entry = lock->entry;
    (void)pthread_mutex_lock(&entry->mutex);
    if (entry->machine.hold != NULL)
        entry->machine.hold->terms.is_unused = false;
    (void)pthread_mutex_unlock(&entry->mutex);
}

void snk_retirement_drop(snk_retirement *retirement)
{
    if (retirement != NULL && atomic_fetch_sub(&retirement->references, 1) == 1)
        free(retirement);
}

static void end(void *context, sneck_status status, const sneck_error *error)
{
    snk_retirement *self = context;
    if (status == SNECK_OK)
        (void)snk_ok(&self->result);
    else
        (void)snk_fail_as(&self->result, error);
    sneck_lock_free(self->lock);
    atomic_store(&self->is_over, 1);
    snk_futex_wake(&self->is_over, INT_MAX, false);
    snk_retirement_drop(self);
}

snk_retirement *snk_retirement_begin(sneck_lock *lock)
{
    use_up(lock);
    snk_retirement *made = calloc(1, sizeof *made);
    if (made == NULL) { /* then nobody could wait for it later */
        (void)sneck_release(lock, NULL);
        sneck_lock_free(lock);
        return NULL;
    }
    made->lock = lock;
    atomic_init(&made->references, 2);
    sneck_error error;
    sneck_status status = sneck_release_async(lock, end, made, NULL, &error);
    if (status != SNECK_OK)
        end(made, status, &error);
    return made;
}

sneck_status snk_retirement_await(snk_retirement *retirement, sneck_error *error)
{
    const snk_futex_word word = { .word = &retirement->is_over, .expected = 0 };
    int state = 0;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    while (atomic_load(&retirement->is_over) == 0)
        (void)snk_futex_wait_any(&word, 1, SNK_NEVER_NS);
    (void)pthread_setcancelstate(state, NULL);
    sneck_error result = retirement->result;
    snk_retirement_drop(retirement);
    return result.status == SNECK_OK ? snk_ok(error) : snk_fail_as(error, &result);
}
