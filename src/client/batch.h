/*
 * Renewals of many locks as few calls to the store: one for each part of it (store.h), so that a part which hangs holds
 * up nothing but its own. For the renewer alone, but for the answers, which may come on any thread.
 */
#ifndef SNK_CLIENT_BATCH_H
#define SNK_CLIENT_BATCH_H

#include <stdbool.h>

#include "client/entry.h"
#include "engine/claim.h"
#include "sneck.h"

typedef struct snk_batch snk_batch;

/* NULL when out of memory. */
snk_batch *snk_batch_new(sneck_client *client);
/* Nothing of it is on its way. NULL is a no-op. */
void snk_batch_free(snk_batch *batch);

/* Pins the entry until the answer was taken back to its machine. What is full is sent. */
void snk_batch_add(snk_batch *batch, snk_entry *entry, const snk_send *send);

/*
 * Sends what is there, and takes those answers back to the machines that have come. For the others the renewer is called
 * when they come, and calls this again.
 */
void snk_batch_flush(snk_batch *batch);

/* Waits for the answers that are still to come, and takes them back too. */
void snk_batch_finish(snk_batch *batch);

#endif
