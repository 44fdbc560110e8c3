#include "client/event_queue.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"

void snk_event_queue_init(snk_event_queue *queue)
{
    *queue = (snk_event_queue){ 0 };
    snk_list_init(&queue->queued);
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

void snk_event_queue_deinit(snk_event_queue *queue)
{
    free(queue->slab);
    queue->slab = NULL;
}

static snk_record *record_of(snk_link *link)
{
    return link == NULL ? NULL : SNK_CONTAINER(link, snk_record, link);
}

static snk_record *oldest_but_losses(const snk_event_queue *queue)
{
    for (snk_link *link = snk_list_first(&queue->queued); link != NULL; link = snk_list_next(&queue->queued, link))
        if (record_of(link)->note.kind != SNECK_EVENT_LOST)
            return record_of(link);
    return NULL;
}

/* Room for one more: an unused record, else that of an event worth less, else for a loss a new one. */
static snk_record *make_room(snk_event_queue *queue, sneck_event_kind kind, snk_entry **dropped_out)
{
    snk_record *room = record_of(snk_list_first(&queue->unused));
    if (room == NULL) {
        room = oldest_but_losses(queue);
        if (room != NULL) {
            *dropped_out = room->entry;
            free(room->detail);
            queue->dropped++;
            queue->count--;
        }
    }
    if (room == NULL)
        return kind == SNECK_EVENT_LOST ? malloc(sizeof *room) : NULL;
    snk_list_remove(&room->link);
    return room;
}

snk_entry *snk_event_queue_push(snk_event_queue *queue, const snk_record *record, const char *detail)
{
    snk_entry *dropped = NULL;
    snk_record *room = make_room(queue, record->note.kind, &dropped);
    if (room == NULL) {
        queue->dropped++;
        return record->entry;
    }
    *room = *record;
    room->detail = detail == NULL || detail[0] == '\0' ? NULL : strdup(detail);
    snk_list_append(&queue->queued, &room->link);
    queue->count++;
    return dropped;
}

bool snk_event_queue_pop(snk_event_queue *queue, snk_record *record_out)
{
    snk_record *record = record_of(snk_list_first(&queue->queued));
    if (record == NULL)
        return false;
    snk_list_remove(&record->link);
    queue->count--;
    *record_out = *record;
    if (record >= queue->slab && record < queue->slab + SNK_EVENTS_QUEUED_MAX)
        snk_list_append(&queue->unused, &record->link);
    else
        free(record);
    return true;
}
