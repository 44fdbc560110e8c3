/*
 * The thread that keeps time and does nothing else: no I/O and no callbacks, so nothing can hold it up. It notices a
 * loss at its deadline even while the renewer hangs in the store, and ends asynchronous waits on time. It is also the
 * thread that the store may adopt as the sign of life of this client.
 */
#ifndef SNK_CLIENT_KEEPER_H
#define SNK_CLIENT_KEEPER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "client/parking.h"
#include "client/timers.h"
#include "sneck.h"

typedef struct snk_keeper {
    pthread_t thread;
    bool is_running; /* under client.start_mutex */
    _Atomic bool is_stopping;
    _Atomic uint32_t adopted; /* 1 once the store has adopted the thread */
    snk_parking parking;
    int clock_fd; /* a timerfd that it sleeps on, because no futex counts the time of a suspended machine; -1: none */
    snk_timers deadlines; /* of entries: machine.deadline */
    snk_timers timeouts;  /* of requests */
} snk_keeper;

void snk_keeper_init(snk_keeper *keeper);
void snk_keeper_deinit(snk_keeper *keeper);

/* When it returns, the store has adopted the thread. */
sneck_status snk_keeper_start(sneck_client *client, sneck_error *error);
void snk_keeper_stop(sneck_client *client);

void snk_keeper_call(sneck_client *client);

#endif
