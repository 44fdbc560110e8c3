/* Waiting for calls that nobody drives. */
#ifndef SNK_REDIS_LATCH_H
#define SNK_REDIS_LATCH_H

#include "base/limits.h"
#include "redis/call.h"
#include "redis/park.h"

typedef struct snk_latch {
    _Atomic uint32_t left; /* calls that are not done */
} snk_latch;

static inline void snk_latch_note(snk_redis_call *call)
{
    snk_latch *latch = call->context;
    /* Release: pairs with the acquire in snk_latch_wait, which then sees what came of the call. */
    if (atomic_fetch_sub_explicit(&latch->left, 1, memory_order_release) == 1)
        snk_unpark(&latch->left);
}

/* Has the calls, which are about to be submitted, count it down. */
static inline void snk_latch_set(snk_latch *latch, snk_redis_call *const calls[], size_t count)
{
    atomic_init(&latch->left, (uint32_t)count);
    for (size_t i = 0; i < count; i++) {
        calls[i]->done = snk_latch_note;
        calls[i]->context = latch;
    }
}

/* Until all of them are done; their own time limits bound it. No cancellation point. */
static inline void snk_latch_wait(snk_latch *latch)
{
    uint32_t left;
    while ((left = atomic_load_explicit(&latch->left, memory_order_acquire)) > 0)
        snk_park(&latch->left, left, SNK_NS_PER_S);
}

#endif
