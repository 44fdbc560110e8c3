/*
 * A heap of times with the thread that serves them. It is lazy: a timer that is in the heap with an earlier time stays
 * there; when it fires and nothing is due, whoever serves it arms it again. So a lock that is taken and released all
 * day touches the heap once in a renewal interval.
 */
#ifndef SNK_CLIENT_TIMERS_H
#define SNK_CLIENT_TIMERS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct snk_timer {
    _Atomic int64_t at_ns; /* written under timers.mutex; SNK_NEVER_NS: not in the heap */
    uint32_t index;        /* in the heap; under timers.mutex */
} snk_timer;

typedef struct snk_timers {
    pthread_mutex_t mutex;
    snk_timer **heap; /* owned; the earliest first */
    size_t count;
    size_t capacity;
} snk_timers;

void snk_timers_init(snk_timers *timers);
void snk_timers_deinit(snk_timers *timers);
void snk_timer_init(snk_timer *timer);

/* Makes room for `count` timers in all, so that arming cannot fail. False when out of memory. */
bool snk_timers_reserve(snk_timers *timers, size_t count);

/* The timer fires at `at_ns` at the latest. True when it is the earliest now: whoever serves the heap must be told. */
bool snk_timers_arm(snk_timers *timers, snk_timer *timer, int64_t at_ns);

/* When it fires; SNK_NEVER_NS: it is not armed. */
static inline int64_t snk_timer_at_ns(const snk_timer *timer)
{
    return atomic_load_explicit(&timer->at_ns, memory_order_relaxed);
}

/* As snk_timers_arm, without a lock where the timer fires early enough already. */
static inline bool snk_timers_arm_lazily(snk_timers *timers, snk_timer *timer, int64_t at_ns)
{
    /* A timer that is taken out at this moment is armed again by its taker, which takes our caller's mutex after us. */
    if (at_ns >= snk_timer_at_ns(timer))
        return false;
    return snk_timers_arm(timers, timer, at_ns);
}

/* Takes the earliest timer out if it is due, or returns NULL. `pin` is called for it under the mutex. */
snk_timer *snk_timers_pop(snk_timers *timers, int64_t now_ns, void (*pin)(snk_timer *timer));

/* When the earliest fires; SNK_NEVER_NS when there is none. */
int64_t snk_timers_next(snk_timers *timers);

/* Takes a timer out, unless `is_pinned` (may be NULL) says under the mutex that somebody uses it: then false. */
bool snk_timers_remove(snk_timers *timers, snk_timer *timer, bool (*is_pinned)(snk_timer *timer));

#endif
