/* Random numbers from a seed: one stream a concern, so that drawing more of one kind does not shift the others. */
#ifndef SIM_RANDOM_H
#define SIM_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

typedef struct sim_random {
    uint64_t a;
    uint64_t b;
} sim_random;

static inline uint64_t sim_mix64(uint64_t value)
{
    value += UINT64_C(0x9E3779B97F4A7C15);
    value = (value ^ (value >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    value = (value ^ (value >> 27)) * UINT64_C(0x94D049BB133111EB);
    return value ^ (value >> 31);
}

static inline void sim_random_init(sim_random *random, uint64_t seed, uint64_t stream)
{
    random->a = sim_mix64(seed ^ sim_mix64(stream));
    random->b = sim_mix64(random->a ^ stream) | 1;
}

/* xoroshiro128+ */
static inline uint64_t sim_random_next(sim_random *random)
{
    uint64_t a = random->a;
    uint64_t b = random->b;
    uint64_t result = a + b;
    b ^= a;
    random->a = (a << 24 | a >> 40) ^ b ^ (b << 16);
    random->b = b << 37 | b >> 27;
    return result;
}

/* From 0 to `limit` - 1; the bias of the multiplication does not matter here. */
static inline uint32_t sim_random_below(sim_random *random, uint32_t limit)
{
    return (uint32_t)((sim_random_next(random) >> 32) * limit >> 32);
}

/* From `low` to `high`, both included. */
static inline int64_t sim_random_range(sim_random *random, int64_t low, int64_t high)
{
    if (high <= low)
        return low;
    return low + (int64_t)(sim_random_next(random) % (uint64_t)(high - low + 1));
}

/* Short times are as likely as long ones: uniform over the octaves between `low` (at least 1) and `high`. */
static inline int64_t sim_random_octaves(sim_random *random, int64_t low, int64_t high)
{
    uint32_t octaves = 0;
    while (octaves < 62 && low << (octaves + 1) < high)
        octaves++;
    int64_t from = low << sim_random_below(random, octaves + 1);
    int64_t to = from * 2 < high ? from * 2 : high;
    return sim_random_range(random, from, to);
}

/* True in `per_mille` of 1000. */
static inline bool sim_random_chance(sim_random *random, uint32_t per_mille)
{
    return per_mille != 0 && sim_random_below(random, 1000) < per_mille;
}

#endif
