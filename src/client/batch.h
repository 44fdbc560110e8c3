/*
 * Renewals of many locks as few calls to the store: one for each part of it (store.h), so that a part which hangs holds
 * up nothing but its own. For one thread at a time, but for the answers, which may come on any.
 */
#ifndef SNK_CLIENT_BATCH_H
#define SNK_CLIENT_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/entry.h"
#include "client/parking.h"
#include "engine/claim.h"
#include "sneck.h"

typedef struct snk_batch snk_batch;

/* Whoever flushes it sleeps on `parking`, and is called when answers come. NULL when out of memory. */
snk_batch *snk_batch_new(sneck_client *client, snk_parking *parking);
/* Nothing of it is on its way. NULL is a no-op. */
void snk_batch_free(snk_batch *batch);

/*
 * Pins the entry until the answer was taken back to its machine. What is full is sent; as snk_batch_flush. Never waits: when
 * a part has more to answer than it can, its machine is told that no answer came.
 */
size_t snk_batch_add(snk_batch *batch, snk_entry *entry, const snk_send *send);

/*
 * Sends what is there, and takes those answers back to the machines that have come. For the others its thread is
 * called when they come, and calls this again. The number of holds that were lost by answers.
 */
size_t snk_batch_flush(snk_batch *batch);

/* Since when it is inside the store, which does not return; SNK_NEVER_NS: it is not. For any thread. */
int64_t snk_batch_since_ns(const snk_batch *batch);

/* As snk_batch_flush, and waits for the answers that are still to come, until `until_ns` at the latest. */
size_t snk_batch_finish(snk_batch *batch, int64_t until_ns);

#endif
