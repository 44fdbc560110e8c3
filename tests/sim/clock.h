/* Clocks that are wrong: what each shows at which true time. */
#ifndef SIM_CLOCK_H
#define SIM_CLOCK_H

#include <stdint.h>

#include "base/limits.h"

#define SIM_PPM INT64_C(1000000)

typedef struct sim_clock {
    int64_t offset_ns;
    int64_t rate_ppm; /* from -50,000 to 50,000 */
} sim_clock;

static inline int64_t sim_clock_local(const sim_clock *clock, int64_t true_ns)
{
    return clock->offset_ns + true_ns + true_ns / SIM_PPM * clock->rate_ppm +
           true_ns % SIM_PPM * clock->rate_ppm / SIM_PPM;
}

/* The first true time at which the clock shows at least `local_ns`. */
static inline int64_t sim_clock_true(const sim_clock *clock, int64_t local_ns)
{
    int64_t since_ns = local_ns - clock->offset_ns;
    if (since_ns <= 0 || local_ns == SNK_NEVER_NS)
        return since_ns <= 0 ? 0 : SNK_NEVER_NS;
    int64_t rate = SIM_PPM + clock->rate_ppm;
    int64_t true_ns = since_ns / rate * SIM_PPM + since_ns % rate * SIM_PPM / rate;
    while (sim_clock_local(clock, true_ns) < local_ns)
        true_ns++;
    return true_ns;
}

#endif
