/* Sleeping on a word of this process and waking a sleeper. */
#ifndef SNK_REDIS_PARK_H
#define SNK_REDIS_PARK_H

#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"

/* Sleeps while *word is `expected`, for `timeout_ns` at most; may return for no reason. No cancellation point. */
static inline void snk_park(_Atomic uint32_t *word, uint32_t expected, int64_t timeout_ns)
{
    struct timespec timeout = snk_timespec(timeout_ns);
    if (timeout_ns > 0)
        (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, &timeout, NULL, 0);
}

/* Wakes one sleeper. The word may already be gone: then some other sleeper wakes for no reason, or nobody. */
static inline void snk_unpark(_Atomic uint32_t *word)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

#endif
