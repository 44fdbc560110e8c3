#include "client/event_queue.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"

void snk_record_show(const snk_record *record, sneck_event *event_out)
{
    const snk_note *note = &record->note;
    event_out->kind = note->kind;
    event_out->status = note->status;
    event_out->cause = note->cause;
    event_out->token = note->token;
    event_out->time_ms = record->time_ms;
    event_out->remaining_ms = note->remaining_ns / SNK_NS_PER_MS;
    const char *message = note->message != NULL ? note->message : "";
    (void)snk_copy_text(event_out->name, sizeof event_out->name, record->entry == NULL ? "" : record->entry->name);
    (void)snk_copy_text(event_out->message, sizeof event_out->message,
                        record->detail != NULL ? record->detail : message);
}

void snk_record_forget(const snk_record *record, snk_registry *registry)
{
    free(record->detail);
    if (record->entry != NULL)
        snk_registry_unpin(registry, record->entry);
}

void snk_event_queue_init(snk_event_queue *queue)
{
    *queue = (snk_event_queue){ 0 };
    snk_list_init(&queue->queued);
    snk_list_init(&queue->dispensable);
    snk_list_init(&queue->unused);
}

bool snk_event_queue_open(snk_event_queue *queue)
{
    if (queue->slab != NULL)
        return true;
    queue->slab = calloc(SNK_EVENTS_QUEUED_MAX, sizeof *queue->slab);
    if (queue->slab == NULL)
        return false;
    for (size_t i = 0; i < SNK_EVENTS_QUEUED_MAX; i++)
        snk_list_append(&queue->unused, &queue->slab[i].link);
    return true;
}

bool snk_event_queue_is_open(const snk_event_queue *queue)
{
    return queue->slab != NULL;
}

void snk_event_queue_discard(snk_event_queue *queue, snk_registry *registry)
{
    snk_record record;
    while (snk_event_queue_pop(queue, &record))
        snk_record_forget(&record, registry);
    free(queue->slab);
    queue->slab = NULL;
}

static snk_record *record_of(snk_link *link)
{
    return link == NULL ? NULL : SNK_CONTAINER(link, snk_record, link);
}

static void remove_queued(snk_event_queue *queue, snk_record *record)
{
    snk_list_remove(&record->link);
    if (record->note.kind != SNECK_EVENT_LOST)
        snk_list_remove(&record->dispensable);
    queue->count--;
}

/* The oldest event that may be dropped makes room; NULL: all are losses. */
static snk_record *drop_one(snk_event_queue *queue, snk_entry **dropped_out)
{
    snk_link *link = snk_list_first(&queue->dispensable);
    if (link == NULL)
        return NULL;
    snk_record *record = SNK_CONTAINER(link, snk_record, dispensable);
    remove_queued(queue, record);
    *dropped_out = record->entry;
    free(record->detail);
    queue->dropped++;
    return record;
}

/* Room for one more: an unused record, else that of an event worth less, else for a loss a new one. */
static snk_record *make_room(snk_event_queue *queue, sneck_event_kind kind, snk_entry **dropped_out)
{
    snk_record *room = record_of(snk_list_first(&queue->unused));
    if (room != NULL) {
        snk_list_remove(&room->link);
        return room;
    }
    if (dropped_out != NULL)
        room = drop_one(queue, dropped_out);
    return room == NULL && kind == SNECK_EVENT_LOST ? malloc(sizeof *room) : room;
}

bool snk_event_queue_push(snk_event_queue *queue, const snk_record *record, const char *detail, snk_entry **dropped_out)
{
    if (dropped_out != NULL)
        *dropped_out = NULL;
    snk_record *room = make_room(queue, record->note.kind, dropped_out);
    if (room == NULL) {
        queue->dropped++;
        return false;
    }
    *room = *record;
    room->detail = detail == NULL || detail[0] == '\0' ? NULL : strdup(detail);
    if (room->entry != NULL)
        snk_entry_pin(room->entry);
    snk_list_append(&queue->queued, &room->link);
    if (room->note.kind != SNECK_EVENT_LOST)
        snk_list_append(&queue->dispensable, &room->dispensable);
    queue->count++;
    return true;
}

snk_record *snk_event_queue_find(const snk_event_queue *queue,
                                 bool (*matches)(const snk_record *record, const void *context), const void *context)
{
    for (snk_link *link = snk_list_first(&queue->queued); link != NULL; link = snk_list_next(&queue->queued, link))
        if (matches(record_of(link), context))
            return record_of(link);
    return NULL;
}

void snk_event_queue_take(snk_event_queue *queue, snk_record *record, snk_record *record_out)
{
    remove_queued(queue, record);
    *record_out = *record;
    if (record >= queue->slab && record < queue->slab + SNK_EVENTS_QUEUED_MAX)
        snk_list_append(&queue->unused, &record->link);
    else
        free(record);
}

bool snk_event_queue_pop(snk_event_queue *queue, snk_record *record_out)
{
    snk_record *record = record_of(snk_list_first(&queue->queued));
    if (record == NULL)
        return false;
    snk_event_queue_take(queue, record, record_out);
    return true;
}
