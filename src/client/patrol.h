/* The watchdog's way past every hold of a client: is its owner alive and moving, does the store still show the claim. */
#ifndef SNK_CLIENT_PATROL_H
#define SNK_CLIENT_PATROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/watchdog.h"
#include "sneck.h"

typedef struct snk_patrol snk_patrol;

/* What a round found; the first of each kind names the check's result. */
typedef struct snk_patrol_report {
    snk_finding owner;
    snk_remedy remedy; /* for that one */
    uint64_t owner_count;
    uint64_t lost_count; /* claims that the store no longer had */
} snk_patrol_report;

/* NULL when out of memory. */
snk_patrol *snk_patrol_new(sneck_client *client);
/* NULL is a no-op. */
void snk_patrol_free(snk_patrol *patrol);

/* How a round is made. */
typedef struct snk_patrol_orders {
    bool asks_store;  /* else it is left alone, because it does not answer */
    int64_t until_ns; /* answers of the store that have not come by then are taken later */
    bool asks_all;    /* every hold is looked up, also those that were confirmed lately or are not to be watched */
} snk_patrol_orders;

/* One round. Under watch.mutex. */
void snk_patrol_walk(snk_patrol *patrol, snk_patrol_orders orders, snk_patrol_report *report_out);

/* Takes the answers that have come since. Under watch.mutex. */
void snk_patrol_collect(snk_patrol *patrol);
/* Waits for all of them: no round is made any more. */
void snk_patrol_finish(snk_patrol *patrol);

typedef struct snk_burial {
    uint64_t count;    /* locks that it held and that nobody knew of yet */
    snk_remedy remedy; /* for the first of them */
    bool is_done;      /* false: some is left, because it was too much at once; call it again in a while */
} snk_burial;

/* What an owner that ended has left in any lock is given back, or reported. Under watch.mutex. */
snk_burial snk_patrol_bury(snk_patrol *patrol, uint64_t owner);

#endif
