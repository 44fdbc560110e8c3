/*
 * The thread that does the store's I/O for nobody in particular: renewals and looks at queued claims, in batches;
 * chases; asynchronous requests, whose agent it is.
 */
#ifndef SNK_CLIENT_RENEWER_H
#define SNK_CLIENT_RENEWER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "client/chaser.h"
#include "client/parking.h"
#include "client/timers.h"
#include "sneck.h"

typedef struct snk_batch snk_batch;

typedef struct snk_renewer {
    pthread_t thread;
    bool is_running; /* under client.start_mutex */
    _Atomic bool is_stopping;
    snk_parking parking; /* called by whoever has work for it */
    snk_timers timers;   /* of entries: machine.timer_at_ns */
    snk_chaser chaser;
    pthread_mutex_t mutex;   /* a leaf */
    snk_list ready;          /* requests that it should look at; under mutex */
    snk_list waiting;        /* requests that wait for their lock; renewer only */
    snk_batch *batch;        /* owned; renewer only */
    int64_t finish_until_ns; /* set before is_stopping */
} snk_renewer;

void snk_renewer_init(snk_renewer *renewer);
void snk_renewer_deinit(snk_renewer *renewer);

sneck_status snk_renewer_start(sneck_client *client, sneck_error *error);
/* Chases go on until `until_ns` at the latest; then the thread is gone. */
void snk_renewer_stop(sneck_client *client, int64_t until_ns);

/* It has something to do. */
void snk_renewer_call(sneck_client *client);
/* It should look at the request. True: it must be called (after entry.mutex was given back). */
bool snk_renewer_push(sneck_client *client, sneck_request *request);

#endif
