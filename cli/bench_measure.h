/* What `sneck bench` measures. */
#ifndef SNK_CLI_BENCH_MEASURE_H
#define SNK_CLI_BENCH_MEASURE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct snk_bench_plan {
    const char *store; /* URL */
    int64_t time_ms;   /* of each measurement */
    int threads;
    int processes;
} snk_bench_plan;

typedef enum snk_bench_kind {
    SNK_BENCH_REENTRY,  /* acquire and release of a lock that the thread has */
    SNK_BENCH_PAIR,     /* acquire and release of a free lock */
    SNK_BENCH_THREADS,  /* many threads of one client on one lock */
    SNK_BENCH_PROCESSES /* many processes on one lock: from before the release to after the next acquire */
} snk_bench_kind;
#define SNK_BENCH_KINDS 4

typedef struct snk_bench_figure {
    int64_t p50_ns; /* 0: does not apply */
    int64_t p99_ns;
    double per_second;
    char error[240]; /* "": it could be measured */
} snk_bench_figure;

/*
 * Measures in child processes, so that nothing of one measurement is left in the next; no client may be open in this
 * process. It takes the planned time and at most some seconds more.
 */
void snk_bench_measure(snk_bench_kind kind, const snk_bench_plan *plan, snk_bench_figure *figure_out);

#endif
