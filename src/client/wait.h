/* The waiting of a thread. */
#ifndef SNK_CLIENT_WAIT_H
#define SNK_CLIENT_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "client/lock.h"
#include "engine/claim.h"
#include "sneck.h"

/*
 * Called once, on the waiting thread, when the store has answered that the claim waits; not before that, or never.
 * False: the wait is for nothing, and ends with SNECK_CANCELED.
 */
typedef struct snk_wait_hook {
    bool (*registered)(void *context);
    void *context;
} snk_wait_hook;

/* sneck_acquire with these terms, whatever lease `asking` says; arguments were checked. `hook` may be NULL. */
sneck_status snk_wait_acquire(sneck_lock *lock, const snk_terms *terms, const snk_asking *asking,
                              const snk_wait_hook *hook, sneck_error *error);

#endif
