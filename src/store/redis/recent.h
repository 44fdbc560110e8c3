/*
 * The names of locks that this client had claims on of late: those are to be looked at when the store may have forgotten
 * what was written last. A bounded number; the longest unused go first.
 */
#ifndef SNK_STORE_REDIS_RECENT_H
#define SNK_STORE_REDIS_RECENT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/limits.h"

#define SNK_RECENT_BUCKETS 128
#define SNK_RECENT_WAYS 8

typedef struct snk_recent_name {
    char *text; /* owned; NULL: free */
    uint16_t slot;
    int64_t used_at_ns;
} snk_recent_name;

typedef struct snk_recent {
    pthread_mutex_t mutex;                                      /* a leaf */
    snk_recent_name names[SNK_RECENT_BUCKETS][SNK_RECENT_WAYS]; /* under mutex */
} snk_recent;

void snk_recent_init(snk_recent *recent);
void snk_recent_deinit(snk_recent *recent);

/* The name is used now. Without memory it is not noted. */
void snk_recent_note(snk_recent *recent, const char *name, uint16_t slot);

/* Calls `each` for every name in one of these slots, with nothing locked. */
void snk_recent_visit(snk_recent *recent, const uint8_t slots[], void (*each)(void *context, const char *name),
                      void *context);

#endif
