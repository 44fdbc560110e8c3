/* Several locks in one script, all or none. */
#ifndef SNK_STORE_REDIS_TOGETHER_H
#define SNK_STORE_REDIS_TOGETHER_H

#include "store/redis/redis.h"

/*
 * Asks for all the locks of a call that tries to acquire several. False: it is another call, the store is more than one server, or the state of one of the
 * locks is such that each must be asked for by itself; nothing has happened then.
 */
bool snk_together_acquire(snk_redis_store *store, const snk_call *call);

#endif
