/*
 * Stores asked about several locks at once, whichever clients they are of. What is asked of one client goes to its
 * store as one call; clients, and parts of what a store would do one after the other, are asked in parallel. The threads
 * for that are there for the call alone: they are few, and gone when it returns.
 */
#ifndef SNK_CLIENT_DELIVERY_H
#define SNK_CLIENT_DELIVERY_H

#include <stdbool.h>
#include <stddef.h>

#include "client/client.h"
#include "client/turn.h"
#include "sneck.h"

/* What one turn wants sent. */
typedef struct snk_delivery {
    snk_turn turn; /* filled by the caller; its entry stays */
    /* Filled: the result of a release that was pending. */
    bool is_pending;
    sneck_error released;
    /* For delivery.c alone. */
    bool is_packed;
} snk_delivery;

/*
 * Sends what the turns want sent, which is mostly one `ask` of each, and takes each answer back to its machine as soon as
 * it is there: a store that hangs holds up nothing of the others. Returns when all are answered; each store has its own
 * limit for that. Whoever calls has entered the gates of the clients, and cannot be cancelled.
 */
void snk_deliver(snk_delivery *const deliveries[], size_t count, snk_ask ask);

#endif
