#include "client/errands.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "client/async.h"
#include "client/client.h"
#include "client/perform.h"
#include "client/thread.h"

/* One request to the store that was left to the thread. */
typedef struct errand {
    snk_link link;    /* under errands.mutex */
    snk_entry *entry; /* pinned */
    snk_send send;
    snk_asker asker;
} errand;

void snk_errands_init(snk_errands *errands)
{
    (void)pthread_mutex_init(&errands->mutex, NULL);
    snk_list_init(&errands->sends);
    snk_list_init(&errands->ready);
    snk_list_init(&errands->waiting);
}

void snk_errands_deinit(snk_errands *errands)
{
    (void)pthread_mutex_destroy(&errands->mutex);
}

void snk_errands_call(sneck_client *client)
{
    snk_parking_call_and_wake(&client->errands.parking);
}

static snk_link *pop(snk_errands *errands, snk_list *list)
{
    (void)pthread_mutex_lock(&errands->mutex);
    snk_link *link = snk_list_take_first(list);
    (void)pthread_mutex_unlock(&errands->mutex);
    return link;
}

/* ---- What was left to it ---- */

/* False: the thread does not take anything any more. */
static bool add(snk_errands *errands, errand *made)
{
    (void)pthread_mutex_lock(&errands->mutex);
    bool takes = !errands->is_stopping;
    if (takes)
        snk_list_append(&errands->sends, &made->link);
    (void)pthread_mutex_unlock(&errands->mutex);
    return takes;
}

/* False: it could not be left, and the turn has it still. */
static bool leave(const snk_turn *turn, uint32_t index)
{
    sneck_client *client = turn->client;
    const snk_send *send = &turn->actions.sends[index];
    if (send->chase)
        return snk_chaser_add(client, turn->entry, send);
    if (snk_errands_start(client, NULL) != SNECK_OK)
        return false;
    errand *made = malloc(sizeof *made);
    if (made == NULL)
        return false;
    *made = (errand){ .entry = turn->entry, .send = *send, .asker = turn->askers[index] };
    snk_entry_pin(turn->entry); /* its caller has a pin, or it could not use the turn */
    if (add(&client->errands, made)) {
        snk_errands_call(client);
        return true;
    }
    snk_registry_unpin(&client->registry, turn->entry);
    free(made);
    return false;
}

void snk_errands_leave(snk_turn *turn)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < turn->actions.send_count; i++) {
        if (leave(turn, i))
            continue;
        turn->actions.sends[left] = turn->actions.sends[i];
        turn->askers[left] = turn->askers[i];
        left++;
    }
    turn->actions.send_count = left;
    snk_perform(turn, NULL);
}

/* A claim that nobody seeks with any more need not be made, or asked about: whoever gave it up has it chased. */
static bool is_wanted(const errand *self)
{
    (void)pthread_mutex_lock(&self->entry->mutex);
    bool wanted = self->send.ask == SNK_ASK_RELEASE || snk_turn_seeks_locked(self->entry, &self->send.claim);
    (void)pthread_mutex_unlock(&self->entry->mutex);
    return wanted;
}

static void run_errand(sneck_client *client, errand *self)
{
    if (is_wanted(self)) {
        snk_turn turn;
        snk_turn_init(&turn, client, self->entry);
        snk_send sends[] = { self->send };
        sends[0].sent_at_ns = snk_now_ns(); /* it leaves now: it may have waited here for a while */
        snk_turn_take_sends(&turn, sends, 1);
        turn.askers[0] = self->asker;
        snk_perform(&turn, NULL);
    } else {
        snk_why_unref(self->asker.why);
    }
    snk_registry_unpin(&client->registry, self->entry);
    free(self);
}

/* ---- Requests ---- */

bool snk_errands_push(sneck_client *client, sneck_request *request)
{
    snk_errands *errands = &client->errands;
    (void)pthread_mutex_lock(&errands->mutex);
    bool is_new = !snk_link_is_linked(&request->ready_link);
    if (is_new) {
        snk_request_ref(request);
        snk_list_append(&errands->ready, &request->ready_link);
    }
    (void)pthread_mutex_unlock(&errands->mutex);
    return is_new;
}

/* The list of those that wait has a reference of its own. Once a request is decided it is not put in any more. */
static void list_waiting(snk_errands *errands, sneck_request *request)
{
    bool dropped = false;
    (void)pthread_mutex_lock(&request->entry->mutex);
    bool waits = !request->is_release && !request->agent.waiter.decided;
    (void)pthread_mutex_lock(&errands->mutex);
    bool listed = snk_link_is_linked(&request->waiting_link);
    if (waits && !listed) {
        snk_request_ref(request);
        snk_list_append(&errands->waiting, &request->waiting_link);
        atomic_fetch_add(&errands->waiting_count, 1);
    } else if (!waits && listed) {
        snk_list_remove(&request->waiting_link);
        atomic_fetch_sub(&errands->waiting_count, 1);
        dropped = true;
    }
    (void)pthread_mutex_unlock(&errands->mutex);
    (void)pthread_mutex_unlock(&request->entry->mutex);
    if (dropped)
        snk_request_unref(request);
}

/* Uses up the caller's reference. */
static void run_request(snk_errands *errands, sneck_request *request, bool news)
{
    snk_request_run(request, news);
    list_waiting(errands, request);
    snk_request_end_rescue(request);
    snk_request_unref(request);
}

/* Of each kind in turn, so that neither waits for all of the other. */
static void serve(sneck_client *client)
{
    snk_errands *errands = &client->errands;
    snk_link *ready = NULL;
    snk_link *sent = NULL;
    do {
        ready = pop(errands, &errands->ready);
        if (ready != NULL)
            run_request(errands, SNK_CONTAINER(ready, sneck_request, ready_link), false);
        sent = pop(errands, &errands->sends);
        if (sent != NULL)
            run_errand(client, SNK_CONTAINER(sent, errand, link));
    } while (ready != NULL || sent != NULL);
}

/* The one that has not been looked at for longest, with a reference; NULL: none. */
static sneck_request *next_waiting(snk_errands *errands)
{
    (void)pthread_mutex_lock(&errands->mutex);
    snk_link *link = snk_list_first(&errands->waiting);
    sneck_request *request = link == NULL ? NULL : SNK_CONTAINER(link, sneck_request, waiting_link);
    if (request != NULL) {
        snk_list_remove(link);
        snk_list_append(&errands->waiting, link);
        snk_request_ref(request);
    }
    (void)pthread_mutex_unlock(&errands->mutex);
    return request;
}

/* The store says that there is news about some claim of this client. */
static void serve_news(snk_errands *errands)
{
    for (size_t left = atomic_load(&errands->waiting_count); left > 0; left--) {
        sneck_request *request = next_waiting(errands);
        if (request == NULL)
            return;
        run_request(errands, request, true);
    }
}

/* ---- The thread ---- */

static void sleep_until_called(sneck_client *client)
{
    snk_errands *errands = &client->errands;
    _Atomic uint32_t *word = &errands->parking.word;
    bool news = false;
    if (!snk_parking_begin(&errands->parking))
        return;
    if (atomic_load(&errands->waiting_count) > 0)
        news = client->store->ops->wait(client->store, 0, word, SNK_ASLEEP, SNK_NEVER_NS);
    else
        (void)snk_futex_wait_any(&(snk_futex_word){ .word = word, .expected = SNK_ASLEEP }, 1, SNK_NEVER_NS);
    snk_parking_end(&errands->parking);
    if (news)
        serve_news(errands);
}

static bool is_stopping(snk_errands *errands)
{
    (void)pthread_mutex_lock(&errands->mutex);
    bool stops = errands->is_stopping;
    (void)pthread_mutex_unlock(&errands->mutex);
    return stops;
}

static void *run(void *argument)
{
    sneck_client *client = argument;
    while (!is_stopping(&client->errands)) {
        serve(client);
        sleep_until_called(client);
    }
    serve(client);
    return NULL;
}

sneck_status snk_errands_start(sneck_client *client, sneck_error *error)
{
    snk_errands *errands = &client->errands;
    if (atomic_load_explicit(&errands->is_running, memory_order_acquire))
        return SNECK_OK;
    (void)pthread_mutex_lock(&client->start_mutex);
    sneck_status status = snk_client_check(client, error);
    if (status == SNECK_OK && !atomic_load(&errands->is_running)) {
        status = snk_thread_start(&errands->thread, "sneck-errands", run, client, error);
        if (status == SNECK_OK)
            atomic_store_explicit(&errands->is_running, true, memory_order_release);
    }
    (void)pthread_mutex_unlock(&client->start_mutex);
    return status;
}

void snk_errands_stop(sneck_client *client)
{
    snk_errands *errands = &client->errands;
    if (!atomic_load(&errands->is_running))
        return;
    (void)pthread_mutex_lock(&errands->mutex);
    errands->is_stopping = true;
    (void)pthread_mutex_unlock(&errands->mutex);
    snk_errands_call(client);
    (void)pthread_join(errands->thread, NULL);
    atomic_store(&errands->is_running, false);
}
