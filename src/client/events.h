/*
 * Events on their way to the application: to callbacks, and to who reads them by sneck_event_next.
 */
#ifndef SNK_CLIENT_EVENTS_H
#define SNK_CLIENT_EVENTS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/event_queue.h"
#include "sneck.h"

/* How many entries one event can have pushed out: one of the queue for callbacks, one of that for readers. */
#define SNK_EVENT_CONSUMERS 2

typedef struct snk_events {
    pthread_mutex_t mutex;   /* a leaf: nothing is taken under it */
    snk_event_queue readers; /* for sneck_event_next */
    int fd;                  /* an eventfd, readable while `readers` has something; -1: not asked for */
    _Atomic bool is_wanted;  /* somebody listens; set once, so that nobody pays who does not */
} snk_events;

void snk_events_init(snk_events *events);
/* Drops what was not fetched; no other thread is there any more. */
void snk_events_deinit(sneck_client *client);

/* From now on events are queued. */
void snk_events_want(snk_events *events);

/*
 * Queues notes for those who listen. Up to SNK_EVENT_CONSUMERS * `count` entries, of events that were dropped, have to
 * be unpinned later: they are put into `unpin`, and their number is returned. `entry` is locked.
 */
size_t snk_events_take_locked(sneck_client *client, snk_entry *entry, const snk_note notes[], uint32_t count,
                              snk_entry *unpin[]);

/*
 * Queues one note that no step of a machine has made. `entry` (pinned, not locked) is NULL when it is about no lock;
 * `detail` (copied; NULL or "": none) takes the place of its message.
 */
void snk_events_emit(sneck_client *client, snk_entry *entry, const snk_note *note, const char *detail);

/* How many events wait to be told or fetched, and how many were dropped because too many waited. */
void snk_events_count(sneck_client *client, uint64_t *waiting_out, uint64_t *dropped_out);

#endif
