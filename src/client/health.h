/* What can be seen by looking at every lock of a client. */
#ifndef SNK_CLIENT_HEALTH_H
#define SNK_CLIENT_HEALTH_H

#include <stdbool.h>
#include <stdint.h>

#include "client/entry.h"
#include "sneck.h"

typedef struct snk_census_row {
    const snk_entry *entry;
    bool held;
    int64_t held_ns;  /* for how long */
    uint64_t waiting; /* threads and requests */
} snk_census_row;

typedef void (*snk_census_fn)(void *context, const snk_census_row *row);

/* Calls `visit` for each lock name of the client, with nothing locked. */
void snk_census_take(sneck_client *client, snk_census_fn visit, void *context);

#endif
