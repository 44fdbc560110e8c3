#include "client/async.h"

#include <assert.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "client/client.h"
#include "client/lock.h"
#include "client/perform.h"

void snk_request_ref(sneck_request *request)
{
    (void)atomic_fetch_add_explicit(&request->references, 1, memory_order_relaxed);
}

void snk_request_unref(sneck_request *request)
{
    if (atomic_fetch_sub_explicit(&request->references, 1, memory_order_acq_rel) != 1)
        return;
    sneck_client *client = request->client;
    snk_why_unref(request->agent.why);
    if (!snk_forkmark_is_child(&client->fork)) {
        (void)atomic_fetch_sub_explicit(&client->request_count, 1, memory_order_relaxed);
        snk_registry_unpin(&client->registry, request->entry);
    }
    free(request);
    snk_client_unref(client);
}

/* ---- Results ---- */

static void complete_locked(sneck_request *request)
{
    if (request->is_completed)
        return;
    request->is_completed = true;
    snk_agent_end_locked(&request->agent, request->entry);
    sneck_status status = request->agent.waiter.result.status;
    if (status != SNECK_OK && !request->is_release && !request->is_rescue)
        snk_metrics_refused(&request->client->metrics, request->entry, status);
    if (request->is_rescue)
        snk_watch_recovery_ended(request->client, request->entry, &request->agent.waiter);
    else
        snk_callbacks_push_result(request->client, request);
}

void snk_request_woken_locked(snk_turn *turn, sneck_request *request)
{
    if (request->agent.waiter.decided)
        complete_locked(request);
    turn->call_errands |= snk_errands_push(request->client, request);
}

void snk_request_tell(sneck_request *request)
{
    sneck_client *client = request->client;
    const sneck_error *result = &request->agent.waiter.result;
    (void)snk_timers_remove(&client->keeper.timeouts, &request->timeout, NULL);
    request->done(request->context, result->status, result);
    snk_gate_leave(&client->gate);
    snk_request_unref(request);
}

/* Decides a request that the machine does not know. */
static void decide_locked(snk_turn *turn, sneck_request *request, const sneck_error *result)
{
    request->agent.waiter.decided = true;
    request->agent.waiter.result = *result;
    snk_turn_take_sends(turn, NULL, 0);
    snk_request_woken_locked(turn, request);
}

/* ---- The agent's part ---- */

static void release(sneck_request *request)
{
    snk_turn turn;
    snk_event event = { .kind = SNK_EVENT_RELEASE, .owner = request->agent.waiter.owner };
    snk_turn_run(&turn, request->client, request->entry, &event);
    sneck_error result = turn.actions.release;
    snk_perform(&turn, &result);
    snk_turn_init(&turn, request->client, request->entry);
    (void)pthread_mutex_lock(&request->entry->mutex);
    decide_locked(&turn, request, &result);
    (void)pthread_mutex_unlock(&request->entry->mutex);
    snk_turn_end(&turn);
}

static void acquire_locked(snk_turn *turn, sneck_request *request, bool news)
{
    snk_agent *agent = &request->agent;
    if (agent->waiter.decided) {
        snk_turn_take_sends(turn, request->sends, request->send_count);
        request->send_count = 0;
    } else if (request->is_asked) {
        snk_agent_go_on_locked(agent, turn, news, NULL);
    } else {
        request->is_asked = true;
        snk_agent_ask_locked(agent, turn);
        if (agent->waiter.decided)
            complete_locked(request);
    }
}

static bool is_decided(sneck_request *request)
{
    (void)pthread_mutex_lock(&request->entry->mutex);
    bool decided = request->agent.waiter.decided;
    (void)pthread_mutex_unlock(&request->entry->mutex);
    return decided;
}

void snk_request_run(sneck_request *request, bool news)
{
    if (request->is_release) {
        if (!is_decided(request))
            release(request);
        return;
    }
    snk_turn turn;
    snk_turn_init(&turn, request->client, request->entry);
    (void)pthread_mutex_lock(&request->entry->mutex);
    acquire_locked(&turn, request, news);
    (void)pthread_mutex_unlock(&request->entry->mutex);
    snk_turn_end(&turn);
    snk_perform(&turn, NULL);
}

void snk_request_end_rescue(sneck_request *request)
{
    if (!request->is_rescue || !is_decided(request) || atomic_exchange(&request->is_over, true))
        return;
    snk_gate_leave(&request->client->gate);
    snk_request_unref(request);
}

/* ---- Giving up, on threads that must not wait for the store ---- */

/* What is to be sent is left to the agent, which was told in this turn that the request is decided. */
static void leave_sends_locked(sneck_request *request, const snk_turn *turn)
{
    assert(turn->actions.send_count <= SNK_REQUEST_SENDS_MAX);
    request->send_count = 0;
    for (uint32_t i = 0; i < turn->actions.send_count && i < SNK_REQUEST_SENDS_MAX; i++)
        request->sends[request->send_count++] = turn->actions.sends[i];
}

static void give_up(sneck_request *request, sneck_status status)
{
    snk_entry *entry = request->entry;
    sneck_error not_asked;
    (void)snk_fail(&not_asked, status == SNECK_TIMEOUT ? SNECK_UNAVAILABLE : status, 0,
                   status == SNECK_TIMEOUT ? "the store did not answer before the wait was over"
                                           : "the request was cancelled");
    snk_turn turn;
    snk_turn_init(&turn, request->client, entry);
    (void)pthread_mutex_lock(&entry->mutex);
    if (request->agent.waiter.decided) {
        snk_turn_take_sends(&turn, NULL, 0);
    } else if (request->is_asked) {
        snk_agent_give_up_locked(&request->agent, &turn, status);
        leave_sends_locked(request, &turn);
    } else {
        decide_locked(&turn, request, &not_asked);
    }
    (void)pthread_mutex_unlock(&entry->mutex);
    snk_turn_end(&turn);
}

void snk_request_time_out(sneck_request *request)
{
    give_up(request, SNECK_TIMEOUT);
}

void sneck_cancel(sneck_request *request)
{
    if (request == NULL || request->is_release || snk_forkmark_is_child(&request->client->fork))
        return;
    give_up(request, SNECK_CANCELED);
}

void sneck_request_free(sneck_request *request)
{
    if (request != NULL)
        snk_request_unref(request);
}

/* ---- Beginning ---- */

static sneck_status check(const sneck_lock *lock, sneck_done_fn done, sneck_error *error)
{
    sneck_status status = snk_lock_check(lock, error);
    if (lock == NULL || status != SNECK_OK)
        return status;
    if (lock->client == NULL)
        return snk_fail(error, SNECK_INVALID, 0,
                        "several locks as one have no asynchronous calls: ask for each of them");
    if (lock->owner == 0)
        return snk_fail(error, SNECK_INVALID, 0,
                        "asynchronous calls need a handle that owns for itself: set .owner = SNECK_OWNER_HANDLE");
    if (done == NULL)
        return snk_fail(error, SNECK_INVALID, 0, "done is NULL: give a function that takes the result");
    return SNECK_OK;
}

/* What is the same for all of them; with one reference. The entry was pinned. */
static void init_request(sneck_request *request, sneck_client *client, snk_entry *entry)
{
    atomic_init(&request->references, 1);
    request->agent.request = request;
    request->client = client;
    snk_client_ref(client);
    request->entry = entry;
    snk_timer_init(&request->timeout);
}

bool snk_request_rescue(sneck_client *client, snk_entry *entry, const snk_waiter *waiter, int32_t thread)
{
    if (snk_errands_start(client, NULL) != SNECK_OK)
        return false;
    sneck_request *request = calloc(1, sizeof *request);
    if (request == NULL || !snk_gate_enter(&client->gate)) {
        free(request);
        return false;
    }
    (void)atomic_fetch_add_explicit(&client->request_count, 1, memory_order_relaxed);
    (void)pthread_mutex_lock(&entry->mutex);
    snk_entry_pin(entry);
    (void)pthread_mutex_unlock(&entry->mutex);
    request->agent.waiter = *waiter;
    request->agent.thread = thread != 0 ? thread : gettid();
    request->is_rescue = true;
    init_request(request, client, entry);
    (void)snk_errands_push(client, request);
    snk_errands_call(client);
    return true;
}

static sneck_request *new_request(sneck_lock *lock, sneck_done_fn done, void *context, int64_t wait_ms)
{
    sneck_request *request = calloc(1, sizeof *request);
    if (request == NULL)
        return NULL;
    sneck_client *client = lock->client;
    uint32_t count = atomic_fetch_add_explicit(&client->request_count, 1, memory_order_relaxed) + 1;
    if (!snk_timers_reserve(&client->keeper.timeouts, count)) {
        (void)atomic_fetch_sub_explicit(&client->request_count, 1, memory_order_relaxed);
        free(request);
        return NULL;
    }
    snk_agent_init(&request->agent, lock, &lock->terms, wait_ms);
    init_request(request, client, lock->entry);
    request->agent.thread = gettid();
    request->agent.why = snk_why_ref(lock->why);
    request->done = done;
    request->context = context;
    (void)pthread_mutex_lock(&lock->entry->mutex);
    snk_entry_pin(lock->entry);
    (void)pthread_mutex_unlock(&lock->entry->mutex);
    return request;
}

static void submit(sneck_request *request, int64_t until_ns)
{
    sneck_client *client = request->client;
    (void)snk_errands_push(client, request);
    snk_errands_call(client);
    if (until_ns != SNK_NEVER_NS && snk_timers_arm(&client->keeper.timeouts, &request->timeout, until_ns))
        snk_keeper_call(client);
}

/* Threads, memory and a place inside the gate, which the request leaves when its result was told. */
static sneck_status begin(sneck_request **request_out, sneck_lock *lock, sneck_done_fn done, void *context,
                          int64_t wait_ms, sneck_error *error)
{
    sneck_client *client = lock->client;
    sneck_status status = snk_client_start(client, error);
    if (status == SNECK_OK)
        status = snk_errands_start(client, error);
    if (status == SNECK_OK)
        status = snk_callbacks_start(client, error);
    if (status == SNECK_OK)
        status = snk_client_enter(client, error);
    if (status != SNECK_OK)
        return status;
    *request_out = new_request(lock, done, context, wait_ms);
    if (*request_out != NULL)
        return SNECK_OK;
    snk_gate_leave(&client->gate);
    return snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory for a request");
}

/* The first reference is that of the callbacks. The user's is there before anybody can use up the others. */
static void hand_out(sneck_request *request, sneck_request **request_out)
{
    if (request_out == NULL)
        return;
    snk_request_ref(request);
    *request_out = request;
}

sneck_status sneck_acquire_async(sneck_lock *lock, int64_t wait_ms, sneck_done_fn done, void *context,
                                 sneck_request **request_out, sneck_error *error)
{
    if (request_out != NULL)
        *request_out = NULL;
    sneck_request *request = NULL;
    sneck_status status = check(lock, done, error);
    if (status == SNECK_OK)
        status = snk_wait_check(wait_ms, error);
    if (status == SNECK_OK)
        status = begin(&request, lock, done, context, wait_ms, error);
    if (status != SNECK_OK)
        return status;
    hand_out(request, request_out);
    submit(request, wait_ms == 0 ? SNK_NEVER_NS : snk_wait_until_ns(wait_ms));
    return snk_ok(error);
}

sneck_status sneck_release_async(sneck_lock *lock, sneck_done_fn done, void *context, sneck_request **request_out,
                                 sneck_error *error)
{
    if (request_out != NULL)
        *request_out = NULL;
    sneck_request *request = NULL;
    sneck_status status = snk_lock_check_release(lock, error);
    if (status == SNECK_OK)
        status = check(lock, done, error);
    if (status == SNECK_OK)
        status = begin(&request, lock, done, context, 0, error);
    if (status != SNECK_OK)
        return status;
    request->is_release = true;
    hand_out(request, request_out);
    submit(request, SNK_NEVER_NS);
    return snk_ok(error);
}
