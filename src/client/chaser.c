#include "client/chaser.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "client/client.h"
#include "engine/renewal.h"
#include "store/store.h"

/* Chases in one go, before the renewer looks after its renewals again. */
#define CHASES_AT_ONCE_MAX 64

typedef struct chase {
    snk_timer timer;
    int64_t give_up_at_ns;
    sneck_client *client; /* borrowed */
    pthread_t asker;      /* whoever asked last */
    snk_link answered;    /* under chaser.mutex */
    snk_call call;
    snk_answer answer;
    snk_claim claim; /* its name is the one below */
    char name[];
} chase;

void snk_chaser_init(snk_chaser *chaser)
{
    (void)pthread_mutex_init(&chaser->mutex, NULL);
    snk_timers_init(&chaser->timers);
    snk_list_init(&chaser->answered);
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

static chase *new_chase(sneck_client *client, const snk_entry *entry, const snk_send *send)
{
    size_t size = strlen(entry->name) + 1;
    chase *made = malloc(sizeof *made + size);
    if (made == NULL)
        return NULL;
    int64_t life_ns = send->lease_ns > SNK_TOMBSTONE_NS ? send->lease_ns : SNK_TOMBSTONE_NS;
    snk_timer_init(&made->timer);
    made->give_up_at_ns = snk_time_add(snk_now_ns(), life_ns);
    made->client = client;
    made->answered = (snk_link){ .next = NULL };
    memcpy(made->name, entry->name, size);
    made->claim = (snk_claim){ .name = made->name, .why = "", .grip = snk_entry_grip(entry), .send = *send };
    return made;
}

bool snk_chaser_add(sneck_client *client, const snk_entry *entry, const snk_send *send)
{
    snk_chaser *chaser = &client->renewer.chaser;
    chase *made = new_chase(client, entry, send);
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

static bool is_answered(const snk_answer *answer)
{
    return answer->kind != SNK_ANSWER_FAILED && answer->kind != SNK_ANSWER_UNCERTAIN;
}

/* What the first attempt came to is what the remedy came to; the rest is up to the chase. */
static void settle(sneck_client *client, chase *asked)
{
    if (asked->claim.send.is_remedy)
        snk_watch_released(client, is_answered(&asked->answer));
    asked->claim.send.is_remedy = false;
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

/* On whatever thread has the answer. */
static void done(snk_call *call)
{
    chase *self = call->context;
    sneck_client *client = self->client;
    snk_chaser *chaser = &client->renewer.chaser;
    bool by_asker = pthread_equal(self->asker, pthread_self()) != 0;
    (void)pthread_mutex_lock(&chaser->mutex);
    snk_list_append(&chaser->answered, &self->answered); /* from here on it may be gone */
    (void)pthread_mutex_unlock(&chaser->mutex);
    /* The thread that asks looks for answers after that. */
    if (!by_asker)
        snk_renewer_call(client);
    (void)pthread_mutex_lock(&chaser->mutex);
    chaser->in_flight--;
    (void)pthread_mutex_unlock(&chaser->mutex);
}

static void ask(chase *self)
{
    snk_chaser *chaser = &self->client->renewer.chaser;
    self->call = (snk_call){
        .claims = &self->claim, .answers = &self->answer, .count = 1, .background = true, .done = done, .context = self
    };
    self->asker = pthread_self();
    (void)pthread_mutex_lock(&chaser->mutex);
    chaser->in_flight++;
    (void)pthread_mutex_unlock(&chaser->mutex);
    snk_store_submit(self->client->store, &self->call);
}

static chase *pop_answered(snk_chaser *chaser)
{
    (void)pthread_mutex_lock(&chaser->mutex);
    snk_link *link = snk_list_first(&chaser->answered);
    if (link != NULL)
        snk_list_remove(link);
    (void)pthread_mutex_unlock(&chaser->mutex);
    return link == NULL ? NULL : SNK_CONTAINER(link, chase, answered);
}

static void take_answers(sneck_client *client)
{
    snk_chaser *chaser = &client->renewer.chaser;
    chase *answered = NULL;
    while ((answered = pop_answered(chaser)) != NULL) {
        settle(client, answered);
        if (is_answered(&answered->answer)) {
            atomic_store(&chaser->failures, 0);
            forget(chaser, answered);
        } else {
            put_back(client, answered, snk_now_ns());
        }
    }
}

void snk_chaser_run(sneck_client *client, int64_t now_ns)
{
    snk_chaser *chaser = &client->renewer.chaser;
    chase *due = NULL;
    take_answers(client);
    for (int i = 0; i < CHASES_AT_ONCE_MAX && now_ns >= atomic_load(&chaser->pause_until_ns); i++) {
        due = pop(chaser, now_ns);
        if (due == NULL)
            break;
        ask(due);
        take_answers(client);
    }
    take_answers(client);
}

/* ---- The end ---- */

static bool is_waiting(snk_chaser *chaser)
{
    (void)pthread_mutex_lock(&chaser->mutex);
    bool waits = chaser->in_flight > 0;
    (void)pthread_mutex_unlock(&chaser->mutex);
    return waits;
}

static bool ask_once_more(chase *chased)
{
    snk_store_ask(chased->client->store, &chased->claim, &chased->answer);
    return is_answered(&chased->answer);
}

/* Asks again until there is an answer or the time is over. */
static void ask_until(chase *chased, int64_t until_ns)
{
    for (uint32_t failures = 1; snk_now_ns() < until_ns && !ask_once_more(chased); failures++) {
        struct timespec pause = snk_timespec(snk_backoff_ns(failures, SNK_BACKOFF_NS_MAX));
        (void)nanosleep(&pause, NULL);
    }
}

void snk_chaser_finish(sneck_client *client, int64_t until_ns)
{
    snk_chaser *chaser = &client->renewer.chaser;
    chase *left = NULL;
    while (is_waiting(chaser)) {
        struct timespec pause = snk_timespec(SNK_NS_PER_MS);
        (void)nanosleep(&pause, NULL);
    }
    take_answers(client);
    while ((left = pop(chaser, SNK_NEVER_NS - 1)) != NULL) {
        /* One that must not be released yet is left to its lease, which ends soon. */
        if (left->claim.send.not_before_ns <= snk_now_ns())
            ask_until(left, until_ns);
        forget(chaser, left);
    }
}
