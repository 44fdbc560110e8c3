/*
 * When a hold ends, as one atomic word: SNK_DEADLINE_NONE, SNK_DEADLINE_LOST, or a time of CLOCK_BOOTTIME in ns.
 *
 * The word goes up only by compare-and-swap from a value that is still in the future, and whoever first sees it passed
 * swaps in LOST. So no answer that sat in a buffer while the process was stopped can revive a hold: after a pause the
 * clock is looked at before the answer is.
 */
#ifndef SNK_ENGINE_DEADLINE_H
#define SNK_ENGINE_DEADLINE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/bug.h"
#include "base/limits.h"

#define SNK_DEADLINE_NONE INT64_C(0)
#define SNK_DEADLINE_LOST INT64_C(-1)

typedef struct snk_deadline {
    _Atomic int64_t at_ns; /* release stores pair with the acquire loads of readers without the machine's mutex */
} snk_deadline;

/*
 * The end of a lease that was asked for at `sent_at_ns`. It counts from before the request left, not from when the
 * answer came: the store's own clock started somewhere in between, so this can only end the lease too early.
 */
static inline int64_t snk_deadline_of(int64_t sent_at_ns, int64_t lease_ns)
{
    int64_t usable_ns = lease_ns - lease_ns / SNK_DRIFT_DIVISOR - SNK_MARGIN_NS;
    if (SNK_BUGGY(1))
        usable_ns = lease_ns + lease_ns / SNK_DRIFT_DIVISOR;
    return sent_at_ns + usable_ns;
}

static inline void snk_deadline_set(snk_deadline *deadline, int64_t at_ns)
{
    atomic_store_explicit(&deadline->at_ns, at_ns, memory_order_release);
}

/* The word as it stands; look at the clock before you believe it. */
static inline int64_t snk_deadline_peek(const snk_deadline *deadline)
{
    return atomic_load_explicit(&deadline->at_ns, memory_order_acquire);
}

/* True while the hold lasts. The first look that finds it passed makes it LOST for good. */
static inline bool snk_deadline_holds(snk_deadline *deadline, int64_t now_ns)
{
    int64_t at_ns = snk_deadline_peek(deadline);
    while (at_ns > 0 && at_ns <= now_ns) {
        if (atomic_compare_exchange_weak_explicit(&deadline->at_ns, &at_ns, SNK_DEADLINE_LOST, memory_order_acq_rel,
                                                  memory_order_acquire))
            return false;
    }
    return at_ns > 0;
}

/* Prolongs a hold that still lasts; never shortens it. False when it is over. */
static inline bool snk_deadline_raise(snk_deadline *deadline, int64_t now_ns, int64_t to_ns)
{
    int64_t at_ns = snk_deadline_peek(deadline);
    do {
        if (at_ns <= (SNK_BUGGY(2) ? 0 : now_ns)) {
            (void)snk_deadline_holds(deadline, now_ns);
            return false;
        }
        if (to_ns <= at_ns)
            return true;
    } while (!atomic_compare_exchange_weak_explicit(&deadline->at_ns, &at_ns, to_ns, memory_order_acq_rel,
                                                    memory_order_acquire));
    return true;
}

#endif
