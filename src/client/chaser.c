#include "client/chaser.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "client/client.h"
#include "engine/renewal.h"

/* Chases in one go, before the renewer looks after its renewals again. */
#define CHASES_AT_ONCE_MAX 64

typedef struct chase {
    snk_timer timer;
    int64_t give_up_at_ns;
    snk_send send;
    snk_grip grip;
    char name[];
} chase;

void snk_chaser_init(snk_chaser *chaser)
{
    (void)pthread_mutex_init(&chaser->mutex, NULL);
    snk_timers_init(&chaser->timers);
}

static void no_pin(snk_timer *timer)
{
    (void)timer;
}

static chase *pop(snk_chaser *chaser, int64_t now_ns)
{
    snk_timer *timer = snk_timers_pop(&chaser->timers, now_ns, no_pin);
    return timer == NULL ? NULL : SNK_CONTAINER(timer, chase, timer);
}

void snk_chaser_deinit(snk_chaser *chaser)
{
    chase *left = NULL;
    while ((left = pop(chaser, SNK_NEVER_NS)) != NULL)
        free(left);
    snk_timers_deinit(&chaser->timers);
    (void)pthread_mutex_destroy(&chaser->mutex);
}

static chase *new_chase(const snk_entry *entry, const snk_send *send)
{
    size_t size = strlen(entry->name) + 1;
    chase *made = malloc(sizeof *made + size);
    if (made == NULL)
        return NULL;
    int64_t life_ns = send->lease_ns > SNK_TOMBSTONE_NS ? send->lease_ns : SNK_TOMBSTONE_NS;
    snk_timer_init(&made->timer);
    made->give_up_at_ns = snk_time_add(snk_now_ns(), life_ns);
    made->send = *send;
    made->grip = snk_entry_grip(entry);
    memcpy(made->name, entry->name, size);
    return made;
}

bool snk_chaser_add(sneck_client *client, const snk_entry *entry, const snk_send *send)
{
    snk_chaser *chaser = &client->renewer.chaser;
    chase *made = new_chase(entry, send);
    if (made == NULL)
        return false;
    (void)pthread_mutex_lock(&chaser->mutex);
    bool fits = snk_timers_reserve(&chaser->timers, chaser->count + 1);
    if (fits) {
        chaser->count++;
        (void)snk_timers_arm(&chaser->timers, &made->timer, send->not_before_ns);
    }
    (void)pthread_mutex_unlock(&chaser->mutex);
    if (fits)
        snk_renewer_call(client);
    else
        free(made);
    return fits;
}

int64_t snk_chaser_next_ns(snk_chaser *chaser)
{
    int64_t at_ns = snk_timers_next(&chaser->timers);
    int64_t pause_until_ns = atomic_load(&chaser->pause_until_ns);
    return at_ns != SNK_NEVER_NS && at_ns < pause_until_ns ? pause_until_ns : at_ns;
}

static void forget(snk_chaser *chaser, chase *answered)
{
    (void)pthread_mutex_lock(&chaser->mutex);
    chaser->count--;
    (void)pthread_mutex_unlock(&chaser->mutex);
    free(answered);
}

static bool ask(sneck_client *client, const chase *chased)
{
    snk_claim claim = { .name = chased->name, .why = "", .grip = chased->grip, .send = chased->send };
    snk_answer answer;
    snk_store_ask(client->store, &claim, &answer);
    return answer.kind != SNK_ANSWER_FAILED && answer.kind != SNK_ANSWER_UNCERTAIN;
}

/* A store that does not answer one does not answer the next: all of them wait. */
static void put_back(sneck_client *client, chase *unanswered, int64_t now_ns)
{
    snk_chaser *chaser = &client->renewer.chaser;
    uint32_t failures = atomic_fetch_add(&chaser->failures, 1) + 1;
    int64_t again_at_ns = snk_time_add(now_ns, snk_backoff_ns(failures, SNK_BACKOFF_NS_MAX));
    atomic_store(&chaser->pause_until_ns, again_at_ns);
    if (now_ns >= unanswered->give_up_at_ns) {
        const snk_log_field fields[] = { { .key = "lock", .text = unanswered->name }, { .key = NULL } };
        snk_log_write(client, SNECK_LOG_WARNING, "chase-given-up", fields);
        forget(chaser, unanswered);
        return;
    }
    (void)snk_timers_arm(&chaser->timers, &unanswered->timer, again_at_ns);
}

void snk_chaser_run(sneck_client *client, int64_t now_ns)
{
    snk_chaser *chaser = &client->renewer.chaser;
    chase *due = NULL;
    for (int i = 0; i < CHASES_AT_ONCE_MAX && now_ns >= atomic_load(&chaser->pause_until_ns); i++) {
        due = pop(chaser, now_ns);
        if (due == NULL)
            return;
        if (ask(client, due)) {
            atomic_store(&chaser->failures, 0);
            forget(chaser, due);
        } else {
            put_back(client, due, snk_now_ns());
        }
    }
}

/* Asks again until there is an answer or the time is over. */
static void ask_until(sneck_client *client, const chase *chased, int64_t until_ns)
{
    for (uint32_t failures = 1; snk_now_ns() < until_ns && !ask(client, chased); failures++) {
        struct timespec pause = snk_timespec(snk_backoff_ns(failures, SNK_BACKOFF_NS_MAX));
        (void)nanosleep(&pause, NULL);
    }
}

void snk_chaser_finish(sneck_client *client, int64_t until_ns)
{
    snk_chaser *chaser = &client->renewer.chaser;
    chase *left = NULL;
    while ((left = pop(chaser, SNK_NEVER_NS - 1)) != NULL) {
        /* One that must not be released yet is left to its lease, which ends soon. */
        if (left->send.not_before_ns <= snk_now_ns())
            ask_until(client, left, until_ns);
        forget(chaser, left);
    }
}
