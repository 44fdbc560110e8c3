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
#include "client/entry.h"
#include "engine/machine.h"

typedef struct snk_record {
    snk_link link;
    snk_entry *entry; /* pinned; NULL: it is about no lock */
    snk_note note;
    char *detail; /* owned; instead of the note's message; NULL: none */
    int64_t time_ms;
    uint64_t number;
} snk_record;

typedef struct snk_event_queue {
    snk_record *slab; /* owned; SNK_EVENTS_QUEUED_MAX of them; NULL: nobody listens */
    snk_list queued;  /* oldest first */
    snk_list unused;
    uint64_t count; /* of those that are queued */
    uint64_t dropped;
} snk_event_queue;

void snk_event_queue_init(snk_event_queue *queue);
/* From now on it takes events. False when out of memory. */
bool snk_event_queue_open(snk_event_queue *queue);
bool snk_event_queue_is_open(const snk_event_queue *queue);
/* Frees the memory; the queue is empty. */
void snk_event_queue_deinit(snk_event_queue *queue);

/*
 * Queues a copy, with a copy of `detail` (NULL or "": none). Returns an entry whose pin the caller has to give back,
 * because the event that had it was dropped, or NULL.
 */
snk_entry *snk_event_queue_push(snk_event_queue *queue, const snk_record *record, const char *detail);

/* Takes the oldest out; its pin and its detail are the caller's. False when there is none. */
bool snk_event_queue_pop(snk_event_queue *queue, snk_record *record_out);

#endif
