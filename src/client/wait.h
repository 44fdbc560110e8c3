/* The waiting of a thread. */
#ifndef SNK_CLIENT_WAIT_H
#define SNK_CLIENT_WAIT_H

#include <stdint.h>

#include "client/lock.h"
#include "engine/claim.h"
#include "sneck.h"

/* sneck_acquire with these terms; arguments were checked. */
sneck_status snk_wait_acquire(sneck_lock *lock, const snk_terms *terms, int64_t wait_ms, sneck_error *error);

#endif
