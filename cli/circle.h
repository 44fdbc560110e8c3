/*
 * Who waits for whom, across processes, from what a store says about all its locks: those who can never go on unless
 * somebody is stopped.
 *
 * Stakes belong together when their owner text is the same: one thread of one client. A `sneck` is one as a whole, and
 * waits for its command: on this machine its holds count as those of each process below it, too.
 */
#ifndef SNK_CLI_CIRCLE_H
#define SNK_CLI_CIRCLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sneck.h"

#define SNK_ANCESTORS_MAX 32

/* Somebody who holds a lock or waits for it. */
typedef struct snk_stake {
    char *text; /* owned; the others point into it */
    const char *lock;
    const char *owner;
    const char *host;
    const char *mode;
    int64_t pid;
    bool waits;

    /* Of one that waits. */
    int64_t ancestors[SNK_ANCESTORS_MAX]; /* pids of each `sneck` on this machine, from itself upwards; 0: no more */
    bool stuck;
    size_t blocker; /* stuck: by this stake on the same lock, */
    size_t next;    /* which waits itself as this one */
    bool told;
} snk_stake;

/* Locks one after the other, of each first who holds it, then who waits, in order. Zeroed: empty. */
typedef struct snk_stakes {
    snk_stake *at; /* owned */
    size_t count;
    size_t room;
    bool out_of_memory;
} snk_stakes;

/* Adds everybody on one lock who is there for at least `age_ms`. */
void snk_stakes_add(snk_stakes *stakes, const sneck_info *info, int64_t age_ms);
void snk_stakes_deinit(snk_stakes *stakes);

/* Finds out who is stuck. */
void snk_stakes_find_stuck(snk_stakes *stakes);

/*
 * The first one of a circle that was not told yet; stakes->count: there is none. Its `next` leads round to itself, and
 * all on the way are marked as told.
 */
size_t snk_stakes_next_circle(snk_stakes *stakes);

#endif
