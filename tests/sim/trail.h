/* What one seed leaves behind: its trace, and the first invariant that did not hold. */
#ifndef SIM_TRAIL_H
#define SIM_TRAIL_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/ids.h"
#include "batch.h"
#include "random.h"

typedef struct sim_trail {
    bool tracing;  /* what happens goes onto the terminal */
    uint64_t hash; /* of everything that happened */
    bool failed;
    const char *invariant; /* that did not hold */
    char failure[256];
} sim_trail;

/* Something that happened. */
typedef struct sim_mark {
    int64_t at_ns; /* true time */
    const char *what;
    uint32_t process;
    uint32_t lock;
    uint64_t a;
    uint64_t b;
} sim_mark;

void sim_trail_begin(sim_trail *trail, uint64_t seed);
void sim_trail_add(sim_trail *trail, const sim_mark *mark);
/* The first failure counts. */
void sim_trail_fail(sim_trail *trail, const char *invariant, const char *format, va_list arguments)
    __attribute__((format(printf, 3, 0)));
sim_outcome sim_trail_outcome(const sim_trail *trail, uint32_t events, const uint64_t *probes);

/* The first bytes of an id are the number of its claim, so that no search is needed; the rest is random. */
void sim_id_draw(sim_random *random, uint32_t number, snk_id *id_out);
uint32_t sim_id_number(const snk_id *id);

#endif
