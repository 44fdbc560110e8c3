/*
 * How a thread sleeps until it is called: one futex word. A call is never lost, whether it comes before, during or
 * after the sleep, and one that finds the thread awake costs no system call.
 */
#ifndef SNK_CLIENT_PARKING_H
#define SNK_CLIENT_PARKING_H

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/futex.h"

#define SNK_AWAKE UINT32_C(0)
#define SNK_ASLEEP UINT32_C(1)
#define SNK_CALLED UINT32_C(2)

typedef struct snk_parking {
    _Atomic uint32_t word;
} snk_parking;

/* The thread is about to sleep while the word is SNK_ASLEEP. False: it was called, and the call is used up. */
static inline bool snk_parking_begin(snk_parking *parking)
{
    uint32_t expected = SNK_AWAKE;
    if (atomic_compare_exchange_strong_explicit(&parking->word, &expected, SNK_ASLEEP, memory_order_acq_rel,
                                                memory_order_acquire))
        return true;
    atomic_store_explicit(&parking->word, SNK_AWAKE, memory_order_relaxed);
    return false;
}

/* The thread is awake. A call that came meanwhile stays: the next snk_parking_begin uses it up. */
static inline void snk_parking_end(snk_parking *parking)
{
    uint32_t expected = SNK_ASLEEP;
    (void)atomic_compare_exchange_strong_explicit(&parking->word, &expected, SNK_AWAKE, memory_order_acq_rel,
                                                  memory_order_acquire);
}

/* True when the thread sleeps: snk_futex_wake must follow. What it is called for was written before. */
static inline bool snk_parking_call(snk_parking *parking)
{
    return atomic_exchange_explicit(&parking->word, SNK_CALLED, memory_order_acq_rel) == SNK_ASLEEP;
}

static inline void snk_parking_call_and_wake(snk_parking *parking)
{
    if (snk_parking_call(parking))
        snk_futex_wake(&parking->word, INT_MAX, false);
}

#endif
