/*
 * The reference of what a store must do (store/store.h): every request is executed at once and alone, on the store's
 * own clock. It keeps no thread, no message and no secret; who waits elsewhere hears of a grant by `news`. It may be
 * restarted with older data.
 */
#ifndef SIM_MODEL_STORE_H
#define SIM_MODEL_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/claim.h"

#define MODEL_LOCKS_MAX 3
#define MODEL_QUEUE_MAX 64
#define MODEL_TOMBSTONES_MAX 1024

/* A claim that holds a lock, or waits for it. */
typedef struct model_entry {
    snk_id claim;
    int64_t lease_ns;
    int64_t expires_at_ns; /* the store's clock */
    uint32_t tokens;       /* how many were asked for */
    bool fair;
} model_entry;

typedef struct model_lock {
    bool held;
    bool offered; /* granted from the queue, and not renewed since */
    model_entry holder;
    uint64_t token_first;
    uint64_t token_last;
    uint64_t counter; /* the highest token that was given out */
    uint32_t queue_count;
    model_entry queue[MODEL_QUEUE_MAX]; /* in the order they came */
} model_lock;

typedef struct model_tombstone {
    snk_id claim;
    int64_t expires_at_ns;
} model_tombstone;

/* What was granted from the queue by one execution. */
typedef struct model_news {
    uint32_t count;
    snk_grant grants[4];
} model_news;

/* What a restart may find again. */
typedef struct model_data {
    model_lock locks[MODEL_LOCKS_MAX];
    uint32_t tombstone_count;
    model_tombstone tombstones[MODEL_TOMBSTONES_MAX];
} model_data;

typedef struct model_store {
    model_data data;
    model_data saved;
    bool is_saved;
    uint64_t run; /* goes up with each restart */
    bool token_blocks;
    bool announces_grants;  /* whoever waits is told what it was granted; otherwise only that there may be news */
    int64_t wall_offset_us; /* the clock that is the floor of tokens: the store's clock and this */
} model_store;

void model_store_clear(model_store *store);

/* Executes one request on lock number `lock`. */
void model_store_execute(model_store *store, uint32_t lock, const snk_send *send, int64_t now_ns,
                         snk_answer *answer_out, model_news *news_out);

/* Ends what is over and grants to the next in the queue, as each execution does first. */
void model_store_settle(model_store *store, uint32_t lock, int64_t now_ns, model_news *news_out);

/* Takes the lock from its holder, whoever that is; false when it is free. */
bool model_store_break(model_store *store, uint32_t lock, int64_t now_ns, snk_id *claim_out, model_news *news_out);

/* Forgets everything, as FLUSHALL does. */
void model_store_wipe(model_store *store);

/* Writes down what there is. */
void model_store_save(model_store *store);

/* A new run, with what there was, or (`saved`) with what was written down last. */
void model_store_restart(model_store *store, bool saved);

#endif
