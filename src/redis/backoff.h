/* How long to wait before the next attempt to connect: growing, and different for each of many clients. */
#ifndef SNK_REDIS_BACKOFF_H
#define SNK_REDIS_BACKOFF_H

#include <stdint.h>

#include "base/limits.h"

/* A cheap random number (xorshift); the state is never 0. Not for secrets. */
static inline uint64_t snk_redis_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/*
 * After `attempts` failures in a row. The first attempt after a cut comes almost at once, because most cuts are short;
 * then the pause doubles up to SNK_BACKOFF_NS_MAX, of which a random half is left out.
 */
static inline int64_t snk_redis_backoff_ns(unsigned attempts, uint64_t *random)
{
    if (attempts == 0)
        return (int64_t)(snk_redis_random(random) % (uint64_t)SNK_BACKOFF_NS_MIN);
    int64_t pause_ns = SNK_BACKOFF_NS_MIN;
    for (unsigned i = 1; i < attempts && pause_ns < SNK_BACKOFF_NS_MAX; i++)
        pause_ns *= 2;
    if (pause_ns > SNK_BACKOFF_NS_MAX)
        pause_ns = SNK_BACKOFF_NS_MAX;
    return pause_ns - (int64_t)(snk_redis_random(random) % (uint64_t)(pause_ns / 2));
}

#endif
