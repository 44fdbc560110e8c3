/*
 * Waiting awake for a moment before sleeping, for as long as that pays.
 *
 * To sleep and be woken costs both sides dear where a processor must be called out of idleness (on virtual machines above
 * all): more than a server needs to answer. So who expects something very soon looks for it a few times first. This pays
 * only if it does come soon and if nobody else wants the processor meanwhile; both are learnt: one wait in vain may be
 * chance, after each further one twice as many are slept through at once, up to SNK_SPIN_SKIPS_MAX, until one pays.
 *
 * Belongs to whoever waits, one at a time.
 */
#ifndef SNK_BASE_SPIN_H
#define SNK_BASE_SPIN_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

#define SNK_SPIN_NS (100 * SNK_NS_PER_US)
#define SNK_SPIN_SKIPS_MAX 4095
/* A yield that takes so long has let somebody else run. */
#define SNK_SPIN_YIELD_NS (5 * SNK_NS_PER_US)

typedef struct snk_spin {
    uint32_t penalty; /* waits that are to be slept through after the next one in vain */
    uint32_t skips;   /* waits that are still to be slept through */
    int64_t until_ns; /* of the wait that goes on */
} snk_spin;

/* Begins a wait. False: sleep at once. */
static inline bool snk_spin_begin(snk_spin *spin)
{
    if (spin->skips > 0) {
        spin->skips--;
        return false;
    }
    spin->until_ns = snk_now_ns() + SNK_SPIN_NS;
    return true;
}

/* Between two looks. False: it takes too long, or somebody wants the processor: sleep. */
static inline bool snk_spin_goes_on(const snk_spin *spin)
{
    int64_t before_ns = snk_now_ns();
    sched_yield();
    int64_t now_ns = snk_now_ns();
    return now_ns < spin->until_ns && now_ns - before_ns < SNK_SPIN_YIELD_NS;
}

/* Ends a wait that was begun. */
static inline void snk_spin_end(snk_spin *spin, bool paid)
{
    spin->skips = paid ? 0 : spin->penalty;
    uint32_t penalty = paid ? 0 : 2 * spin->penalty + 1;
    spin->penalty = penalty < SNK_SPIN_SKIPS_MAX ? penalty : SNK_SPIN_SKIPS_MAX;
}

#endif
