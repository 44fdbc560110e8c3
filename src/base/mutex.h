/* Locking a mutex with a time limit of CLOCK_MONOTONIC. */
#ifndef SNK_BASE_MUTEX_H
#define SNK_BASE_MUTEX_H

#include <errno.h>
#include <pthread.h>
#include <stdint.h>

#include "base/clock.h"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SNK_THREAD_SANITIZER 1
#endif
#elif defined(__SANITIZE_THREAD__)
#define SNK_THREAD_SANITIZER 1
#endif

/* As pthread_mutex_clocklock: 0, ETIMEDOUT, or EOWNERDEAD with a robust mutex. */
static inline int snk_mutex_lock_until(pthread_mutex_t *mutex, int64_t limit_ns)
{
#ifdef SNK_THREAD_SANITIZER
    /* It does not know pthread_mutex_clocklock, and would see every later access as unlocked. */
    int result = pthread_mutex_trylock(mutex);
    while (result == EBUSY && snk_clock_read_ns(CLOCK_MONOTONIC) < limit_ns) {
        const struct timespec pause = { .tv_nsec = 100000 };
        (void)nanosleep(&pause, NULL);
        result = pthread_mutex_trylock(mutex);
    }
    return result == EBUSY ? ETIMEDOUT : result;
#else
    const struct timespec limit = snk_timespec(limit_ns);
    return pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &limit);
#endif
}

#endif
