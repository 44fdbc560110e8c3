/* Claim ids, drawn from random bytes that are fetched from the kernel many at a time. */
#ifndef SNK_CLIENT_IDPOOL_H
#define SNK_CLIENT_IDPOOL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/ids.h"

#define SNK_IDPOOL_IDS 64

typedef struct snk_idpool {
    pthread_mutex_t mutex;      /* a leaf: nothing is taken under it */
    size_t left;                /* under mutex */
    snk_id ids[SNK_IDPOOL_IDS]; /* under mutex; used from the end, and wiped when used */
} snk_idpool;

void snk_idpool_init(snk_idpool *pool);
void snk_idpool_deinit(snk_idpool *pool);

/* False when the kernel gives no random bytes without blocking. */
bool snk_idpool_draw(snk_idpool *pool, snk_id *id_out);

#endif
