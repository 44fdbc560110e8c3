/*
 * Events on their way to one consumer: a bounded queue whose memory is there from the start. When it is full, the
 * oldest event that is not a loss makes room; losses are never dropped while there is memory.
 */
#ifndef SNK_CLIENT_EVENT_QUEUE_H
#define SNK_CLIENT_EVENT_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "client/ear.h"
#include "client/registry.h"
#include "engine/machine.h"

typedef struct snk_record {
    snk_link link;
    snk_link dispensable; /* in queue.dispensable, unless it is a loss */
    snk_entry *entry;     /* pinned; NULL: it is about no lock */
    snk_note note;
    char *detail; /* owned; instead of the note's message; NULL: none */
    int64_t time_ms;
    /* For whom it is, where it is for a callback. */
    const snk_ear *ear; /* NULL: the client's on_event; not to be followed, as the ear may be gone */
    sneck_event_fn on_event;
    void *context;
} snk_record;

/* As the application sees it. */
void snk_record_show(const snk_record *record, sneck_event *event_out);
/* Gives back the pin and the detail of a record that was taken. */
void snk_record_forget(const snk_record *record, snk_registry *registry);

typedef struct snk_event_queue {
    snk_record *slab;     /* owned; SNK_EVENTS_QUEUED_MAX of them; NULL: nobody listens */
    snk_list queued;      /* oldest first */
    snk_list dispensable; /* of those, what may be dropped; oldest first. So nobody looks for one among all losses */
    snk_list unused;
    uint64_t count; /* of those that are queued */
    uint64_t dropped;
} snk_event_queue;

void snk_event_queue_init(snk_event_queue *queue);
/* From now on it takes events. False when out of memory. */
bool snk_event_queue_open(snk_event_queue *queue);
bool snk_event_queue_is_open(const snk_event_queue *queue);
/* Drops everything and frees the memory. */
void snk_event_queue_discard(snk_event_queue *queue, snk_registry *registry);

/*
 * Queues a copy, with a copy of `detail` (NULL or "": none), and pins its entry (which lives, as the caller has locked
 * it). If an event was dropped for it, `*dropped_out` is its entry, whose pin the caller has to give back later, or
 * NULL; without a `dropped_out` none is dropped. False: there was no room, and it was not queued.
 */
bool snk_event_queue_push(snk_event_queue *queue, const snk_record *record, const char *detail,
                          snk_entry **dropped_out);

/* The oldest that matches; NULL: none. */
snk_record *snk_event_queue_find(const snk_event_queue *queue,
                                 bool (*matches)(const snk_record *record, const void *context), const void *context);
/* Takes one out; its pin and its detail are the caller's. */
void snk_event_queue_take(snk_event_queue *queue, snk_record *record, snk_record *record_out);
/* Takes the oldest out. False when there is none. */
bool snk_event_queue_pop(snk_event_queue *queue, snk_record *record_out);

#endif
