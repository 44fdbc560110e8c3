/* Several locks in one script, all or none; in a cluster in one script for each slot, all sent at once. */
#ifndef SNK_STORE_REDIS_TOGETHER_H
#define SNK_STORE_REDIS_TOGETHER_H

#include "store/redis/redis.h"

/*
 * Asks for all the locks of a call that tries to acquire several. Those that must be asked for by themselves, because of
 * their state or because it is another call, are put into `left`, and nothing has happened to them; their number is
 * returned. The others are answered.
 */
size_t snk_together_acquire(snk_redis_store *store, const snk_call *call, size_t left[]);

#endif
