#include "client/batch.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "client/client.h"
#include "client/perform.h"
#include "store/store.h"

#define BUNDLES_MAX 512
/* Of one part: so many wait for their answers at most. What comes after them would have to wait for longer than they do. */
#define OUT_MAX 16
/* If so many do, the next one is not sent before it is full. */
#define OUT_PARTLY_FULL_MAX 4

typedef enum bundle_state {
    BUNDLE_FREE,
    BUNDLE_OPEN, /* more may be added */
    BUNDLE_SENT,
    BUNDLE_ANSWERED
} bundle_state;

/* Renewals of one part of the store. */
typedef struct bundle {
    snk_batch *batch; /* borrowed */
    _Atomic uint32_t state;
    uint32_t part;
    size_t count;
    snk_call call;
    snk_entry *entries[SNK_RENEW_BATCH_MAX]; /* pinned */
    snk_claim claims[SNK_RENEW_BATCH_MAX];
    snk_answer answers[SNK_RENEW_BATCH_MAX];
} bundle;

struct snk_batch {
    sneck_client *client;     /* borrowed */
    snk_parking *parking;     /* of the thread that flushes; borrowed */
    size_t lost;              /* holds that were lost by answers and not reported yet */
    _Atomic int64_t since_ns; /* since when it is inside the store; SNK_NEVER_NS: it is not */
    size_t count;
    bundle *bundles[BUNDLES_MAX]; /* owned; made when needed */
    _Atomic bool is_sending;      /* the renewer is about to look for answers anyway */
    _Atomic uint32_t telling;     /* answers to come, and threads that may still call the renewer */
};

static bundle *new_bundle(snk_batch *batch)
{
    /* Most of it is never touched by a client with few locks, and so never there. */
    bundle *made = batch->count < BUNDLES_MAX ? calloc(1, sizeof *made) : NULL;
    if (made == NULL)
        return NULL;
    made->batch = batch;
    batch->bundles[batch->count++] = made;
    return made;
}

snk_batch *snk_batch_new(sneck_client *client, snk_parking *parking)
{
    snk_batch *batch = calloc(1, sizeof *batch);
    if (batch == NULL)
        return NULL;
    batch->client = client;
    batch->parking = parking;
    atomic_init(&batch->since_ns, SNK_NEVER_NS);
    /* One is enough, if it must be. */
    if (new_bundle(batch) == NULL) {
        snk_batch_free(batch);
        return NULL;
    }
    return batch;
}

void snk_batch_free(snk_batch *batch)
{
    if (batch == NULL)
        return;
    for (size_t i = 0; i < batch->count; i++)
        free(batch->bundles[i]);
    free(batch);
}

/* In one order with is_sending: whoever has an answer and finds the renewer sending is seen by it afterwards. */
static bundle_state state_of(const bundle *self)
{
    return atomic_load(&self->state);
}

static void set_state(bundle *self, bundle_state state)
{
    atomic_store(&self->state, state);
}

/* ---- Answers ---- */

static bool has_loss(const snk_actions *actions)
{
    for (uint32_t i = 0; i < actions->note_count; i++)
        if (actions->notes[i].kind == SNECK_EVENT_LOST)
            return true;
    return false;
}

/* Takes an answer to its machine. Returns how many holds were lost by it. */
static size_t reply(const snk_batch *batch, snk_entry *entry, const snk_send *send, const snk_answer *answer)
{
    snk_turn turn;
    snk_event event = { .kind = SNK_EVENT_REPLY, .send = send, .answer = answer };
    snk_turn_run(&turn, batch->client, entry, &event);
    size_t lost = has_loss(&turn.actions);
    snk_errands_leave(&turn);
    return lost;
}

static void take_back(bundle *self)
{
    snk_batch *batch = self->batch;
    for (size_t i = 0; i < self->count; i++) {
        snk_answer_settle(&self->answers[i]);
        batch->lost += reply(batch, self->entries[i], &self->claims[i].send, &self->answers[i]);
        snk_registry_unpin(&batch->client->registry, self->entries[i]);
    }
    self->count = 0;
    set_state(self, BUNDLE_FREE);
}

/* Returns how many holds were lost. */
static size_t collect(snk_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        if (state_of(batch->bundles[i]) == BUNDLE_ANSWERED)
            take_back(batch->bundles[i]);
    }
    size_t lost = batch->lost;
    batch->lost = 0;
    return lost;
}

static void done(snk_call *call)
{
    bundle *self = call->context;
    snk_batch *batch = self->batch;
    set_state(self, BUNDLE_ANSWERED); /* from here on its thread may use it again */
    if (!atomic_load(&batch->is_sending))
        snk_parking_call_and_wake(batch->parking);
    /* Release: pairs with the acquire in snk_batch_finish, after which all of this may be gone. */
    (void)atomic_fetch_sub_explicit(&batch->telling, 1, memory_order_release);
}

/* ---- Sending ---- */

static void send_bundle(bundle *self)
{
    snk_batch *batch = self->batch;
    self->call = (snk_call){
        .claims = self->claims,
        .answers = self->answers,
        .count = self->count,
        .background = true,
        .done = done,
        .context = self,
    };
    set_state(self, BUNDLE_SENT);
    /* Relaxed: only this thread counts up. */
    (void)atomic_fetch_add_explicit(&batch->telling, 1, memory_order_relaxed);
    snk_store *store = batch->client->store;
    if (self->claims[0].send.check && store->ops->check != NULL) {
        self->call.store = store;
        store->ops->check(store, &self->call);
    } else {
        snk_store_submit(store, &self->call);
    }
}

static size_t count_out(const snk_batch *batch, uint32_t part)
{
    size_t count = 0;
    for (size_t i = 0; i < batch->count; i++)
        count += state_of(batch->bundles[i]) == BUNDLE_SENT && batch->bundles[i]->part == part;
    return count;
}

/* An open bundle for a part with room in it; NULL: the part has enough to answer, or there is no memory. */
static bundle *open_bundle(snk_batch *batch, uint32_t part)
{
    bundle *unused = NULL;
    for (size_t i = 0; i < batch->count; i++) {
        bundle *self = batch->bundles[i];
        bundle_state state = state_of(self);
        if (state == BUNDLE_OPEN && self->part == part)
            return self->count < SNK_RENEW_BATCH_MAX ? self : NULL;
        if (state == BUNDLE_FREE)
            unused = self;
    }
    if (count_out(batch, part) >= OUT_MAX)
        return NULL;
    if (unused == NULL)
        unused = new_bundle(batch);
    if (unused == NULL)
        return NULL;
    unused->part = part;
    set_state(unused, BUNDLE_OPEN);
    return unused;
}

/* Instead of waiting for a part that does not keep up: this one is not sent, and comes again soon. */
static void refuse(const snk_batch *batch, snk_entry *entry, const snk_send *send)
{
    snk_answer none = { .kind = SNK_ANSWER_UNCERTAIN };
    (void)snk_fail(&none.error, SNECK_UNKNOWN, 0, "too many renewals wait for an answer of this part of the store");
    (void)reply(batch, entry, send, &none);
}

size_t snk_batch_add(snk_batch *batch, snk_entry *entry, const snk_send *send)
{
    snk_store *store = batch->client->store;
    bundle *self = open_bundle(batch, store->ops->part == NULL ? 0 : store->ops->part(store, entry->name));
    if (self == NULL) {
        refuse(batch, entry, send);
        return snk_batch_flush(batch);
    }
    snk_entry_pin(entry);
    self->entries[self->count] = entry;
    self->claims[self->count] = (snk_claim){
        .name = entry->name,
        .why = "",
        .grip = snk_entry_grip(entry),
        .send = *send,
    };
    self->count++;
    return self->count == SNK_RENEW_BATCH_MAX ? snk_batch_flush(batch) : 0;
}

/* A part that is slow gets fewer and larger ones, so that what falls due lock by lock cannot use them all up. */
static bool is_to_be_sent(const snk_batch *batch, const bundle *self)
{
    if (state_of(self) != BUNDLE_OPEN)
        return false;
    size_t out = count_out(batch, self->part);
    return out < OUT_PARTLY_FULL_MAX || (self->count == SNK_RENEW_BATCH_MAX && out < OUT_MAX);
}

/* How many it sent. */
static size_t send_open(snk_batch *batch)
{
    size_t sent = 0;
    atomic_store(&batch->is_sending, true);
    for (size_t i = 0; i < batch->count; i++) {
        if (!is_to_be_sent(batch, batch->bundles[i]))
            continue;
        atomic_store_explicit(&batch->since_ns, snk_now_ns(), memory_order_relaxed);
        send_bundle(batch->bundles[i]);
        atomic_store_explicit(&batch->since_ns, SNK_NEVER_NS, memory_order_relaxed);
        sent++;
    }
    atomic_store(&batch->is_sending, false);
    return sent;
}

/* An answer that comes while it sends calls nobody, and may be what another bundle waits for. */
size_t snk_batch_flush(snk_batch *batch)
{
    size_t lost = 0;
    do {
        lost += collect(batch);
    } while (send_open(batch) > 0);
    return lost + collect(batch);
}

static bool is_idle(const snk_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++)
        if (state_of(batch->bundles[i]) != BUNDLE_FREE)
            return false;
    return atomic_load_explicit(&batch->telling, memory_order_acquire) == 0;
}

size_t snk_batch_finish(snk_batch *batch, int64_t until_ns)
{
    size_t lost = snk_batch_flush(batch);
    while (!is_idle(batch) && snk_now_ns() < until_ns) {
        struct timespec pause = snk_timespec(SNK_NS_PER_MS);
        (void)nanosleep(&pause, NULL);
        lost += snk_batch_flush(batch);
    }
    return lost;
}

int64_t snk_batch_since_ns(const snk_batch *batch)
{
    return atomic_load_explicit(&batch->since_ns, memory_order_relaxed);
}
