#include "base/futex.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cancel.h"
#include "base/clock.h"

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif

#define WAITV_SIZE_U32 0x02U
#define WAITV_PRIVATE 128U

/* As struct futex_waitv of Linux 5.16, which older headers do not have. */
typedef struct waitv_entry {
    uint64_t value;
    uint64_t address;
    uint32_t flags;
    uint32_t reserved;
} waitv_entry;

static bool wait_one(const snk_futex_word *word, const struct timespec *limit)
{
    int operation = FUTEX_WAIT_BITSET | (word->shared ? 0 : FUTEX_PRIVATE_FLAG);
    const snk_syscall call = {
        .first = word->word,
        .second = operation,
        .third = (const void *)(uintptr_t)word->expected,
        .fourth = limit,
        .sixth = (long)FUTEX_BITSET_MATCH_ANY,
    };
    (void)snk_wait_cancellably(SYS_futex, &call);
    return true;
}

static bool wait_several(const snk_futex_word words[], size_t count, const struct timespec *limit)
{
    waitv_entry entries[SNK_FUTEX_WORDS_MAX];
    if (count > SNK_FUTEX_WORDS_MAX)
        count = SNK_FUTEX_WORDS_MAX;
    for (size_t i = 0; i < count; i++) {
        entries[i] = (waitv_entry){
            .value = words[i].expected,
            .address = (uint64_t)(uintptr_t)words[i].word,
            .flags = WAITV_SIZE_U32 | (words[i].shared ? 0 : WAITV_PRIVATE),
        };
    }
    const snk_syscall call = { .first = entries, .second = (long)count, .fourth = limit, .fifth = CLOCK_MONOTONIC };
    long result = snk_wait_cancellably(SYS_futex_waitv, &call);
    return result >= 0 || (errno != ENOSYS && errno != EPERM); /* EPERM: a container's filter that knows no waitv */
}

bool snk_futex_wait_any(const snk_futex_word words[], size_t count, int64_t timeout_ns)
{
    struct timespec limit;
    struct timespec *limit_pointer = NULL;
    if (timeout_ns != SNK_NEVER_NS) {
        limit = snk_timespec(snk_time_add(snk_clock_read_ns(CLOCK_MONOTONIC), timeout_ns > 0 ? timeout_ns : 0));
        limit_pointer = &limit;
    }
    return count == 1 ? wait_one(&words[0], limit_pointer) : wait_several(words, count, limit_pointer);
}

void snk_futex_wake(_Atomic uint32_t *word, int count, bool shared)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE | (shared ? 0 : FUTEX_PRIVATE_FLAG), count, NULL, NULL, 0);
}
