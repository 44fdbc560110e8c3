/* The futex system calls. Words are 32 bits. Times are CLOCK_BOOTTIME-style durations turned into CLOCK_MONOTONIC. */
#ifndef SNK_BASE_FUTEX_H
#define SNK_BASE_FUTEX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SNK_FUTEX_WORDS_MAX 40

typedef struct snk_futex_word {
    _Atomic uint32_t *word;
    uint32_t expected;
    bool shared; /* between processes */
} snk_futex_word;

/*
 * Sleeps until one of the words was woken or is not what was expected, or for `timeout_ns` (SNK_NEVER_NS: no limit).
 * It may return for no reason. A cancellation point. False when this kernel cannot wait on several words (before
 * Linux 5.16) and `count` > 1: nothing was waited for.
 */
bool snk_futex_wait_any(const snk_futex_word words[], size_t count, int64_t timeout_ns);

/* Wakes up to `count` sleepers. The word may already be gone: that harms nobody. */
void snk_futex_wake(_Atomic uint32_t *word, int count, bool shared);

#endif
