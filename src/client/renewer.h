/*
 * The thread that sends renewals, looks at queued claims and chases, in batches, and takes their answers. It never
 * waits for the store on behalf of anything else: that is what errands.h is for. On a store of several parts it does not
 * even wait for those, but takes the answers as they come.
 *
 * When it hangs, the watchdog puts another thread in its place. The old one ends as soon as it comes back; until then
 * both may be at work, so nothing here belongs to one thread alone but its own worker.
 */
#ifndef SNK_CLIENT_RENEWER_H
#define SNK_CLIENT_RENEWER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/chaser.h"
#include "client/parking.h"
#include "client/timers.h"
#include "sneck.h"

typedef struct snk_batch snk_batch;

/* One thread of the renewer. Lives as long as the client. */
typedef struct snk_worker {
    struct snk_worker *next; /* in renewer.workers; unchanging */
    sneck_client *client;    /* borrowed */
    pthread_t thread;
    snk_parking parking;        /* called by whoever has work for it */
    snk_batch *batch;           /* owned */
    int64_t served_at_ns;       /* when a timer last fired; of its thread alone */
    _Atomic bool is_retired;    /* another one has its place */
    _Atomic int64_t beat_at_ns; /* when it last showed that it moves */
} snk_worker;

typedef struct snk_renewer {
    _Atomic(snk_worker *) current; /* the one that works; NULL: not started */
    snk_worker *workers;           /* owned; the newest first; changed under client.start_mutex */
    _Atomic bool is_stopping;
    snk_timers timers; /* of entries: machine.timer_at_ns */
    snk_chaser chaser;
    int64_t finish_until_ns; /* set before is_stopping */
} snk_renewer;

void snk_renewer_init(snk_renewer *renewer);
void snk_renewer_deinit(snk_renewer *renewer);

sneck_status snk_renewer_start(sneck_client *client, sneck_error *error);
/* Chases go on until `until_ns` at the latest; then the thread is gone. */
void snk_renewer_stop(sneck_client *client, int64_t until_ns);

/*
 * Puts another thread in the place of the one that works, which hangs. What is in its hands counts as not answered, and
 * what it may have dropped is taken up again.
 */
sneck_status snk_renewer_replace(sneck_client *client, sneck_error *error);

/* When the thread last showed that it moves; 0: there is none. */
int64_t snk_renewer_beat_ns(sneck_client *client);
/* Since when something waits for it; SNK_NEVER_NS: nothing does. */
int64_t snk_renewer_pending_ns(sneck_client *client);

/* Since when it waits for an answer of the store; SNK_NEVER_NS: it does not. */
int64_t snk_renewer_asks_ns(sneck_client *client);

/* It has something to do. */
void snk_renewer_call(sneck_client *client);

#endif
