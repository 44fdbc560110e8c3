/* A histogram of durations: fixed bounds, counters that any thread may raise. */
#ifndef SNK_CLIENT_HISTOGRAM_H
#define SNK_CLIENT_HISTOGRAM_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define SNK_BUCKETS 15

/* Upper bounds, rising. */
typedef struct snk_bounds {
    int64_t ns[SNK_BUCKETS];
} snk_bounds;

/* All relaxed: counters that nobody draws conclusions from. */
typedef struct snk_histogram {
    _Atomic uint64_t counts[SNK_BUCKETS + 1]; /* the last: above all bounds */
    _Atomic int64_t sum_ns;
} snk_histogram;

static inline void snk_histogram_add(snk_histogram *histogram, const snk_bounds *bounds, int64_t ns)
{
    size_t bucket = 0;
    while (bucket < SNK_BUCKETS && ns > bounds->ns[bucket])
        bucket++;
    (void)atomic_fetch_add_explicit(&histogram->counts[bucket], 1, memory_order_relaxed);
    (void)atomic_fetch_add_explicit(&histogram->sum_ns, ns > 0 ? ns : 0, memory_order_relaxed);
}

#endif
