/*
 * The entries of one client by name and key. An entry that no handle, hold, waiter or pin needs any more is freed; there are at
 * most max_locks.
 */
#ifndef SNK_CLIENT_REGISTRY_H
#define SNK_CLIENT_REGISTRY_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "client/entry.h"
#include "client/metrics.h"
#include "client/timers.h"
#include "engine/machine.h"
#include "sneck.h"

typedef struct snk_registry {
    pthread_mutex_t mutex;
    snk_entry **buckets; /* owned; a power of two of them; under mutex */
    size_t bucket_count;
    size_t count; /* of entries; under mutex */
    size_t count_max;
    snk_list entries;         /* in the order they were made; under mutex */
    bool closing;             /* no new handles; under mutex */
    uint32_t seed;            /* of the hash */
    const snk_engine *engine; /* borrowed from the client, as are the others */
    snk_timers *renewals;
    snk_timers *deadlines;
    snk_metrics *metrics;
} snk_registry;

void snk_registry_init(snk_registry *registry);
/* Frees every entry, whatever it is in; nobody uses them any more. */
void snk_registry_deinit(snk_registry *registry);

/* An entry, made if need be, with one more handle. SNECK_LIMIT, SNECK_NO_MEMORY, SNECK_INVALID (closed). */
sneck_status snk_registry_open(snk_registry *registry, const char *name, const snk_entry_key *key,
                               snk_entry **entry_out, sneck_error *error);

/* One handle less. */
void snk_registry_drop(snk_registry *registry, snk_entry *entry);
/* True when the entry has exactly one handle. */
bool snk_registry_is_last_handle(snk_registry *registry, const snk_entry *entry);

/* An entry, pinned, or NULL. */
snk_entry *snk_registry_find(snk_registry *registry, const char *name, const snk_entry_key *key);
/* The first entry with that name, or the next one after `entry`, pinned; `entry` is unpinned. NULL: no more. */
snk_entry *snk_registry_next_named(snk_registry *registry, const char *name, snk_entry *entry);
void snk_registry_unpin(snk_registry *registry, snk_entry *entry);

/* From now on no handles are made. */
void snk_registry_begin_close(snk_registry *registry);

/* The first entry, pinned, or NULL; then the next one, pinned, with `entry` unpinned. */
snk_entry *snk_registry_first(snk_registry *registry);
snk_entry *snk_registry_next(snk_registry *registry, snk_entry *entry);

#endif
