#include "client/events.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "client/async.h"
#include "client/client.h"
#include "client/thread.h"

#define NAP_NS (1 * SNK_NS_PER_MS)

void snk_events_init(snk_events *events)
{
    pthread_condattr_t attributes;
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_mutex_init(&events->mutex, NULL);
    (void)pthread_cond_init(&events->work, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    (void)pthread_cond_init(&events->returned, NULL);
    snk_event_queue_init(&events->callbacks);
    snk_event_queue_init(&events->readers);
    snk_list_init(&events->done);
    snk_list_init(&events->lines);
    events->fd = -1;
}

/* What a record had. */
static void forget(sneck_client *client, const snk_record *record)
{
    free(record->detail);
    if (record->entry != NULL)
        snk_registry_unpin(&client->registry, record->entry);
}

static void discard(sneck_client *client, snk_event_queue *queue)
{
    snk_record record;
    while (snk_event_queue_pop(queue, &record))
        forget(client, &record);
    snk_event_queue_deinit(queue);
}

void snk_events_deinit(sneck_client *client)
{
    snk_events *events = &client->events;
    discard(client, &events->callbacks);
    discard(client, &events->readers);
    if (events->fd >= 0)
        (void)close(events->fd);
    (void)pthread_cond_destroy(&events->returned);
    (void)pthread_cond_destroy(&events->work);
    (void)pthread_mutex_destroy(&events->mutex);
}

static sneck_status start_locked(sneck_client *client, sneck_error *error);

/* ---- In ---- */

static bool has_listener_locked(const sneck_client *client, const snk_entry *entry)
{
    if (client->settings.on_event != NULL || entry == NULL)
        return client->settings.on_event != NULL;
    for (const snk_ear *ear = entry->ears; ear != NULL; ear = ear->next)
        if (ear->on_event != NULL)
            return true;
    return false;
}

/* Queues a copy that pins the entry; what it pushed out is added to `unpin`. */
static size_t push_locked(snk_event_queue *queue, const snk_record *record, const char *detail, snk_entry **unpin)
{
    if (record->entry != NULL)
        snk_entry_pin(record->entry);
    snk_entry *dropped = snk_event_queue_push(queue, record, detail);
    if (dropped == NULL)
        return 0;
    *unpin = dropped;
    return 1;
}

static void set_readable_locked(const snk_events *events, bool readable)
{
    uint64_t count = 1;
    ssize_t rc = readable ? write(events->fd, &count, sizeof count) : read(events->fd, &count, sizeof count);
    (void)rc; /* the descriptor does not block: it is already as it should be */
}

static void wake_locked(snk_events *events, bool is_urgent)
{
    if (events->sleep == SNK_SLEEP_SOUND || (is_urgent && events->sleep == SNK_SLEEP_NAP))
        (void)pthread_cond_signal(&events->work);
}

/* What happens all day can wait for a millisecond. */
static bool is_urgent(sneck_event_kind kind)
{
    return kind != SNECK_EVENT_ACQUIRED && kind != SNECK_EVENT_RELEASED && kind != SNECK_EVENT_RENEWED;
}

static size_t queue_note_locked(sneck_client *client, const snk_record *record, const char *detail, bool for_callbacks,
                                snk_entry **unpin)
{
    snk_events *events = &client->events;
    size_t count = 0;
    if (for_callbacks && snk_event_queue_is_open(&events->callbacks)) {
        count += push_locked(&events->callbacks, record, detail, unpin);
        wake_locked(events, is_urgent(record->note.kind));
    }
    if (snk_event_queue_is_open(&events->readers)) {
        bool was_empty = events->readers.count == 0;
        count += push_locked(&events->readers, record, detail, unpin + count);
        if (was_empty)
            set_readable_locked(events, true);
    }
    return count;
}

static size_t take_locked(sneck_client *client, snk_entry *entry, const snk_note notes[], uint32_t count,
                          const char *detail, snk_entry *unpin[])
{
    snk_events *events = &client->events;
    bool for_callbacks = has_listener_locked(client, entry);
    int64_t time_ms = snk_wall_us() / 1000;
    size_t unpin_count = 0;
    (void)pthread_mutex_lock(&events->mutex);
    for (uint32_t i = 0; i < count; i++) {
        snk_record record = {
            .entry = entry,
            .note = notes[i],
            .time_ms = time_ms,
            .number = ++events->number,
        };
        unpin_count += queue_note_locked(client, &record, detail, for_callbacks, unpin + unpin_count);
    }
    (void)pthread_mutex_unlock(&events->mutex);
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
    snk_events *events = &client->events;
    snk_entry *unpin[SNK_EVENT_CONSUMERS];
    snk_turn_log(client, entry, note, detail);
    snk_metrics_event(&client->metrics, note->kind);
    if (!atomic_load_explicit(&events->is_wanted, memory_order_acquire))
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
    const snk_events *events = &client->events;
    (void)pthread_mutex_lock(&client->events.mutex);
    *waiting_out = events->callbacks.count + events->readers.count;
    *dropped_out = events->callbacks.dropped + events->readers.dropped;
    (void)pthread_mutex_unlock(&client->events.mutex);
}

/* ---- The log ---- */

typedef struct line {
    snk_link link;
    sneck_log_level level;
    char text[];
} line;

void snk_events_push_line(sneck_client *client, sneck_log_level level, const char *text)
{
    snk_events *events = &client->events;
    size_t size = strlen(text) + 1;
    line *made = malloc(sizeof *made + size);
    (void)pthread_mutex_lock(&events->mutex);
    bool fits = made != NULL && events->line_count < SNK_LOG_LINES_MAX && start_locked(client, NULL) == SNECK_OK;
    if (fits) {
        made->link = (snk_link){ NULL, NULL };
        made->level = level;
        memcpy(made->text, text, size);
        snk_list_append(&events->lines, &made->link);
        events->line_count++;
        wake_locked(events, false);
    } else {
        events->lines_dropped++;
    }
    (void)pthread_mutex_unlock(&events->mutex);
    if (!fits)
        free(made);
}

static void write_line(sneck_client *client, snk_link *link)
{
    line *written = SNK_CONTAINER(link, line, link);
    client->settings.log(client->settings.log_context, written->level, written->text);
    free(written);
}

static snk_link *pop_line_locked(snk_events *events)
{
    snk_link *link = snk_list_first(&events->lines);
    if (link != NULL) {
        snk_list_remove(link);
        events->line_count--;
    }
    return link;
}

void snk_events_push_done(sneck_client *client, sneck_request *request)
{
    snk_events *events = &client->events;
    (void)pthread_mutex_lock(&events->mutex);
    snk_list_append(&events->done, &request->done_link);
    wake_locked(events, true);
    (void)pthread_mutex_unlock(&events->mutex);
}

uint64_t snk_events_number(sneck_client *client)
{
    (void)pthread_mutex_lock(&client->events.mutex);
    uint64_t number = client->events.number;
    (void)pthread_mutex_unlock(&client->events.mutex);
    return number;
}

/* ---- Out, by callback ---- */

static void fill_event(sneck_event *event, const snk_record *record)
{
    const snk_note *note = &record->note;
    event->kind = note->kind;
    event->status = note->status;
    event->cause = note->cause;
    event->token = note->token;
    event->time_ms = record->time_ms;
    event->remaining_ms = note->remaining_ns / SNK_NS_PER_MS;
    const char *message = note->message != NULL ? note->message : "";
    (void)snk_copy_text(event->name, sizeof event->name, record->entry == NULL ? "" : record->entry->name);
    (void)snk_copy_text(event->message, sizeof event->message, record->detail != NULL ? record->detail : message);
}

static snk_ear *next_ear_locked(const snk_entry *entry, uint64_t number)
{
    for (snk_ear *ear = entry->ears; ear != NULL; ear = ear->next)
        if (ear->on_event != NULL && ear->heard < number)
            return ear;
    return NULL;
}

/* Marks the ear as being called: from now on it is not freed until end_call. */
static snk_ear *begin_call(sneck_client *client, const snk_record *record, sneck_event_fn *on_event, void **context)
{
    snk_entry *entry = record->entry;
    if (entry == NULL)
        return NULL;
    (void)pthread_mutex_lock(&entry->mutex);
    snk_ear *ear = next_ear_locked(entry, record->number);
    if (ear != NULL) {
        ear->heard = record->number;
        *on_event = ear->on_event;
        *context = ear->event_context;
        (void)pthread_mutex_lock(&client->events.mutex);
        client->events.calling = ear;
        (void)pthread_mutex_unlock(&client->events.mutex);
    }
    (void)pthread_mutex_unlock(&entry->mutex);
    return ear;
}

static void end_call(sneck_client *client)
{
    (void)pthread_mutex_lock(&client->events.mutex);
    client->events.calling = NULL;
    (void)pthread_cond_broadcast(&client->events.returned);
    (void)pthread_mutex_unlock(&client->events.mutex);
}

static void deliver(sneck_client *client, const snk_record *record)
{
    sneck_event event;
    fill_event(&event, record);
    if (client->settings.on_event != NULL)
        client->settings.on_event(client->settings.event_context, &event);
    sneck_event_fn on_event = NULL;
    void *context = NULL;
    while (begin_call(client, record, &on_event, &context) != NULL) {
        on_event(context, &event);
        end_call(client);
    }
    forget(client, record);
}

/* There is nothing to do: after some work a nap, after that a sleep. */
static void sleep_locked(snk_events *events, bool *was_busy)
{
    events->sleep = *was_busy ? SNK_SLEEP_NAP : SNK_SLEEP_SOUND;
    if (*was_busy) {
        struct timespec until = snk_timespec(snk_clock_read_ns(CLOCK_MONOTONIC) + NAP_NS);
        (void)pthread_cond_timedwait(&events->work, &events->mutex, &until);
    } else {
        (void)pthread_cond_wait(&events->work, &events->mutex);
    }
    events->sleep = SNK_SLEEP_NONE;
    *was_busy = false;
}

static void *run(void *argument)
{
    sneck_client *client = argument;
    snk_events *events = &client->events;
    bool was_busy = false;
    (void)pthread_mutex_lock(&events->mutex);
    for (;;) {
        snk_record record;
        snk_link *link = snk_list_first(&events->done);
        snk_link *written = link == NULL ? pop_line_locked(events) : NULL;
        if (link != NULL) {
            snk_list_remove(link);
            (void)pthread_mutex_unlock(&events->mutex);
            snk_request_tell(SNK_CONTAINER(link, sneck_request, done_link));
        } else if (written != NULL) {
            (void)pthread_mutex_unlock(&events->mutex);
            write_line(client, written);
        } else if (snk_event_queue_pop(&events->callbacks, &record)) {
            (void)pthread_mutex_unlock(&events->mutex);
            deliver(client, &record);
        } else if (events->is_stopping) {
            break;
        } else {
            sleep_locked(events, &was_busy);
            continue;
        }
        (void)pthread_mutex_lock(&events->mutex);
        was_busy = true;
    }
    (void)pthread_mutex_unlock(&events->mutex);
    return NULL;
}

static sneck_status start_locked(sneck_client *client, sneck_error *error)
{
    snk_events *events = &client->events;
    if (events->is_running)
        return SNECK_OK;
    if (events->is_stopping)
        return snk_fail(error, SNECK_INVALID, 0, "the client is being closed");
    if (!snk_event_queue_open(&events->callbacks))
        return snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory for the queue of events");
    sneck_status status = snk_thread_start(&events->thread, "sneck-callbacks", run, client, error);
    events->is_running = status == SNECK_OK;
    if (events->is_running)
        atomic_store_explicit(&events->is_wanted, true, memory_order_release);
    return status;
}

sneck_status snk_events_start(sneck_client *client, sneck_error *error)
{
    (void)pthread_mutex_lock(&client->events.mutex);
    sneck_status status = start_locked(client, error);
    (void)pthread_mutex_unlock(&client->events.mutex);
    return status;
}

void snk_events_stop(sneck_client *client)
{
    snk_events *events = &client->events;
    (void)pthread_mutex_lock(&events->mutex);
    bool was_running = events->is_running;
    events->is_stopping = true;
    (void)pthread_cond_signal(&events->work);
    (void)pthread_mutex_unlock(&events->mutex);
    if (!was_running)
        return;
    (void)pthread_join(events->thread, NULL);
    (void)pthread_mutex_lock(&events->mutex);
    events->is_running = false;
    (void)pthread_mutex_unlock(&events->mutex);
}

bool snk_events_is_dispatcher(sneck_client *client)
{
    snk_events *events = &client->events;
    (void)pthread_mutex_lock(&events->mutex);
    bool is_dispatcher = events->is_running && pthread_equal(events->thread, pthread_self());
    (void)pthread_mutex_unlock(&events->mutex);
    return is_dispatcher;
}

void snk_events_await(sneck_client *client, const snk_ear *ear)
{
    snk_events *events = &client->events;
    (void)pthread_mutex_lock(&events->mutex);
    if (!events->is_running || !pthread_equal(events->thread, pthread_self()))
        while (events->calling == ear)
            (void)pthread_cond_wait(&events->returned, &events->mutex);
    (void)pthread_mutex_unlock(&events->mutex);
}

/* ---- Out, by descriptor ---- */

static int open_readers_locked(snk_events *events)
{
    if (events->fd >= 0)
        return events->fd;
    if (!snk_event_queue_open(&events->readers))
        return -1;
    events->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (events->fd < 0)
        snk_event_queue_deinit(&events->readers);
    else
        atomic_store_explicit(&events->is_wanted, true, memory_order_release);
    return events->fd;
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
    fill_event(event_out, &record);
    forget(client, &record);
    return true;
}
