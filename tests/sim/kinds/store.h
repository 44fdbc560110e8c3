/*
 * The reference of what a store does with what is not held alone (store/grip.h): each request is executed at once and
 * alone, on the store's own clock. What stands in whose way is decided by the library's own rule.
 */
#ifndef SIM_KINDS_STORE_H
#define SIM_KINDS_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/claim.h"
#include "store/grip.h"

#define KINDS_ENTRIES_MAX 96
#define KINDS_TOMBSTONES_MAX 2048

/* One of each. */
typedef enum kinds_thing {
    KINDS_LOCK, /* readers and writers */
    KINDS_SEMAPHORE,
    KINDS_LATCH,
    KINDS_CONDITION,
    KINDS_THINGS
} kinds_thing;

/* A claim that holds something or waits for it. */
typedef struct kinds_entry {
    snk_id claim;
    snk_grip grip;
    int64_t lease_ns;
    int64_t expires_at_ns; /* the store's clock */
    uint64_t token;        /* while it holds */
} kinds_entry;

typedef struct kinds_entries {
    uint32_t count;
    kinds_entry at[KINDS_ENTRIES_MAX]; /* in the order they came */
} kinds_entries;

typedef struct kinds_state {
    kinds_entries holders;
    kinds_entries queue;
    int64_t count;
    uint64_t token; /* the highest that was given out */
} kinds_state;

typedef struct kinds_tombstone {
    snk_id id;
    int64_t expires_at_ns;
} kinds_tombstone;

typedef struct kinds_store {
    kinds_state things[KINDS_THINGS];
    uint32_t tombstone_count;
    kinds_tombstone tombstones[KINDS_TOMBSTONES_MAX];
    bool announces_grants;
} kinds_store;

/* What was granted from the queue by one execution. */
typedef struct kinds_news {
    uint32_t count;
    snk_grant grants[KINDS_ENTRIES_MAX];
} kinds_news;

void kinds_store_clear(kinds_store *store);

/* Index in the list, or its count. */
uint32_t kinds_find(const kinds_entries *entries, const snk_id *claim);

snk_answer kinds_store_execute(kinds_store *store, kinds_thing thing, const snk_grip *grip, const snk_send *send,
                               int64_t now_ns, kinds_news *news_out);

snk_tallied kinds_store_tally(kinds_store *store, kinds_thing thing, const snk_tally *tally, int64_t now_ns,
                              kinds_news *news_out);

/* Ends what is over and grants what can be granted, as each execution does first. */
void kinds_store_settle(kinds_store *store, kinds_thing thing, int64_t now_ns, kinds_news *news_out);

#endif
