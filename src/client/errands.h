/*
 * The thread that waits for the store for nobody in particular, so that the renewer need not: asynchronous requests and
 * attempts to have a lost lock again, whose agent it is, and what follows from a timer or an answer and is no renewal
 * (the next acquire of a waiter that backs off, or whose claim is gone). A part of the store that hangs holds up what
 * this thread has to do, for as long as a call may take, and no renewal.
 *
 * It is started when it is first needed.
 */
#ifndef SNK_CLIENT_ERRANDS_H
#define SNK_CLIENT_ERRANDS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/list.h"
#include "client/parking.h"
#include "client/turn.h"
#include "sneck.h"

typedef struct snk_errands {
    pthread_t thread;
    _Atomic bool is_running; /* changed under client.start_mutex */
    snk_parking parking;     /* called by whoever has work for it */
    pthread_mutex_t mutex;   /* a leaf */
    bool is_stopping;        /* under mutex */
    snk_list sends;          /* that were left to it; under mutex */
    snk_list ready;          /* requests that it should look at; under mutex */
    snk_list waiting;        /* requests that wait for their lock; under mutex */
    _Atomic size_t waiting_count;
} snk_errands;

void snk_errands_init(snk_errands *errands);
void snk_errands_deinit(snk_errands *errands);

/* Starts the thread unless it runs. SNECK_INVALID when the client is being closed. */
sneck_status snk_errands_start(sneck_client *client, sneck_error *error);
/* Does what is left, and ends. Nobody is inside the client any more but its own threads. */
void snk_errands_stop(sneck_client *client);

/* It has something to do. */
void snk_errands_call(sneck_client *client);
/* It should look at the request. True: it must be called (after entry.mutex was given back). */
bool snk_errands_push(sneck_client *client, sneck_request *request);

/*
 * As snk_perform, for a thread that must not wait for the store: what the turn wants sent is left to the thread, and
 * chases to the renewer. Only without memory, or without a thread, is it sent here and now.
 */
void snk_errands_leave(snk_turn *turn);

#endif
