/* Renewals of many locks as one call to the store. */
#ifndef SNK_CLIENT_BATCH_H
#define SNK_CLIENT_BATCH_H

#include <stdbool.h>

#include "client/entry.h"
#include "engine/claim.h"
#include "sneck.h"

typedef struct snk_batch snk_batch;

/* NULL when out of memory. */
snk_batch *snk_batch_new(sneck_client *client);
/* The batch is empty. NULL is a no-op. */
void snk_batch_free(snk_batch *batch);

/* Pins the entry until the answer was taken back to its machine. Sends the batch when it is full. */
void snk_batch_add(snk_batch *batch, snk_entry *entry, const snk_send *send);

/* Sends what is there, and takes the answers back to the machines. */
void snk_batch_flush(snk_batch *batch);

#endif
