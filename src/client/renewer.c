#include "client/renewer.h"

#include "base/clock.h"
#include "base/error.h"
#include "client/async.h"
#include "client/batch.h"
#include "client/client.h"
#include "client/perform.h"
#include "client/thread.h"

void snk_renewer_init(snk_renewer *renewer)
{
    snk_timers_init(&renewer->timers);
    snk_chaser_init(&renewer->chaser);
    (void)pthread_mutex_init(&renewer->mutex, NULL);
    snk_list_init(&renewer->ready);
    snk_list_init(&renewer->waiting);
}

void snk_renewer_deinit(snk_renewer *renewer)
{
    snk_batch_free(renewer->batch);
    snk_chaser_deinit(&renewer->chaser);
    snk_timers_deinit(&renewer->timers);
    (void)pthread_mutex_destroy(&renewer->mutex);
}

void snk_renewer_call(sneck_client *client)
{
    snk_parking_call_and_wake(&client->renewer.parking);
}

/* ---- Renewals, and looks at queued claims ---- */

static void pin(snk_timer *timer)
{
    snk_entry_pin(SNK_CONTAINER(timer, snk_entry, renewal));
}

/* Leaves the renewals of a turn to the batch, and the rest in the turn. */
static void take_renewals(snk_turn *turn, snk_batch *batch)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < turn->actions.send_count; i++) {
        if (turn->actions.sends[i].ask == SNK_ASK_RENEW) {
            snk_batch_add(batch, turn->entry, &turn->actions.sends[i]);
        } else {
            turn->actions.sends[left] = turn->actions.sends[i];
            turn->askers[left] = turn->askers[i];
            left++;
        }
    }
    turn->actions.send_count = left;
}

static void serve_timer(sneck_client *client, snk_entry *entry)
{
    bool more = true;
    while (more) {
        snk_turn turn;
        snk_event event = { .kind = SNK_EVENT_TIMER };
        snk_turn_run(&turn, client, entry, &event);
        more = turn.actions.more;
        take_renewals(&turn, client->renewer.batch);
        snk_perform(&turn, NULL);
    }
}

static void serve_timers(sneck_client *client)
{
    snk_timer *timer = NULL;
    while ((timer = snk_timers_pop(&client->renewer.timers, snk_now_ns(), pin)) != NULL) {
        snk_entry *entry = SNK_CONTAINER(timer, snk_entry, renewal);
        serve_timer(client, entry);
        snk_registry_unpin(&client->registry, entry);
    }
    snk_batch_flush(client->renewer.batch);
}

/* ---- Requests ---- */

bool snk_renewer_push(sneck_client *client, sneck_request *request)
{
    snk_renewer *renewer = &client->renewer;
    (void)pthread_mutex_lock(&renewer->mutex);
    bool is_new = !snk_link_is_linked(&request->ready_link);
    if (is_new) {
        snk_request_ref(request);
        snk_list_append(&renewer->ready, &request->ready_link);
    }
    (void)pthread_mutex_unlock(&renewer->mutex);
    return is_new;
}

static sneck_request *pop_ready(snk_renewer *renewer)
{
    (void)pthread_mutex_lock(&renewer->mutex);
    snk_link *link = snk_list_first(&renewer->ready);
    if (link != NULL)
        snk_list_remove(link);
    (void)pthread_mutex_unlock(&renewer->mutex);
    return link == NULL ? NULL : SNK_CONTAINER(link, sneck_request, ready_link);
}

/* The list of those that wait has a reference of its own. */
static void run_request(snk_renewer *renewer, sneck_request *request, bool news)
{
    bool waits = snk_request_run(request, news);
    bool listed = snk_link_is_linked(&request->waiting_link);
    if (waits && !listed) {
        snk_request_ref(request);
        snk_list_append(&renewer->waiting, &request->waiting_link);
    } else if (!waits && listed) {
        snk_list_remove(&request->waiting_link);
        snk_request_unref(request);
    }
}

/* Between two requests too: however many there are, and however slow the store is, what is due is renewed in time. */
static void serve_due(sneck_client *client)
{
    serve_timers(client);
    snk_chaser_run(client, snk_now_ns());
}

static void serve_ready(sneck_client *client)
{
    sneck_request *request = NULL;
    while ((request = pop_ready(&client->renewer)) != NULL) {
        run_request(&client->renewer, request, false);
        snk_request_unref(request);
        serve_due(client);
    }
}

/* The store says that there is news about some claim of this client. */
static void serve_news(sneck_client *client)
{
    snk_renewer *renewer = &client->renewer;
    snk_link *next = NULL;
    for (snk_link *link = snk_list_first(&renewer->waiting); link != NULL; link = next) {
        next = snk_list_next(&renewer->waiting, link);
        run_request(renewer, SNK_CONTAINER(link, sneck_request, waiting_link), true);
        serve_due(client);
    }
}

static bool has_queued(const snk_renewer *renewer)
{
    for (snk_link *link = snk_list_first(&renewer->waiting); link != NULL;
         link = snk_list_next(&renewer->waiting, link))
        if (snk_request_is_queued(SNK_CONTAINER(link, sneck_request, waiting_link)))
            return true;
    return false;
}

/* ---- The thread ---- */

static void sleep_until_called(sneck_client *client)
{
    snk_renewer *renewer = &client->renewer;
    int64_t until_ns = snk_timers_next(&renewer->timers);
    int64_t chase_ns = snk_chaser_next_ns(&renewer->chaser);
    if (chase_ns < until_ns)
        until_ns = chase_ns;
    bool queued = has_queued(renewer);
    bool news = false;
    if (!snk_parking_begin(&renewer->parking))
        return;
    int64_t now_ns = snk_now_ns();
    if (queued) {
        news = client->store->ops->wait(client->store, 0, &renewer->parking.word, SNK_ASLEEP, until_ns);
    } else if (until_ns > now_ns) {
        snk_futex_word word = { .word = &renewer->parking.word, .expected = SNK_ASLEEP };
        (void)snk_futex_wait_any(&word, 1, until_ns == SNK_NEVER_NS ? SNK_NEVER_NS : until_ns - now_ns);
    }
    snk_parking_end(&renewer->parking);
    if (news)
        serve_news(client);
}

static void *run(void *argument)
{
    sneck_client *client = argument;
    snk_renewer *renewer = &client->renewer;
    while (!atomic_load_explicit(&renewer->is_stopping, memory_order_acquire)) {
        serve_ready(client);
        serve_due(client);
        sleep_until_called(client);
    }
    serve_ready(client);
    snk_batch_finish(renewer->batch);
    snk_chaser_finish(client, renewer->finish_until_ns);
    return NULL;
}

sneck_status snk_renewer_start(sneck_client *client, sneck_error *error)
{
    snk_renewer *renewer = &client->renewer;
    if (renewer->is_running)
        return SNECK_OK;
    if (renewer->batch == NULL)
        renewer->batch = snk_batch_new(client);
    if (renewer->batch == NULL)
        return snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory for the renewals");
    sneck_status status = snk_thread_start(&renewer->thread, "sneck-renewer", run, client, error);
    renewer->is_running = status == SNECK_OK;
    return status;
}

void snk_renewer_stop(sneck_client *client, int64_t until_ns)
{
    snk_renewer *renewer = &client->renewer;
    if (!renewer->is_running)
        return;
    renewer->finish_until_ns = until_ns;
    atomic_store_explicit(&renewer->is_stopping, true, memory_order_release);
    snk_renewer_call(client);
    (void)pthread_join(renewer->thread, NULL);
    renewer->is_running = false;
}
