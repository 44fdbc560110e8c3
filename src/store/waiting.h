/*
 * The claims of this client that wait in the store's queues, so that the store knows whom a message is for. A claim is
 * entered before its acquire leaves, because the message that it was granted may overtake the answer that it waits.
 */
#ifndef SNK_STORE_WAITING_H
#define SNK_STORE_WAITING_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/ids.h"
#include "base/limits.h"
#include "base/list.h"

#define SNK_WAITING_BUCKETS 256

typedef struct snk_waiting_claim {
    snk_link link; /* in its bucket */
    snk_id id;
    bool hears_public; /* the public channel of its name was subscribed to for it */
    char name[];
} snk_waiting_claim;

typedef struct snk_waiting {
    pthread_mutex_t mutex;                 /* a leaf */
    bool hears_private;                    /* the private channel was subscribed to; under mutex */
    size_t count;                          /* under mutex */
    snk_list buckets[SNK_WAITING_BUCKETS]; /* of owned snk_waiting_claim, by id; under mutex */
} snk_waiting;

bool snk_waiting_init(snk_waiting *waiting);
/* Frees what is left. */
void snk_waiting_deinit(snk_waiting *waiting);

/* False when out of memory. */
bool snk_waiting_add(snk_waiting *waiting, const snk_id *id, const char *name);

/*
 * Takes a claim out. True when the public channel of its name was subscribed to for it; then that name is copied, and
 * the subscription is the caller's to give back.
 */
bool snk_waiting_remove(snk_waiting *waiting, const snk_id *id, char name[SNK_NAME_LENGTH_MAX + 1]);

/* The name of a claim that waits, copied; false when there is none. */
bool snk_waiting_find(snk_waiting *waiting, const snk_id *id, char name[SNK_NAME_LENGTH_MAX + 1]);

/* What a claim that waits has yet to be subscribed to; it is marked as done. */
typedef struct snk_waiting_wants {
    bool private_channel;
    bool public_channel; /* of the name, which was copied */
    char name[SNK_NAME_LENGTH_MAX + 1];
} snk_waiting_wants;
snk_waiting_wants snk_waiting_mark(snk_waiting *waiting, const snk_id *id, bool wants_public);

/*
 * Calls `tell` for each claim that waits for `name` (NULL: for any), with nothing locked. Claims that come or go
 * meanwhile may be missed or told.
 */
void snk_waiting_tell(snk_waiting *waiting, const char *name,
                      void (*tell)(void *context, const char *name, const snk_id *id), void *context);

#endif
