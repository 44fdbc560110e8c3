/* Several locks of any clients asked for, or given back, at once. */
#ifndef SNK_CLIENT_TOGETHER_H
#define SNK_CLIENT_TOGETHER_H

#include <stddef.h>
#include <stdint.h>

#include "client/lock.h"

/*
 * Tries each of the locks once; no two of them are handles of one lock. `lease_ms` as in snk_asking.
 * `results` has an error for each, which is filled.
 */
void snk_try_together(sneck_lock *const locks[], size_t count, int64_t lease_ms, sneck_error results[]);

/* Gives back a level of each of the locks, the last one first where two of them are handles of one lock. */
void snk_release_together(sneck_lock *const locks[], size_t count, sneck_error results[]);

#endif
