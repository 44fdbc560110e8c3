/* The two clocks. Deadlines and leases use CLOCK_BOOTTIME, which no one sets and which counts suspended time. */
#ifndef SNK_BASE_CLOCK_H
#define SNK_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#include "base/limits.h"

static inline int64_t snk_clock_read_ns(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (int64_t)time.tv_sec * SNK_NS_PER_S + time.tv_nsec;
}

/* For every deadline, lease and wait. */
static inline int64_t snk_now_ns(void)
{
    return snk_clock_read_ns(CLOCK_BOOTTIME);
}

/* For people, and as the floor of tokens. */
static inline int64_t snk_wall_us(void)
{
    return snk_clock_read_ns(CLOCK_REALTIME) / SNK_NS_PER_US;
}

/* a + b without overflow: SNK_NEVER_NS stays never. Both are at least 0. */
static inline int64_t snk_time_add(int64_t a, int64_t b)
{
    return a > SNK_NEVER_NS - b ? SNK_NEVER_NS : a + b;
}

static inline struct timespec snk_timespec(int64_t ns)
{
    return (struct timespec){ .tv_sec = (time_t)(ns / SNK_NS_PER_S), .tv_nsec = (long)(ns % SNK_NS_PER_S) };
}

#endif
