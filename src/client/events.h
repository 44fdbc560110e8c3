/*
 * Events and results on their way to the application: by callback on the dispatcher's thread, or by sneck_event_next.
 */
#ifndef SNK_CLIENT_EVENTS_H
#define SNK_CLIENT_EVENTS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/ear.h"
#include "client/event_queue.h"
#include "sneck.h"

#define SNK_EVENT_CONSUMERS 2

/*
 * Waking a thread costs more than everything else about an event. So a dispatcher that has just been busy naps for a
 * moment before it sleeps, and only what is urgent wakes it from that.
 */
typedef enum snk_sleep {
    SNK_SLEEP_NONE,
    SNK_SLEEP_NAP,
    SNK_SLEEP_SOUND
} snk_sleep;

typedef struct snk_events {
    pthread_mutex_t mutex;     /* a leaf: nothing is taken under it, and it is not held while a callback runs */
    pthread_cond_t work;       /* the dispatcher has something to do */
    pthread_cond_t returned;   /* a callback has returned */
    snk_event_queue callbacks; /* for on_event of the client and of handles */
    snk_event_queue readers;   /* for sneck_event_next */
    snk_list done;             /* requests whose `done` is to be called */
    snk_list lines;            /* for the application's log */
    size_t line_count;
    uint64_t lines_dropped;
    uint64_t number;        /* of the last event */
    const snk_ear *calling; /* whose on_event runs now */
    pthread_t thread;       /* the dispatcher's */
    snk_sleep sleep;        /* of the dispatcher */
    bool is_running;
    bool is_stopping;
    int fd;                 /* an eventfd, readable while `readers` has something; -1: not asked for */
    _Atomic bool is_wanted; /* some queue is open; set once, so that nobody pays who does not listen */
} snk_events;

void snk_events_init(snk_events *events);
/* Drops what was not fetched; no other thread is there any more. */
void snk_events_deinit(sneck_client *client);

/* The dispatcher runs from now on, and callbacks are queued. SNECK_NO_MEMORY when it cannot be started. */
sneck_status snk_events_start(sneck_client *client, sneck_error *error);
/* Everything that is queued has been called when it returns. */
void snk_events_stop(sneck_client *client);

/*
 * Queues notes for those who listen. Up to 2 * `count` entries, of events that were dropped, have to be unpinned later:
 * they are put into `unpin`, and their number is returned. `entry` is locked.
 */
size_t snk_events_take_locked(sneck_client *client, snk_entry *entry, const snk_note notes[], uint32_t count,
                              snk_entry *unpin[]);

/*
 * Queues one note that no step of a machine has made. `entry` (pinned, not locked) is NULL when it is about no lock;
 * `detail` (copied; NULL or "": none) takes the place of its message.
 */
void snk_events_emit(sneck_client *client, snk_entry *entry, const snk_note *note, const char *detail);

/* How many events wait to be told, and how many were dropped because too many waited. */
void snk_events_count(sneck_client *client, uint64_t *waiting_out, uint64_t *dropped_out);

/* The result of a request is to be told. */
void snk_events_push_done(sneck_client *client, sneck_request *request);

/* A line for the application's log; copied. When too many wait it is dropped, and counted. */
void snk_events_push_line(sneck_client *client, sneck_log_level level, const char *text);

/* The number of the last event: an ear that is made now hears of later ones. */
uint64_t snk_events_number(sneck_client *client);
/* Returns when no callback of this ear runs, unless it is called from that callback. The ear is detached. */
void snk_events_await(sneck_client *client, const snk_ear *ear);
/* True on the dispatcher's own thread. */
bool snk_events_is_dispatcher(sneck_client *client);

#endif
