#include "client/watch.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "client/agent.h"
#include "client/client.h"
#include "client/letter.h"
#include "client/patrol.h"
#include "client/recover.h"
#include "client/thread.h"
#include "client/watch_round.h"
#include "store/view.h"

/* How many lost holds are looked up, to see whether they were broken by force, each time the watchdog wakes up. */
#define INQUIRIES_MAX 16
/* How often one is tried while the store does not answer. */
#define INQUIRY_TRIES_MAX 10

void snk_watch_init(snk_watch *watch)
{
    atomic_init(&watch->period_ms, INT64_MAX);
    (void)pthread_mutex_init(&watch->mutex, NULL);
    (void)pthread_mutex_init(&watch->inbox_mutex, NULL);
    (void)pthread_mutex_init(&watch->shown_mutex, NULL);
    snk_watchdog_init(&watch->engine);
    snk_watchdog_init(&watch->shown);
    watch->link.round_trip_ns = -1;
    snk_list_init(&watch->unfinished);
    snk_list_init(&watch->inbox);
}

/* ---- Letters ---- */

static void free_letter(sneck_client *client, snk_letter *letter)
{
    if (letter->entry != NULL)
        snk_registry_unpin(&client->registry, letter->entry);
    free(letter);
}

static void discard(sneck_client *client, snk_list *letters)
{
    snk_link *link = NULL;
    while ((link = snk_list_take_first(letters)) != NULL) {
        free_letter(client, SNK_CONTAINER(link, snk_letter, link));
    }
}

void snk_watch_deinit(sneck_client *client)
{
    snk_watch *watch = &client->watch;
    discard(client, &watch->inbox);
    discard(client, &watch->unfinished);
    snk_patrol_free(watch->patrol);
    (void)pthread_mutex_destroy(&watch->shown_mutex);
    (void)pthread_mutex_destroy(&watch->inbox_mutex);
    (void)pthread_mutex_destroy(&watch->mutex);
}

/* Without memory it is lost: the next round finds what can still be found. `entry` was pinned, or is locked. */
static bool post(sneck_client *client, const snk_letter *letter)
{
    snk_watch *watch = &client->watch;
    snk_letter *copy = malloc(sizeof *copy);
    if (copy == NULL)
        return false;
    *copy = *letter;
    if (copy->entry != NULL)
        snk_entry_pin(copy->entry);
    (void)pthread_mutex_lock(&watch->inbox_mutex);
    snk_list_append(&watch->inbox, &copy->link);
    (void)pthread_mutex_unlock(&watch->inbox_mutex);
    return true;
}

static snk_letter *next_letter(snk_watch *watch)
{
    (void)pthread_mutex_lock(&watch->inbox_mutex);
    snk_link *link = snk_list_first(&watch->inbox);
    if (link != NULL)
        snk_list_remove(link);
    (void)pthread_mutex_unlock(&watch->inbox_mutex);
    return link == NULL ? NULL : SNK_CONTAINER(link, snk_letter, link);
}

void snk_watch_call(sneck_client *client)
{
    snk_parking_call_and_wake(&client->watch.parking);
}

void snk_watch_owner_ended(sneck_client *client, uint64_t owner)
{
    snk_letter letter = { .kind = SNK_LETTER_OWNER_ENDED, .owner = owner };
    if (post(client, &letter))
        snk_watch_call(client);
}

/* What the store no longer has may have been broken; one who waited may have it by then. */
static bool may_be_broken(sneck_cause cause)
{
    return cause == SNECK_CAUSE_GONE || cause == SNECK_CAUSE_TAKEN;
}

bool snk_watch_lost_locked(sneck_client *client, snk_entry *entry, const snk_note *note)
{
    bool is_posted = false;
    if (!note->is_watched)
        return false;
    if (note->hold != NULL && note->hold->terms.care.recovery == SNECK_RECOVER_REACQUIRE) {
        snk_letter letter = {
            .kind = SNK_LETTER_LOST,
            .entry = entry,
            .owner = note->owner,
            .thread = note->hold->thread,
            .terms = note->hold->terms,
        };
        is_posted = post(client, &letter);
    }
    if (may_be_broken(note->cause)) {
        snk_letter letter = {
            .kind = SNK_LETTER_INQUIRY,
            .entry = entry,
            .token = note->token,
            .token_first = note->token_first,
        };
        is_posted |= post(client, &letter);
    }
    return is_posted;
}

void snk_watch_recovery_ended(sneck_client *client, snk_entry *entry, snk_waiter *waiter)
{
    snk_letter letter = {
        .kind = SNK_LETTER_RECOVERY_ENDED,
        .entry = entry,
        .owner = waiter->owner,
        .thread = (int32_t)snk_agent_of(waiter)->thread,
        .terms = waiter->terms,
        .status = waiter->result.status,
    };
    if (post(client, &letter))
        snk_watch_call(client);
}

void snk_watch_released(sneck_client *client, bool worked)
{
    (void)atomic_fetch_add(worked ? &client->watch.released : &client->watch.unreleased, 1);
}

/* ---- What cannot wait for the next round ---- */

static void tell_if_broken(sneck_client *client, const snk_letter *lost, const snk_view *view)
{
    for (size_t i = view->info.incident_count; i > 0; i--) {
        const sneck_incident *incident = &view->info.incidents[i - 1];
        if (incident->token != lost->token_first || strcmp(incident->kind, "broken") != 0)
            continue;
        snk_note note = { .kind = SNECK_EVENT_BROKEN, .token = lost->token, .message = "broken by force" };
        snk_events_emit(client, lost->entry, &note, incident->text);
        return;
    }
}

/*
 * The store keeps for a while what happened to a lock: whether the hold was broken, and why. False: later, because it did
 * not answer, or others come first.
 */
static bool inquire(sneck_client *client, snk_letter *lost, int64_t now_ns, unsigned *inquiries)
{
    sneck_error error;
    if (now_ns < lost->again_at_ns)
        return false;
    if (*inquiries >= INQUIRIES_MAX) {
        lost->again_at_ns = now_ns;
        return false;
    }
    (*inquiries)++;
    snk_view *view = snk_view_new();
    bool is_known =
        view != NULL && client->store->ops->inspect(client->store, lost->entry->name, view, &error) == SNECK_OK;
    if (is_known)
        tell_if_broken(client, lost, view);
    snk_view_free(view);
    lost->again_at_ns = snk_time_add(snk_now_ns(), SNK_NS_PER_S);
    return is_known || ++lost->tries >= INQUIRY_TRIES_MAX;
}

/* Tries to have it again. True: that is under way, or not needed; false: later. */
static bool recover(sneck_client *client, snk_letter *lost, int64_t now_ns)
{
    snk_watchdog *engine = &client->watch.engine;
    if (now_ns < lost->again_at_ns)
        return false;
    if (!snk_recover_is_needed(lost))
        return true;
    if (!snk_watchdog_may_try(engine, SNK_REMEDY_REACQUIRE, now_ns)) {
        lost->again_at_ns = snk_time_add(now_ns, SNK_NS_PER_S);
        return false;
    }
    if (snk_recover_start(client, lost)) {
        const snk_log_field fields[] = {
            { .key = "lock", .text = lost->entry->name },
            { .key = "finding", .text = snk_finding_name(SNK_FINDING_CLAIM_LOST) },
            { .key = "remedy", .text = snk_remedy_name(SNK_REMEDY_REACQUIRE) },
            { .key = NULL },
        };
        snk_log_write(client, SNECK_LOG_INFO, "remedy", fields);
        return true;
    }
    snk_watchdog_worked(engine, SNK_REMEDY_REACQUIRE, false);
    lost->again_at_ns = snk_time_add(now_ns, SNK_NS_PER_S);
    return false;
}

/* What an owner that ended has left behind. True: all of that is done. */
static bool bury(sneck_client *client, snk_letter *letter, int64_t now_ns)
{
    if (now_ns < letter->again_at_ns)
        return false;
    snk_burial burial = snk_patrol_bury(client->watch.patrol, letter->owner);
    if (burial.count > 0)
        snk_watch_note(client, SNECK_CHECK_OWNER, (snk_found){ SNK_FINDING_OWNER_DIED, burial.count, burial.remedy });
    if (burial.is_done)
        return true;
    letter->again_at_ns = snk_time_add(snk_now_ns(), SNK_NS_PER_S);
    return false;
}

/* True: it is done. */
static bool go_on_with(sneck_client *client, snk_letter *letter, unsigned *inquiries)
{
    int64_t now_ns = snk_now_ns();
    switch (letter->kind) {
    case SNK_LETTER_OWNER_ENDED:
        return bury(client, letter, now_ns);
    case SNK_LETTER_LOST:
        return recover(client, letter, now_ns);
    case SNK_LETTER_INQUIRY:
        return inquire(client, letter, now_ns, inquiries);
    case SNK_LETTER_RECOVERY_ENDED: /* becomes one that was lost, or nothing */
        break;
    }
    return true;
}

/* What is due of that which could not be done when it was told. Returns when the next is. */
static int64_t go_on(sneck_client *client)
{
    snk_list *unfinished = &client->watch.unfinished;
    int64_t next_ns = SNK_NEVER_NS;
    unsigned inquiries = 0;
    snk_link *next = NULL;
    for (snk_link *link = snk_list_first(unfinished); link != NULL; link = next) {
        next = snk_list_next(unfinished, link);
        snk_letter *letter = SNK_CONTAINER(link, snk_letter, link);
        bool is_done = go_on_with(client, letter, &inquiries);
        if (is_done) {
            snk_list_remove(link);
            free_letter(client, letter);
        } else if (letter->again_at_ns < next_ns) {
            next_ns = letter->again_at_ns;
        }
    }
    return next_ns;
}

/* Not had: tried again at the next round, as long as the owner has not given up. */
static void on_recovery_ended(sneck_client *client, snk_letter *letter)
{
    bool worked = letter->status == SNECK_OK || letter->status == SNECK_CANCELED;
    snk_watchdog_worked(&client->watch.engine, SNK_REMEDY_REACQUIRE, worked);
    if (worked) {
        free_letter(client, letter);
        return;
    }
    letter->kind = SNK_LETTER_LOST;
    letter->again_at_ns = snk_time_add(snk_now_ns(), (int64_t)letter->terms.care.watchdog_ms * SNK_NS_PER_MS);
    snk_list_append(&client->watch.unfinished, &letter->link);
}

/* Returns when it is to be called again. */
static int64_t read_letters(sneck_client *client)
{
    snk_letter *letter = NULL;
    (void)pthread_mutex_lock(&client->watch.mutex);
    snk_patrol_collect(client->watch.patrol);
    while ((letter = next_letter(&client->watch)) != NULL) {
        if (letter->kind == SNK_LETTER_RECOVERY_ENDED)
            on_recovery_ended(client, letter);
        else
            snk_list_append(&client->watch.unfinished, &letter->link);
    }
    int64_t next_ns = go_on(client);
    (void)pthread_mutex_unlock(&client->watch.mutex);
    return next_ns;
}

/* ---- The thread ---- */

void snk_watch_want(sneck_client *client, uint32_t watchdog_ms)
{
    snk_watch *watch = &client->watch;
    int64_t period_ms = atomic_load(&watch->period_ms);
    if (watchdog_ms == 0)
        return;
    while (watchdog_ms < period_ms && !atomic_compare_exchange_weak(&watch->period_ms, &period_ms, watchdog_ms))
        ;
    if (watchdog_ms < period_ms)
        snk_watch_call(client);
}

static void sleep_until_called(snk_watch *watch, int64_t until_ns)
{
    if (!snk_parking_begin(&watch->parking))
        return;
    int64_t now_ns = snk_now_ns();
    snk_futex_word word = { .word = &watch->parking.word, .expected = SNK_ASLEEP };
    if (until_ns > now_ns)
        (void)snk_futex_wait_any(&word, 1, until_ns - now_ns);
    snk_parking_end(&watch->parking);
}

static void *run(void *argument)
{
    sneck_client *client = argument;
    snk_watch *watch = &client->watch;
    int64_t began_ns = snk_now_ns();
    while (!atomic_load_explicit(&watch->is_stopping, memory_order_acquire)) {
        int64_t next_ns = read_letters(client);
        int64_t round_ns = snk_time_add(began_ns, atomic_load(&watch->period_ms) * SNK_NS_PER_MS);
        int64_t now_ns = snk_now_ns();
        if (now_ns >= round_ns) {
            began_ns = now_ns;
            (void)snk_watch_round(client, false);
            continue;
        }
        sleep_until_called(watch, next_ns < round_ns ? next_ns : round_ns);
    }
    return NULL;
}

bool snk_watch_prepare(sneck_client *client)
{
    snk_watch *watch = &client->watch;
    if (watch->patrol == NULL)
        watch->patrol = snk_patrol_new(client);
    return watch->patrol != NULL;
}

sneck_status snk_watch_start(sneck_client *client, sneck_error *error)
{
    snk_watch *watch = &client->watch;
    if (watch->is_running || atomic_load(&watch->period_ms) == INT64_MAX)
        return SNECK_OK;
    if (!snk_watch_prepare(client))
        return snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory for the watchdog");
    sneck_status status = snk_thread_start(&watch->thread, "sneck-watchdog", run, client, error);
    watch->is_running = status == SNECK_OK;
    atomic_store(&watch->started_at_ns, snk_now_ns());
    if (watch->is_running)
        snk_presence_open(&watch->presence, client);
    return status;
}

void snk_watch_stop(sneck_client *client)
{
    snk_watch *watch = &client->watch;
    if (watch->is_running) {
        snk_presence_close(&watch->presence);
        atomic_store_explicit(&watch->is_stopping, true, memory_order_release);
        snk_watch_call(client);
        (void)pthread_join(watch->thread, NULL);
        watch->is_running = false;
    }
    if (watch->patrol != NULL)
        snk_patrol_finish(watch->patrol);
}
