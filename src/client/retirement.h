/*
 * Claims that are used up: released in the background, because whoever has what it came for need not wait for that. What a
 * TAKE took is used up by this alone: a handle that is merely freed gives it back to the store, and so does whoever is
 * cancelled, closed or killed before this has reached the store.
 */
#ifndef SNK_CLIENT_RETIREMENT_H
#define SNK_CLIENT_RETIREMENT_H

#include "client/lock.h"

typedef struct snk_retirement snk_retirement;

/* Begins it, for a handle that is used for one claim only, which is freed by this. To be awaited or dropped. */
snk_retirement *snk_retirement_begin(sneck_lock *lock);

/*
 * Waits until it has ended. SNECK_OK: what was taken is used up. SNECK_LOST: it went back to the store. Otherwise nobody
 * knows.
 */
sneck_status snk_retirement_await(snk_retirement *retirement, sneck_error *error);
/* Leaves it to itself. NULL is allowed. */
void snk_retirement_drop(snk_retirement *retirement);

#endif
