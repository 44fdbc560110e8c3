/* A handle on a lock. */
#ifndef SNK_CLIENT_LOCK_H
#define SNK_CLIENT_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/ids.h"
#include "client/client.h"
#include "client/why.h"
#include "engine/claim.h"
#include "sneck.h"

struct sneck_lock {
    sneck_client *client; /* a reference */
    snk_entry *entry;     /* one of its handles */
    uint64_t owner;       /* SNECK_OWNER_HANDLE: the number that owns; 0: the calling thread's does */
    snk_terms terms;
    snk_why *why; /* a reference; NULL: no reason given */
    snk_ear *ear; /* owned; NULL: none; under entry.mutex */
    bool is_reentrant;
};

/* Numbers of handles are apart from those of threads. */
#define SNK_OWNER_IS_HANDLE (UINT64_C(1) << 63)

static inline uint64_t snk_lock_owner(const sneck_lock *lock)
{
    return lock->owner != 0 ? lock->owner : snk_thread_number();
}

/* SNECK_INVALID when `lock` is NULL, belongs to the parent of a fork(), or its client is closed. */
sneck_status snk_lock_check(const sneck_lock *lock, sneck_error *error);

#endif
