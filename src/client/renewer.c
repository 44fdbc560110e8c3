#include "client/renewer.h"

#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "client/batch.h"
#include "client/client.h"
#include "client/thread.h"

/* How long a thread that moves may have the mutex of an entry, by far. */
#define MUTEX_PATIENCE_NS (100 * SNK_NS_PER_MS)

void snk_renewer_init(snk_renewer *renewer)
{
    snk_timers_init(&renewer->timers);
    snk_chaser_init(&renewer->chaser);
}

void snk_renewer_deinit(snk_renewer *renewer)
{
    snk_worker *next = NULL;
    for (snk_worker *worker = renewer->workers; worker != NULL; worker = next) {
        next = worker->next;
        snk_batch_free(worker->batch);
        free(worker);
    }
    snk_chaser_deinit(&renewer->chaser);
    snk_timers_deinit(&renewer->timers);
}

/*
 * What it is called for was written before; a thread that takes the place meanwhile looks at everything first. (Both are
 * sequentially consistent: whoever still sees the old one has written before the new one looks.)
 */
void snk_renewer_call(sneck_client *client)
{
    snk_worker *worker = atomic_load(&client->renewer.current);
    if (worker != NULL)
        snk_parking_call_and_wake(&worker->parking);
}

static void beat(snk_worker *worker, int64_t now_ns)
{
    atomic_store_explicit(&worker->beat_at_ns, now_ns, memory_order_relaxed);
}

static bool is_over(const snk_worker *worker)
{
    return atomic_load_explicit(&worker->client->renewer.is_stopping, memory_order_acquire) ||
           atomic_load_explicit(&worker->is_retired, memory_order_acquire);
}

/* ---- Renewals, and looks at queued claims ---- */

static void pin(snk_timer *timer)
{
    snk_entry_pin(SNK_CONTAINER(timer, snk_entry, renewal));
}

/* Its answer comes soon or not at all: it waits for nothing but its own part of the store. */
static bool is_for_batch(const snk_turn *turn, const snk_send *send)
{
    return send->ask == SNK_ASK_RENEW && (send->is_hold || !turn->client->store->traits.slow_looks);
}

/* Leaves the renewals of a turn to the batch, and the rest in the turn. */
static void take_renewals(snk_turn *turn, snk_batch *batch)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < turn->actions.send_count; i++) {
        if (is_for_batch(turn, &turn->actions.sends[i])) {
            (void)snk_batch_add(batch, turn->entry, &turn->actions.sends[i]);
        } else {
            turn->actions.sends[left] = turn->actions.sends[i];
            turn->askers[left] = turn->askers[i];
            left++;
        }
    }
    turn->actions.send_count = left;
}

static void serve_timer(snk_worker *worker, snk_entry *entry)
{
    bool more = true;
    while (more) {
        snk_turn turn;
        snk_event event = { .kind = SNK_EVENT_TIMER };
        snk_turn_run(&turn, worker->client, entry, &event);
        more = turn.actions.more;
        take_renewals(&turn, worker->batch);
        snk_errands_leave(&turn);
    }
}

/*
 * One that comes alone is served at once. Those that come soon after it are let gather, however often the thread is
 * called meanwhile: else each would leave in a batch of its own, and each answer would call for the next one.
 */
static int64_t next_timers_ns(const snk_worker *worker)
{
    int64_t due_ns = snk_timers_next(&worker->client->renewer.timers);
    int64_t gathered_ns = worker->served_at_ns + SNK_GATHER_NS;
    return due_ns > gathered_ns ? due_ns : gathered_ns;
}

static void serve_timers(snk_worker *worker)
{
    sneck_client *client = worker->client;
    int64_t now_ns = snk_now_ns();
    snk_timer *timer = NULL;
    while (!is_over(worker) && (timer = snk_timers_pop(&client->renewer.timers, now_ns, pin)) != NULL) {
        snk_entry *entry = SNK_CONTAINER(timer, snk_entry, renewal);
        serve_timer(worker, entry);
        snk_registry_unpin(&client->registry, entry);
        now_ns = snk_now_ns();
        beat(worker, now_ns);
        worker->served_at_ns = now_ns;
    }
}

static void serve_due(snk_worker *worker)
{
    beat(worker, snk_now_ns());
    if (next_timers_ns(worker) <= snk_now_ns())
        serve_timers(worker);
    (void)snk_batch_flush(worker->batch);
    snk_chaser_run(worker->client, snk_now_ns());
}

/* ---- The thread ---- */

static void sleep_until_called(snk_worker *worker)
{
    int64_t until_ns = next_timers_ns(worker);
    int64_t chase_ns = snk_chaser_next_ns(&worker->client->renewer.chaser);
    if (chase_ns < until_ns)
        until_ns = chase_ns;
    if (!snk_parking_begin(&worker->parking))
        return;
    int64_t now_ns = snk_now_ns();
    if (until_ns > now_ns) {
        snk_futex_word word = { .word = &worker->parking.word, .expected = SNK_ASLEEP };
        (void)snk_futex_wait_any(&word, 1, until_ns == SNK_NEVER_NS ? SNK_NEVER_NS : until_ns - now_ns);
    }
    snk_parking_end(&worker->parking);
}

static void *run(void *argument)
{
    snk_worker *worker = argument;
    sneck_client *client = worker->client;
    while (!is_over(worker)) {
        serve_due(worker);
        /* One that hung and was replaced meanwhile is called by nobody. */
        if (!is_over(worker))
            sleep_until_called(worker);
    }
    if (atomic_load_explicit(&worker->is_retired, memory_order_acquire)) {
        (void)snk_batch_finish(worker->batch, SNK_NEVER_NS);
        return NULL;
    }
    (void)snk_batch_finish(worker->batch, SNK_NEVER_NS);
    snk_chaser_finish(client, client->renewer.finish_until_ns);
    return NULL;
}

/* A thread more, which takes the place of the one that works. Under client.start_mutex. */
static sneck_status add_worker(sneck_client *client, sneck_error *error)
{
    snk_renewer *renewer = &client->renewer;
    snk_worker *worker = calloc(1, sizeof *worker);
    snk_batch *batch = worker == NULL ? NULL : snk_batch_new(client, &worker->parking);
    if (worker == NULL || batch == NULL) {
        free(worker);
        snk_batch_free(batch);
        return snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory for the renewals");
    }
    worker->client = client;
    worker->batch = batch;
    worker->next = renewer->workers;
    beat(worker, snk_now_ns());
    snk_worker *before = atomic_exchange(&renewer->current, worker);
    sneck_status status = snk_thread_start(&worker->thread, "sneck-renewer", run, worker, error);
    if (status != SNECK_OK) {
        atomic_store(&renewer->current, before);
        snk_batch_free(batch);
        free(worker);
        return status;
    }
    renewer->workers = worker;
    if (before != NULL) {
        atomic_store_explicit(&before->is_retired, true, memory_order_release);
        snk_parking_call_and_wake(&before->parking);
    }
    return SNECK_OK;
}

sneck_status snk_renewer_start(sneck_client *client, sneck_error *error)
{
    return client->renewer.workers != NULL ? SNECK_OK : add_worker(client, error);
}

/*
 * The old thread may have taken a timer out of the heap, stepped the machine, sent the renewal or got its answer, and got
 * no further. Whatever it was: the machine counts it as not answered, and its timer is armed. Should the thread have
 * stopped with the mutex of an entry, that one cannot be helped; nobody else keeps it for so long.
 */
static void take_over(sneck_client *client, snk_entry *entry)
{
    snk_turn turn;
    snk_event event = { .kind = SNK_EVENT_ABANDONED };
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until = snk_timespec(until.tv_sec * SNK_NS_PER_S + until.tv_nsec + MUTEX_PATIENCE_NS);
    snk_turn_init(&turn, client, entry);
    if (pthread_mutex_timedlock(&entry->mutex, &until) != 0)
        return;
    snk_turn_take_locked(&turn, &event);
    (void)pthread_mutex_unlock(&entry->mutex);
    snk_turn_end(&turn);
    snk_errands_leave(&turn);
}

static void take_over_all(sneck_client *client)
{
    for (snk_entry *entry = snk_registry_first(&client->registry); entry != NULL;
         entry = snk_registry_next(&client->registry, entry))
        take_over(client, entry);
}

sneck_status snk_renewer_replace(sneck_client *client, sneck_error *error)
{
    snk_renewer *renewer = &client->renewer;
    (void)pthread_mutex_lock(&client->start_mutex);
    sneck_status status = atomic_load(&renewer->current) == NULL || atomic_load(&renewer->is_stopping)
                              ? snk_fail(error, SNECK_INVALID, 0, "there is no renewal thread")
                              : add_worker(client, error);
    (void)pthread_mutex_unlock(&client->start_mutex);
    if (status != SNECK_OK)
        return status;
    take_over_all(client);
    snk_renewer_call(client);
    return SNECK_OK;
}

int64_t snk_renewer_beat_ns(sneck_client *client)
{
    const snk_worker *worker = atomic_load(&client->renewer.current);
    return worker == NULL ? 0 : atomic_load_explicit(&worker->beat_at_ns, memory_order_relaxed);
}

int64_t snk_renewer_asks_ns(sneck_client *client)
{
    const snk_worker *worker = atomic_load(&client->renewer.current);
    return worker == NULL ? SNK_NEVER_NS : snk_batch_since_ns(worker->batch);
}

int64_t snk_renewer_pending_ns(sneck_client *client)
{
    snk_renewer *renewer = &client->renewer;
    const snk_worker *worker = atomic_load(&renewer->current);
    if (worker == NULL)
        return SNK_NEVER_NS;
    int64_t pending_ns = snk_timers_next(&renewer->timers);
    int64_t others_ns[] = { snk_chaser_next_ns(&renewer->chaser), snk_batch_since_ns(worker->batch) };
    for (size_t i = 0; i < sizeof others_ns / sizeof others_ns[0]; i++)
        if (others_ns[i] < pending_ns)
            pending_ns = others_ns[i];
    return pending_ns;
}

void snk_renewer_stop(sneck_client *client, int64_t until_ns)
{
    snk_renewer *renewer = &client->renewer;
    renewer->finish_until_ns = until_ns;
    atomic_store_explicit(&renewer->is_stopping, true, memory_order_release);
    for (snk_worker *worker = renewer->workers; worker != NULL; worker = worker->next)
        snk_parking_call_and_wake(&worker->parking);
    for (snk_worker *worker = renewer->workers; worker != NULL; worker = worker->next)
        (void)pthread_join(worker->thread, NULL);
}
