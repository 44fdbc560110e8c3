#include "client/callbacks.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "client/async.h"
#include "client/client.h"

typedef struct line {
    snk_link link;
    sneck_log_level level;
    char text[];
} line;

void snk_callbacks_init(snk_callbacks *callbacks)
{
    pthread_condattr_t attributes;
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_mutex_init(&callbacks->mutex, NULL);
    (void)pthread_cond_init(&callbacks->work, &attributes);
    (void)pthread_cond_init(&callbacks->trouble, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    (void)pthread_cond_init(&callbacks->returned, NULL);
    snk_event_queue_init(&callbacks->events);
    snk_list_init(&callbacks->results);
    snk_list_init(&callbacks->lines);
}

void snk_callbacks_deinit(sneck_client *client)
{
    snk_callbacks *callbacks = &client->callbacks;
    snk_event_queue_discard(&callbacks->events, &client->registry);
    (void)pthread_cond_destroy(&callbacks->returned);
    (void)pthread_cond_destroy(&callbacks->trouble);
    (void)pthread_cond_destroy(&callbacks->work);
    (void)pthread_mutex_destroy(&callbacks->mutex);
}

/* ---- Lanes ---- */

static snk_lane lane_of_record(const snk_record *record)
{
    return (snk_lane){ .kind = SNK_LANE_EVENTS, .who = (uintptr_t)record->ear, .entry = record->entry };
}

static snk_lane lane_of_request(const sneck_request *request)
{
    return (snk_lane){ .kind = SNK_LANE_RESULTS, .who = request->agent.waiter.owner, .entry = request->entry };
}

static const snk_lane log_lane = { .kind = SNK_LANE_LOG };

bool snk_callbacks_is_busy_locked(const snk_callbacks *callbacks, const snk_lane *lane)
{
    size_t left = callbacks->busy;
    for (size_t i = 0; left > 0 && i < SNK_CALLBACK_THREADS_MAX; i++) {
        const snk_lane *taken = &callbacks->tellers[i].lane;
        if (taken->kind == lane->kind && taken->who == lane->who && taken->entry == lane->entry)
            return true;
        left -= taken->kind != SNK_LANE_NONE;
    }
    return false;
}

/* ---- In ---- */

/* What happens all day can wait for a moment. */
static bool is_urgent(sneck_event_kind kind)
{
    return kind != SNECK_EVENT_ACQUIRED && kind != SNECK_EVENT_RELEASED && kind != SNECK_EVENT_RENEWED;
}

/* Queues a copy that pins the entry; what it pushed out is put into `unpin`, if there is room. */
static size_t push_record_locked(snk_callbacks *callbacks, const snk_record *record, const char *detail,
                                 snk_entry *unpin[], size_t room)
{
    snk_entry *dropped = NULL;
    if (!snk_event_queue_push(&callbacks->events, record, detail, room > 0 ? &dropped : NULL))
        return 0;
    snk_lane lane = lane_of_record(record);
    snk_callbacks_wake_locked(callbacks, &lane, is_urgent(record->note.kind));
    if (dropped == NULL)
        return 0;
    unpin[0] = dropped;
    return 1;
}

size_t snk_callbacks_push_event_locked(sneck_client *client, const snk_record *record, const char *detail,
                                       snk_entry *unpin[], size_t room)
{
    snk_callbacks *callbacks = &client->callbacks;
    const snk_ear *ear = record->entry == NULL ? NULL : record->entry->ears;
    if (client->settings.on_event == NULL && ear == NULL)
        return 0;
    snk_record copy = *record;
    size_t count = 0;
    (void)pthread_mutex_lock(&callbacks->mutex);
    if (client->settings.on_event != NULL && snk_event_queue_is_open(&callbacks->events)) {
        copy.on_event = client->settings.on_event;
        copy.context = client->settings.event_context;
        count += push_record_locked(callbacks, &copy, detail, unpin, room);
    }
    for (; ear != NULL; ear = ear->next) {
        if (ear->on_event == NULL)
            continue;
        copy.ear = ear;
        copy.on_event = ear->on_event;
        copy.context = ear->event_context;
        count += push_record_locked(callbacks, &copy, detail, unpin + count, room - count);
    }
    (void)pthread_mutex_unlock(&callbacks->mutex);
    return count;
}

void snk_callbacks_push_result(sneck_client *client, sneck_request *request)
{
    snk_callbacks *callbacks = &client->callbacks;
    snk_lane lane = lane_of_request(request);
    (void)pthread_mutex_lock(&callbacks->mutex);
    snk_list_append(&callbacks->results, &request->done_link);
    snk_callbacks_wake_locked(callbacks, &lane, true);
    (void)pthread_mutex_unlock(&callbacks->mutex);
}

void snk_callbacks_push_line(sneck_client *client, sneck_log_level level, const char *text)
{
    snk_callbacks *callbacks = &client->callbacks;
    size_t size = strlen(text) + 1;
    line *made = malloc(sizeof *made + size);
    (void)pthread_mutex_lock(&callbacks->mutex);
    bool fits = made != NULL && callbacks->line_count < SNK_LOG_LINES_MAX &&
                snk_callbacks_start_locked(client, NULL) == SNECK_OK;
    if (fits) {
        made->link = (snk_link){ NULL, NULL };
        made->level = level;
        memcpy(made->text, text, size);
        snk_list_append(&callbacks->lines, &made->link);
        callbacks->line_count++;
        snk_callbacks_wake_locked(callbacks, &log_lane, false);
    } else {
        callbacks->lines_dropped++;
    }
    (void)pthread_mutex_unlock(&callbacks->mutex);
    if (!fits)
        free(made);
}

void snk_callbacks_count(sneck_client *client, uint64_t *waiting_out, uint64_t *dropped_out)
{
    snk_callbacks *callbacks = &client->callbacks;
    (void)pthread_mutex_lock(&callbacks->mutex);
    *waiting_out = callbacks->events.count;
    *dropped_out = callbacks->events.dropped;
    (void)pthread_mutex_unlock(&callbacks->mutex);
}

/* ---- Out ---- */

static sneck_request *request_of(snk_link *link)
{
    return SNK_CONTAINER(link, sneck_request, done_link);
}

static snk_link *ready_result_locked(const snk_callbacks *callbacks)
{
    snk_link *link = snk_list_first(&callbacks->results);
    for (; link != NULL; link = snk_list_next(&callbacks->results, link)) {
        snk_lane lane = lane_of_request(request_of(link));
        if (!snk_callbacks_is_busy_locked(callbacks, &lane))
            break;
    }
    return link;
}

static snk_link *ready_line_locked(const snk_callbacks *callbacks)
{
    return snk_callbacks_is_busy_locked(callbacks, &log_lane) ? NULL : snk_list_first(&callbacks->lines);
}

static bool is_record_ready(const snk_record *record, const void *context)
{
    snk_lane lane = lane_of_record(record);
    return !snk_callbacks_is_busy_locked(context, &lane);
}

static snk_record *ready_record_locked(const snk_callbacks *callbacks)
{
    return snk_event_queue_find(&callbacks->events, is_record_ready, callbacks);
}

bool snk_callbacks_has_ready_locked(const snk_callbacks *callbacks)
{
    return ready_result_locked(callbacks) != NULL || ready_line_locked(callbacks) != NULL ||
           ready_record_locked(callbacks) != NULL;
}

bool snk_callbacks_is_empty_locked(const snk_callbacks *callbacks)
{
    return snk_list_is_empty(&callbacks->results) && snk_list_is_empty(&callbacks->lines) &&
           callbacks->events.count == 0;
}

bool snk_callbacks_take_locked(snk_callbacks *callbacks, snk_job *job_out)
{
    job_out->link = ready_result_locked(callbacks);
    if (job_out->link != NULL) {
        job_out->lane = lane_of_request(request_of(job_out->link));
        snk_list_remove(job_out->link);
        return true;
    }
    job_out->link = ready_line_locked(callbacks);
    if (job_out->link != NULL) {
        job_out->lane = log_lane;
        snk_list_remove(job_out->link);
        callbacks->line_count--;
        return true;
    }
    snk_record *record = ready_record_locked(callbacks);
    if (record == NULL)
        return false;
    job_out->lane = lane_of_record(record);
    snk_event_queue_take(&callbacks->events, record, &job_out->record);
    return true;
}

static void tell_event(sneck_client *client, const snk_record *record)
{
    sneck_event event;
    snk_record_show(record, &event);
    record->on_event(record->context, &event);
    snk_record_forget(record, &client->registry);
}

static void write_line(sneck_client *client, snk_link *link)
{
    line *written = SNK_CONTAINER(link, line, link);
    client->settings.log(client->settings.log_context, written->level, written->text);
    free(written);
}

void snk_callbacks_call(sneck_client *client, const snk_job *job)
{
    switch (job->lane.kind) {
    case SNK_LANE_EVENTS:
        tell_event(client, &job->record);
        break;
    case SNK_LANE_RESULTS:
        snk_request_tell(request_of(job->link));
        break;
    case SNK_LANE_LOG:
        write_line(client, job->link);
        break;
    case SNK_LANE_NONE:
        break;
    }
}

/* ---- Ears that go away ---- */

static bool is_for_ear(const snk_record *record, const void *context)
{
    return record->ear == context;
}

static bool take_for_ear(snk_callbacks *callbacks, const snk_ear *ear, snk_record *record_out)
{
    (void)pthread_mutex_lock(&callbacks->mutex);
    snk_record *found = snk_event_queue_find(&callbacks->events, is_for_ear, ear);
    if (found != NULL)
        snk_event_queue_take(&callbacks->events, found, record_out);
    (void)pthread_mutex_unlock(&callbacks->mutex);
    return found != NULL;
}

static bool is_called_elsewhere_locked(const snk_callbacks *callbacks, const snk_ear *ear)
{
    for (size_t i = 0; i < SNK_CALLBACK_THREADS_MAX; i++) {
        const snk_teller *teller = &callbacks->tellers[i];
        if (teller->lane.kind == SNK_LANE_EVENTS && teller->lane.who == (uintptr_t)ear &&
            !pthread_equal(teller->thread, pthread_self()))
            return true;
    }
    return false;
}

void snk_callbacks_forget_ear(sneck_client *client, const snk_ear *ear)
{
    snk_callbacks *callbacks = &client->callbacks;
    snk_record record;
    if (ear->on_event == NULL)
        return;
    while (take_for_ear(callbacks, ear, &record))
        snk_record_forget(&record, &client->registry);
    (void)pthread_mutex_lock(&callbacks->mutex);
    while (is_called_elsewhere_locked(callbacks, ear))
        (void)pthread_cond_wait(&callbacks->returned, &callbacks->mutex);
    (void)pthread_mutex_unlock(&callbacks->mutex);
}
