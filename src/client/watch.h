/*
 * The watchdog's thread: it gathers the facts for engine/watchdog, and does what that decides.
 *
 * Each period it makes its round (look.c is about other looks): renewal thread, connection, every hold's owner and state
 * in the store, what became of earlier remedies. Between rounds it does at once what cannot wait: owners that ended, and
 * holds that were lost and are to be acquired again. sneck_check makes a round on the calling thread.
 *
 * Locks: watch.mutex comes before all others of the client and is held during a whole round, the store's I/O included:
 * only rounds wait for each other. watch.inbox_mutex is a leaf.
 */
#ifndef SNK_CLIENT_WATCH_H
#define SNK_CLIENT_WATCH_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "client/entry.h"
#include "client/parking.h"
#include "client/presence.h"
#include "engine/watchdog.h"
#include "sneck.h"

typedef struct snk_batch snk_batch;
typedef struct snk_patrol snk_patrol;

/* What the watchdog found out about the connection, for those who ask. */
typedef struct snk_link_report {
    int64_t round_trip_ns; /* of the last probe that was answered; -1: none yet */
    bool has_clock;
    int64_t clock_offset_ns;
} snk_link_report;

typedef struct snk_watch {
    pthread_t thread;
    bool is_running; /* under client.start_mutex */
    _Atomic bool is_stopping;
    snk_parking parking;
    _Atomic int64_t period_ms; /* the shortest watchdog_ms of the client and its locks; INT64_MAX: none */
    snk_presence presence;

    pthread_mutex_t mutex;
    snk_watchdog engine; /* under mutex */
    snk_patrol *patrol;  /* owned; made under client.start_mutex; what is in it: under mutex */
    snk_list unfinished; /* of snk_letter: owners that ended, holds that are to be acquired again; under mutex */
    uint64_t failures;   /* of remedies, as of the last round; under mutex */

    pthread_mutex_t inbox_mutex;
    snk_list inbox; /* of snk_letter; under inbox_mutex */

    pthread_mutex_t shown_mutex; /* a leaf */
    snk_watchdog shown;          /* the engine as of the last round; under shown_mutex */
    snk_link_report link;        /* under shown_mutex */
    _Atomic uint64_t replaced;   /* renewal threads */
    _Atomic uint32_t released;   /* locks that were taken away, since the last look: the store knows */
    _Atomic uint32_t unreleased; /* and: it did not answer */
    _Atomic int64_t started_at_ns;
} snk_watch;

void snk_watch_init(snk_watch *watch);
void snk_watch_deinit(sneck_client *client);

/* A lock wants to be looked at so often (0: not at all). The thread must be started, or runs already. */
void snk_watch_want(sneck_client *client, uint32_t watchdog_ms);

/* Whoever makes a round must have called this once; false when out of memory. Under client.start_mutex. */
bool snk_watch_prepare(sneck_client *client);

/* Starts the thread, unless it runs or nobody wants it. Under client.start_mutex. */
sneck_status snk_watch_start(sneck_client *client, sneck_error *error);
void snk_watch_stop(sneck_client *client);

/* ---- What others have to tell it; none of it waits ---- */

/* A thread ended with levels of locks, perhaps of this client. */
void snk_watch_owner_ended(sneck_client *client, uint64_t owner);
/* A hold was lost in a step. True: the watchdog is to be called (after entry.mutex was given back). */
bool snk_watch_lost_locked(sneck_client *client, snk_entry *entry, const snk_note *note);
/* An attempt to acquire a lock again has ended. */
void snk_watch_recovery_ended(sneck_client *client, snk_entry *entry, snk_waiter *waiter);

/* A lock that the watchdog took away was released in the store, or that failed. */
void snk_watch_released(sneck_client *client, bool worked);

void snk_watch_call(sneck_client *client);

/* As of the last round. */
void snk_watch_show(sneck_client *client, snk_watchdog *engine_out, snk_link_report *link_out);

#endif
