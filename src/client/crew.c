/* The threads that call the application: who leads, who stands by, who ends (see callbacks.h). */
#include "base/clock.h"
#include "base/error.h"
#include "client/callbacks.h"
#include "client/client.h"
#include "client/thread.h"

/* A callback thread that runs takes the processor from somebody who waits awake for a store, or from the store. */
#define NAP_NS (20 * SNK_NS_PER_MS)
#define NAP_EVENTS_MAX (SNK_EVENTS_QUEUED_MAX / 2)

static bool is_leader_in_callback_locked(const snk_callbacks *callbacks)
{
    return callbacks->leader != NULL && callbacks->leader->lane.kind != SNK_LANE_NONE;
}

/* The leader is in a callback, and perhaps something else could be called. */
static void call_standby_locked(snk_callbacks *callbacks)
{
    if (callbacks->standby != NULL && !callbacks->is_watched)
        (void)pthread_cond_signal(&callbacks->trouble);
}

void snk_callbacks_wake_locked(snk_callbacks *callbacks, const snk_lane *lane, bool is_urgent)
{
    if (snk_callbacks_is_busy_locked(callbacks, lane))
        return; /* who is in that callback will see to it */
    bool ends_nap = is_urgent || callbacks->events.count >= NAP_EVENTS_MAX;
    if (callbacks->sleep == SNK_SLEEP_SOUND || (ends_nap && callbacks->sleep == SNK_SLEEP_NAP))
        (void)pthread_cond_signal(&callbacks->work);
    else if (is_leader_in_callback_locked(callbacks))
        call_standby_locked(callbacks);
}

/* ---- Starting ---- */

static void *run(void *argument);

/* NULL: as many as there may be, or the thread cannot be started. */
static snk_teller *hire_locked(sneck_client *client, sneck_error *error)
{
    for (size_t i = 0; i < SNK_CALLBACK_THREADS_MAX; i++) {
        snk_teller *teller = &client->callbacks.tellers[i];
        bool may_be_joined = teller->has_ended && !client->callbacks.is_stopping; /* else who stops them does that */
        if (teller->client != NULL && !may_be_joined)
            continue;
        if (teller->client != NULL)
            (void)pthread_join(teller->thread, NULL);
        *teller = (snk_teller){ .client = client };
        if (snk_thread_start(&teller->thread, "sneck-callbacks", run, teller, error) == SNECK_OK)
            return teller;
        teller->client = NULL;
        return NULL;
    }
    return NULL;
}

sneck_status snk_callbacks_start_locked(sneck_client *client, sneck_error *error)
{
    snk_callbacks *callbacks = &client->callbacks;
    if (callbacks->is_running)
        return SNECK_OK;
    if (callbacks->is_stopping)
        return snk_fail(error, SNECK_INVALID, 0, "the client is being closed");
    if (!snk_event_queue_open(&callbacks->events))
        return snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory for the queue of events");
    callbacks->leader = hire_locked(client, error);
    if (callbacks->leader == NULL)
        return SNECK_NO_MEMORY;
    callbacks->is_running = true;
    snk_events_want(&client->events);
    return SNECK_OK;
}

sneck_status snk_callbacks_start(sneck_client *client, sneck_error *error)
{
    (void)pthread_mutex_lock(&client->callbacks.mutex);
    sneck_status status = snk_callbacks_start_locked(client, error);
    (void)pthread_mutex_unlock(&client->callbacks.mutex);
    return status;
}

/* ---- Working ---- */

/* There is nothing to do: after some work a nap, after that a sleep. */
static void sleep_locked(snk_callbacks *callbacks, bool *was_busy)
{
    callbacks->sleep = *was_busy ? SNK_SLEEP_NAP : SNK_SLEEP_SOUND;
    if (*was_busy) {
        struct timespec until = snk_timespec(snk_clock_read_ns(CLOCK_MONOTONIC) + NAP_NS);
        (void)pthread_cond_timedwait(&callbacks->work, &callbacks->mutex, &until);
    } else {
        (void)pthread_cond_wait(&callbacks->work, &callbacks->mutex);
    }
    callbacks->sleep = SNK_SLEEP_NONE;
    *was_busy = false;
}

static void call_locked(snk_callbacks *callbacks, snk_teller *teller, const snk_job *job)
{
    if (callbacks->standby == NULL)
        callbacks->standby = hire_locked(teller->client, NULL);
    teller->lane = job->lane;
    teller->calls++;
    callbacks->busy++;
    if (!snk_callbacks_is_empty_locked(callbacks))
        call_standby_locked(callbacks);
    (void)pthread_mutex_unlock(&callbacks->mutex);
    snk_callbacks_call(teller->client, job);
    (void)pthread_mutex_lock(&callbacks->mutex);
    callbacks->busy--;
    teller->lane = (snk_lane){ .kind = SNK_LANE_NONE };
    (void)pthread_cond_broadcast(&callbacks->returned);
}

static bool is_in_call_locked(const snk_callbacks *callbacks, const snk_teller *teller, uint64_t call)
{
    return callbacks->leader == teller && teller->lane.kind != SNK_LANE_NONE && teller->calls == call;
}

/* The leader's callback may take long. Waits for it a moment; then it is the leader no longer. */
static void watch_leader_locked(snk_callbacks *callbacks, snk_teller *teller)
{
    const snk_teller *leader = callbacks->leader;
    uint64_t call = leader->calls;
    struct timespec until = snk_timespec(snk_clock_read_ns(CLOCK_MONOTONIC) + SNK_CALLBACK_SLOW_NS);
    callbacks->is_watched = true;
    int rc = 0;
    while (rc == 0 && is_in_call_locked(callbacks, leader, call))
        rc = pthread_cond_timedwait(&callbacks->trouble, &callbacks->mutex, &until);
    callbacks->is_watched = false;
    if (!is_in_call_locked(callbacks, leader, call))
        return;
    if (snk_callbacks_has_ready_locked(callbacks)) {
        callbacks->leader = teller;
        callbacks->standby = NULL;
    } else {
        (void)pthread_cond_wait(&callbacks->trouble, &callbacks->mutex); /* all that waits is for after that call */
    }
}

static void stand_by_locked(snk_callbacks *callbacks, snk_teller *teller)
{
    /* Whether anything of it could be called is looked at when the callback has taken long: there may be much. */
    if (is_leader_in_callback_locked(callbacks) && !snk_callbacks_is_empty_locked(callbacks))
        watch_leader_locked(callbacks, teller);
    else
        (void)pthread_cond_wait(&callbacks->trouble, &callbacks->mutex);
}

static void lead_locked(snk_callbacks *callbacks, snk_teller *teller, bool *was_busy)
{
    snk_job job;
    if (snk_callbacks_take_locked(callbacks, &job)) {
        call_locked(callbacks, teller, &job);
        *was_busy = true;
    } else {
        sleep_locked(callbacks, was_busy);
    }
}

static bool is_over_locked(const snk_callbacks *callbacks)
{
    return callbacks->is_stopping && snk_callbacks_is_empty_locked(callbacks);
}

static void end_locked(snk_callbacks *callbacks, snk_teller *teller)
{
    if (callbacks->leader == teller)
        callbacks->leader = NULL;
    if (callbacks->standby == teller)
        callbacks->standby = NULL;
    (void)pthread_cond_signal(&callbacks->work);
    (void)pthread_cond_signal(&callbacks->trouble);
    teller->has_ended = true;
}

static void *run(void *argument)
{
    snk_teller *teller = argument;
    snk_callbacks *callbacks = &teller->client->callbacks;
    bool was_busy = false;
    (void)pthread_mutex_lock(&callbacks->mutex);
    while (!is_over_locked(callbacks)) {
        if (callbacks->leader == NULL)
            callbacks->leader = teller;
        if (callbacks->leader == teller) {
            lead_locked(callbacks, teller, &was_busy);
            continue;
        }
        if (callbacks->standby != teller) {
            /* It was in a callback for long. What waited for it is the leader's now. */
            (void)pthread_cond_signal(&callbacks->work);
            if (callbacks->standby != NULL)
                break;
            callbacks->standby = teller;
        }
        stand_by_locked(callbacks, teller);
    }
    end_locked(callbacks, teller);
    (void)pthread_mutex_unlock(&callbacks->mutex);
    return NULL;
}

/* ---- Ending ---- */

static snk_teller *any_teller_locked(snk_callbacks *callbacks)
{
    for (size_t i = 0; i < SNK_CALLBACK_THREADS_MAX; i++)
        if (callbacks->tellers[i].client != NULL)
            return &callbacks->tellers[i];
    return NULL;
}

void snk_callbacks_stop(sneck_client *client)
{
    snk_callbacks *callbacks = &client->callbacks;
    (void)pthread_mutex_lock(&callbacks->mutex);
    callbacks->is_stopping = true;
    (void)pthread_cond_broadcast(&callbacks->work);
    (void)pthread_cond_broadcast(&callbacks->trouble);
    /* As long as one is there it may start another. */
    for (snk_teller *teller = any_teller_locked(callbacks); teller != NULL; teller = any_teller_locked(callbacks)) {
        (void)pthread_mutex_unlock(&callbacks->mutex);
        (void)pthread_join(teller->thread, NULL);
        (void)pthread_mutex_lock(&callbacks->mutex);
        teller->client = NULL;
        teller->has_ended = false;
    }
    callbacks->is_running = false;
    (void)pthread_mutex_unlock(&callbacks->mutex);
}

bool snk_callbacks_is_own_thread(sneck_client *client)
{
    snk_callbacks *callbacks = &client->callbacks;
    bool is_own = false;
    (void)pthread_mutex_lock(&callbacks->mutex);
    for (size_t i = 0; i < SNK_CALLBACK_THREADS_MAX; i++)
        is_own |= callbacks->tellers[i].client != NULL && pthread_equal(callbacks->tellers[i].thread, pthread_self());
    (void)pthread_mutex_unlock(&callbacks->mutex);
    return is_own;
}
