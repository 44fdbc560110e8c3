/* Renewals of many locks as one call to the store. */
#ifndef SNK_CLIENT_BATCH_H
#define SNK_CLIENT_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/entry.h"
#include "engine/claim.h"
#include "sneck.h"

typedef struct snk_batch snk_batch;

/* NULL when out of memory. */
snk_batch *snk_batch_new(sneck_client *client);
/* The batch is empty. NULL is a no-op. */
void snk_batch_free(snk_batch *batch);

/* Pins the entry until the answer was taken back to its machine. Sends the batch when it is full; as snk_batch_flush. */
size_t snk_batch_add(snk_batch *batch, snk_entry *entry, const snk_send *send);

/* Sends what is there, and takes the answers back to the machines. The number of holds that were lost by them. */
size_t snk_batch_flush(snk_batch *batch);

/* Since when it waits for the store; SNK_NEVER_NS: it does not. For any thread. */
int64_t snk_batch_since_ns(const snk_batch *batch);

/*
 * For another thread, when the one that flushes hangs: every machine that waits for an answer is told that none came.
 * Should they come after all, they are taken back to the machines too, which know what to make of them.
 */
void snk_batch_abandon(snk_batch *batch);

#endif
