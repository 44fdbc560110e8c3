/* Several locks of one client asked for at once: one call to the store, and on Redis one round trip. */
#ifndef SNK_CLIENT_TOGETHER_H
#define SNK_CLIENT_TOGETHER_H

#include <stddef.h>

#include "client/lock.h"

#define SNK_TOGETHER_MAX 64

/*
 * Tries each of the locks once; they are single handles of one client, at most SNK_TOGETHER_MAX. `results` has an
 * error for each, which is filled.
 */
void snk_try_together(sneck_lock *const locks[], size_t count, sneck_error results[]);

#endif
