#include "trail.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"

void sim_trail_begin(sim_trail *trail, uint64_t seed)
{
    trail->hash = sim_mix64(seed);
    trail->failed = false;
}

static uint64_t hash_of(const char *text)
{
    uint64_t hash = UINT64_C(0xCBF29CE484222325);
    for (; *text != '\0'; text++)
        hash = (hash ^ (uint8_t)*text) * UINT64_C(0x100000001B3);
    return hash;
}

void sim_trail_add(sim_trail *trail, const sim_mark *mark)
{
    uint64_t hash = trail->hash ^ (uint64_t)mark->at_ns;
    hash = (hash ^ hash_of(mark->what)) * UINT64_C(0x9E3779B97F4A7C15);
    hash =
        (hash ^ hash >> 29 ^ mark->process ^ (uint64_t)mark->lock << 8 ^ mark->a << 16) * UINT64_C(0xBF58476D1CE4E5B9);
    trail->hash = (hash ^ hash >> 32) + mark->b;
    if (trail->tracing)
        printf("%12.6f ms  p%" PRIu32 " lock %" PRIu32 "  %-16s %" PRIu64 " %" PRIu64 "\n",
               (double)mark->at_ns / (double)SNK_NS_PER_MS, mark->process, mark->lock, mark->what, mark->a, mark->b);
}

void sim_trail_fail(sim_trail *trail, const char *invariant, const char *format, va_list arguments)
{
    if (trail->failed)
        return;
    trail->failed = true;
    trail->invariant = invariant;
    (void)vsnprintf(trail->failure, sizeof trail->failure, format, arguments);
}

sim_outcome sim_trail_outcome(const sim_trail *trail, uint32_t events, const uint64_t *probes)
{
    return (sim_outcome){
        .hash = trail->hash,
        .events = events,
        .invariant = trail->failed ? trail->invariant : NULL,
        .failure = trail->failure,
        .probes = probes,
    };
}

void sim_id_draw(sim_random *random, uint32_t number, snk_id *id_out)
{
    uint64_t bits[2] = { sim_random_next(random), sim_random_next(random) };
    memcpy(id_out->bytes, bits, sizeof bits);
    memcpy(id_out->bytes, &number, sizeof number);
}

uint32_t sim_id_number(const snk_id *id)
{
    uint32_t number;
    memcpy(&number, id->bytes, sizeof number);
    return number;
}
