/* Claims that are not after a lock for themselves alone (store/grip.h): readers, permits, takers of a count, those who wait
 * for one to be zero. Layout `hash` only. */
#ifndef SNK_STORE_REDIS_CROWD_H
#define SNK_STORE_REDIS_CROWD_H

#include "store/redis/run.h"
#include "store/redis/texts.h"

/* crowd.c */

/* The script for a request about such a claim. The texts have its keys, claim and lease; they are filled with the rest. */
snk_run snk_crowd_run(const snk_redis_store *store, const snk_claim *claim, snk_texts *text);

/* The scripts' word for an object. */
const char *snk_object_word(snk_object object);

/* counts.c */
sneck_status snk_redis_store_tally(snk_store *base, const snk_tally *tally, snk_tallied *tallied_out,
                                   sneck_error *error);
sneck_status snk_redis_store_version(snk_store *base, const char *name, const uint64_t *expected, uint64_t *version_out,
                                     sneck_error *error);

#endif
