/* Sleepers that receive messages themselves. pubsub_parts.h says how the role is handed over. */
#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/futex.h"
#include "redis/pubsub_parts.h"

#define POLLING ((uintptr_t)1)

/* ---- The thread's side ---- */

bool snk_redis_hearing_begin(snk_redis_pubsub *pubsub)
{
    pthread_mutex_lock(&pubsub->mutex);
    bool free = pubsub->receiver == SNK_REDIS_RECEIVER_NONE;
    if (free)
        pubsub->receiver = SNK_REDIS_RECEIVER_THREAD;
    pthread_mutex_unlock(&pubsub->mutex);
    return free;
}

void snk_redis_hearing_end(snk_redis_pubsub *pubsub)
{
    pthread_mutex_lock(&pubsub->mutex);
    pubsub->receiver = SNK_REDIS_RECEIVER_NONE;
    pthread_mutex_unlock(&pubsub->mutex);
}

bool snk_redis_hearing_is_needed_locked(const snk_redis_pubsub *pubsub)
{
    return pubsub->receiver != SNK_REDIS_RECEIVER_SLEEPER &&
           (pubsub->asked_at_ns != 0 || pubsub->deferred > 0 || !pubsub->has_sleepers);
}

void snk_redis_hearing_hush_locked(snk_redis_pubsub *pubsub)
{
    atomic_store_explicit(&pubsub->hushed, true, memory_order_release);
    while (pubsub->receiver == SNK_REDIS_RECEIVER_SLEEPER) {
        eventfd_write(pubsub->rouse_fd, 1);
        pthread_cond_wait(&pubsub->changed, &pubsub->mutex);
    }
}

/* ---- The sleeper's side ---- */

typedef struct sleeper {
    snk_redis_pubsub *pubsub;
    _Atomic uint32_t *word;
    uint32_t expected;
    int64_t until_ns;
    int cancel_state; /* the caller's */
    bool receives;
} sleeper;

/* Nobody receives any more, but somebody waits for a message, or the server is to answer. */
static void call_thread_locked(snk_redis_pubsub *pubsub)
{
    bool is_needed = pubsub->deferred > 0 || pubsub->asked_at_ns != 0;
    if (!is_needed || pubsub->thread_looks || pubsub->receiver != SNK_REDIS_RECEIVER_NONE)
        return;
    pubsub->thread_looks = true;
    eventfd_write(pubsub->wake_fd, 1);
}

static void arrive(sleeper *self, bool may_receive)
{
    snk_redis_pubsub *pubsub = self->pubsub;
    pthread_mutex_lock(&pubsub->mutex);
    pubsub->waiters++;
    pubsub->has_sleepers = true;
    self->receives = may_receive && pubsub->connected && !pubsub->failed && !pubsub->closing &&
                     pubsub->receiver == SNK_REDIS_RECEIVER_NONE &&
                     !atomic_load_explicit(&pubsub->hushed, memory_order_acquire);
    if (self->receives)
        pubsub->receiver = SNK_REDIS_RECEIVER_SLEEPER;
    else
        pubsub->deferred++;
    call_thread_locked(pubsub);
    pthread_mutex_unlock(&pubsub->mutex);
}

/* Also when the thread is cancelled in its sleep. */
static void leave(void *argument)
{
    const sleeper *self = argument;
    snk_redis_pubsub *pubsub = self->pubsub;
    pthread_mutex_lock(&pubsub->mutex);
    pubsub->waiters--;
    if (self->receives) {
        atomic_store_explicit(&pubsub->sleeper, 0, memory_order_release);
        pubsub->receiver = SNK_REDIS_RECEIVER_NONE;
    } else {
        pubsub->deferred--;
    }
    call_thread_locked(pubsub);
    if (pubsub->closing || atomic_load_explicit(&pubsub->hushed, memory_order_acquire))
        pthread_cond_broadcast(&pubsub->changed);
    pthread_mutex_unlock(&pubsub->mutex);
}

static bool is_called(const sleeper *self)
{
    return atomic_load_explicit(self->word, memory_order_acquire) != self->expected ||
           atomic_load_explicit(&self->pubsub->hushed, memory_order_acquire);
}

/* The only place where a receiver may be cancelled: between messages. */
static long poll_cancellably(const sleeper *self, struct pollfd polled[2])
{
    struct timespec limit;
    const struct timespec *limit_pointer = NULL;
    if (self->until_ns != SNK_NEVER_NS) {
        int64_t left_ns = self->until_ns - snk_now_ns();
        limit = snk_timespec(left_ns > 0 ? left_ns : 0);
        limit_pointer = &limit;
    }
    pthread_setcancelstate(self->cancel_state, NULL);
    const snk_syscall call = { .first = polled, .second = 2, .third = limit_pointer };
    long count = snk_wait_cancellably(SYS_ppoll, &call);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    return count;
}

/* False: the connection is over. */
static bool receive_until_called(const sleeper *self, sneck_error *error)
{
    snk_redis_pubsub *pubsub = self->pubsub;
    uintptr_t address = (uintptr_t)self->word;
    for (;;) {
        (void)atomic_exchange_explicit(&pubsub->sleeper, address | POLLING, memory_order_acq_rel);
        if (is_called(self))
            return true;
        struct pollfd polled[] = { { .fd = pubsub->wire.fd, .events = POLLIN },
                                   { .fd = pubsub->rouse_fd, .events = POLLIN } };
        long count = poll_cancellably(self, polled);
        atomic_store_explicit(&pubsub->sleeper, address, memory_order_release);
        if (count > 0 && polled[1].revents != 0) {
            eventfd_t value;
            eventfd_read(pubsub->rouse_fd, &value);
        }
        if (count > 0 && polled[0].revents != 0 && !snk_redis_pubsub_receive(pubsub, error))
            return false;
        if (snk_now_ns() >= self->until_ns)
            return true;
    }
}

static void report_failure(snk_redis_pubsub *pubsub, const sneck_error *error)
{
    pthread_mutex_lock(&pubsub->mutex);
    pubsub->failed = true;
    pubsub->last_error = *error;
    pthread_mutex_unlock(&pubsub->mutex);
    eventfd_write(pubsub->wake_fd, 1);
}

static void sleep_on_word(const sleeper *self)
{
    int64_t left_ns = self->until_ns == SNK_NEVER_NS ? SNK_NEVER_NS : self->until_ns - snk_now_ns();
    const snk_futex_word word = { .word = self->word, .expected = self->expected };
    if (left_ns <= 0)
        return;
    pthread_setcancelstate(self->cancel_state, NULL);
    (void)snk_futex_wait_any(&word, 1, left_ns);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
}

void snk_redis_pubsub_sleep(snk_redis_pubsub *pubsub, const snk_redis_nap *nap)
{
    sleeper self = { .pubsub = pubsub, .word = nap->word, .expected = nap->expected, .until_ns = nap->until_ns };
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &self.cancel_state);
    arrive(&self, nap->may_receive);
    sneck_error error;
    pthread_cleanup_push(leave, &self);
    if (!self.receives)
        sleep_on_word(&self);
    else if (!receive_until_called(&self, &error))
        report_failure(pubsub, &error);
    pthread_cleanup_pop(1);
    pthread_setcancelstate(self.cancel_state, NULL);
}

bool snk_redis_pubsub_rouse(snk_redis_pubsub *pubsub, const _Atomic uint32_t *word)
{
    uintptr_t address = (uintptr_t)word;
    uintptr_t found = atomic_fetch_or_explicit(&pubsub->sleeper, 0, memory_order_acq_rel);
    if ((found & ~POLLING) != address)
        return false;
    if ((found & POLLING) != 0)
        eventfd_write(pubsub->rouse_fd, 1);
    return true;
}
