#include "client/events.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "client/client.h"
#include "client/turn.h"

void snk_events_init(snk_events *events)
{
    (void)pthread_mutex_init(&events->mutex, NULL);
    snk_event_queue_init(&events->readers);
    events->fd = -1;
}

void snk_events_deinit(sneck_client *client)
{
    snk_events *events = &client->events;
    snk_event_queue_discard(&events->readers, &client->registry);
    if (events->fd >= 0)
        (void)close(events->fd);
    (void)pthread_mutex_destroy(&events->mutex);
}

void snk_events_want(snk_events *events)
{
    atomic_store_explicit(&events->is_wanted, true, memory_order_release);
}

/* ---- In ---- */

static void set_readable_locked(const snk_events *events, bool readable)
{
    uint64_t count = 1;
    ssize_t rc = readable ? write(events->fd, &count, sizeof count) : read(events->fd, &count, sizeof count);
    (void)rc; /* the descriptor does not block: it is already as it should be */
}

/* For who reads them; as snk_callbacks_push_event_locked. */
static size_t push_for_readers(snk_events *events, const snk_record *record, const char *detail, snk_entry **unpin)
{
    snk_entry *dropped = NULL;
    (void)pthread_mutex_lock(&events->mutex);
    if (snk_event_queue_is_open(&events->readers)) {
        bool was_empty = events->readers.count == 0;
        if (snk_event_queue_push(&events->readers, record, detail, &dropped) && was_empty)
            set_readable_locked(events, true);
    }
    (void)pthread_mutex_unlock(&events->mutex);
    if (dropped == NULL)
        return 0;
    *unpin = dropped;
    return 1;
}

static size_t take_locked(sneck_client *client, snk_entry *entry, const snk_note notes[], uint32_t count,
                          const char *detail, snk_entry *unpin[])
{
    int64_t time_ms = snk_wall_us() / 1000;
    size_t unpin_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        snk_record record = { .entry = entry, .note = notes[i], .time_ms = time_ms };
        unpin_count += snk_callbacks_push_event_locked(client, &record, detail, unpin + unpin_count, 1);
        unpin_count += push_for_readers(&client->events, &record, detail, unpin + unpin_count);
    }
    return unpin_count;
}

size_t snk_events_take_locked(sneck_client *client, snk_entry *entry, const snk_note notes[], uint32_t count,
                              snk_entry *unpin[])
{
    if (!atomic_load_explicit(&client->events.is_wanted, memory_order_acquire))
        return 0;
    return take_locked(client, entry, notes, count, NULL, unpin);
}

void snk_events_emit(sneck_client *client, snk_entry *entry, const snk_note *note, const char *detail)
{
    snk_entry *unpin[SNK_EVENT_CONSUMERS];
    snk_turn_log(client, entry, note, detail);
    snk_metrics_event(&client->metrics, note->kind);
    if (!atomic_load_explicit(&client->events.is_wanted, memory_order_acquire))
        return;
    if (entry != NULL)
        (void)pthread_mutex_lock(&entry->mutex);
    size_t count = take_locked(client, entry, note, 1, detail, unpin);
    if (entry != NULL)
        (void)pthread_mutex_unlock(&entry->mutex);
    for (size_t i = 0; i < count; i++)
        snk_registry_unpin(&client->registry, unpin[i]);
}

void snk_events_count(sneck_client *client, uint64_t *waiting_out, uint64_t *dropped_out)
{
    snk_events *events = &client->events;
    snk_callbacks_count(client, waiting_out, dropped_out);
    (void)pthread_mutex_lock(&events->mutex);
    *waiting_out += events->readers.count;
    *dropped_out += events->readers.dropped;
    (void)pthread_mutex_unlock(&events->mutex);
}

/* ---- Out, by descriptor ---- */

static int open_readers_locked(snk_events *events)
{
    if (events->fd >= 0)
        return events->fd;
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd >= 0 && !snk_event_queue_open(&events->readers)) {
        (void)close(fd);
        return -1;
    }
    events->fd = fd;
    if (fd >= 0)
        snk_events_want(events);
    return fd;
}

int sneck_event_fd(sneck_client *client)
{
    if (snk_client_check(client, NULL) != SNECK_OK)
        return -1;
    (void)pthread_mutex_lock(&client->events.mutex);
    int fd = open_readers_locked(&client->events);
    (void)pthread_mutex_unlock(&client->events.mutex);
    return fd;
}

bool sneck_event_next(sneck_client *client, sneck_event *event_out)
{
    if (event_out == NULL || snk_client_check(client, NULL) != SNECK_OK)
        return false;
    snk_events *events = &client->events;
    snk_record record;
    (void)pthread_mutex_lock(&events->mutex);
    bool found = events->fd >= 0 && snk_event_queue_pop(&events->readers, &record);
    if (found && snk_list_is_empty(&events->readers.queued))
        set_readable_locked(events, false);
    (void)pthread_mutex_unlock(&events->mutex);
    if (!found)
        return false;
    snk_record_show(&record, event_out);
    snk_record_forget(&record, &client->registry);
    return true;
}
