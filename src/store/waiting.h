/*
 * The claims of this client that wait in the store's queues, so that the store knows whom a message is for. A claim is
 * entered before its acquire leaves, because the message that it was granted may overtake the answer that it waits.
 *
 * Where the store may forget what was written last, a claim stays in the table while it holds the lock, so that claims
 * which came back can be told from those that are alive.
 */
#ifndef SNK_STORE_WAITING_H
#define SNK_STORE_WAITING_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/ids.h"
#include "base/limits.h"
#include "base/list.h"

#define SNK_WAITING_BUCKETS 256
#define SNK_WAITING_PARTS 16384 /* of a store, as many as anybody needs */
#define SNK_WAITING_PART_ANY UINT16_MAX

typedef struct snk_waiting_claim {
    snk_link link; /* in its bucket */
    snk_id id;
    uint16_t part;      /* of the store that its lock is in; 0 where there is one */
    bool hears_public;  /* the public channel of its name was subscribed to for it */
    bool holds;         /* it does not wait any more: it holds the lock, or is being given up */
    bool condemned;     /* it is being given up, whatever the store says of it */
    int64_t held_at_ns; /* when that was last said */
    char name[];
} snk_waiting_claim;

typedef struct snk_waiting {
    pthread_mutex_t mutex;                        /* a leaf */
    uint8_t hears_private[SNK_WAITING_PARTS / 8]; /* a bit a part: its private channel was subscribed to; under mutex */
    size_t count;                                 /* under mutex */
    size_t prune_at;                              /* count at which those that are long over are dropped; under mutex */
    snk_list buckets[SNK_WAITING_BUCKETS];        /* of owned snk_waiting_claim, by id; under mutex */
} snk_waiting;

bool snk_waiting_init(snk_waiting *waiting);
/* Frees what is left. */
void snk_waiting_deinit(snk_waiting *waiting);

/* False when out of memory. */
bool snk_waiting_add_in(snk_waiting *waiting, const snk_id *id, const char *name, uint16_t part);
static inline bool snk_waiting_add(snk_waiting *waiting, const snk_id *id, const char *name)
{
    return snk_waiting_add_in(waiting, id, name, 0);
}

/*
 * Takes a claim out. True when the public channel of its name was subscribed to for it; then that name is copied, and
 * the subscription is the caller's to give back.
 */
bool snk_waiting_remove(snk_waiting *waiting, const snk_id *id, char name[SNK_NAME_LENGTH_MAX + 1]);

/*
 * The claim waits no more, but stays in the table; the result is as above. One that nothing is heard of for so long
 * that no lease lasts is dropped in the end.
 */
bool snk_waiting_hold(snk_waiting *waiting, const snk_id *id, char name[SNK_NAME_LENGTH_MAX + 1]);

/* It is to be given up, and must not be used whatever the store says of it. False when out of memory. */
bool snk_waiting_condemn(snk_waiting *waiting, const snk_id *id, const char *name, uint16_t part);
bool snk_waiting_is_condemned(snk_waiting *waiting, const snk_id *id);

/* True when the claim is in the table, waiting or not. */
bool snk_waiting_has(snk_waiting *waiting, const snk_id *id);

/* The name of a claim that waits, copied; false when there is none. */
bool snk_waiting_find(snk_waiting *waiting, const snk_id *id, char name[SNK_NAME_LENGTH_MAX + 1]);

/* What a claim that waits has yet to be subscribed to; it is marked as done. */
typedef struct snk_waiting_wants {
    bool private_channel;
    bool public_channel; /* of the name, which was copied */
    char name[SNK_NAME_LENGTH_MAX + 1];
} snk_waiting_wants;
snk_waiting_wants snk_waiting_mark(snk_waiting *waiting, const snk_id *id, uint16_t part, bool wants_public);

/*
 * Calls `tell` for each claim that waits for `name` (NULL: for any), or in a part of the store, with nothing locked.
 * Claims that come or go meanwhile may be missed or told.
 */
typedef void (*snk_waiting_fn)(void *context, const char *name, const snk_id *id);
void snk_waiting_tell(snk_waiting *waiting, const char *name, snk_waiting_fn tell, void *context);
void snk_waiting_tell_part(snk_waiting *waiting, uint16_t part, snk_waiting_fn tell, void *context);

#endif
