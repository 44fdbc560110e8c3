#include "client/batch.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/limits.h"
#include "client/client.h"
#include "client/perform.h"
#include "store/store.h"

#define BUNDLES_MAX 64

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
    sneck_client *client; /* borrowed */
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

snk_batch *snk_batch_new(sneck_client *client)
{
    snk_batch *batch = calloc(1, sizeof *batch);
    if (batch == NULL)
        return NULL;
    batch->client = client;
    /* One is enough, if it must be. */
    if (new_bundle(batch) == NULL) {
        free(batch);
        return NULL;
    }
    return batch;
}

void snk_batch_free(snk_batch *batch)
{
    for (size_t i = 0; batch != NULL && i < batch->count; i++)
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

static void take_back(bundle *self)
{
    sneck_client *client = self->batch->client;
    size_t count = self->count;
    self->count = 0;
    for (size_t i = 0; i < count; i++) {
        snk_turn turn;
        snk_answer_settle(&self->answers[i]);
        snk_event event = {
            .kind = SNK_EVENT_REPLY,
            .send = &self->claims[i].send,
            .answer = &self->answers[i],
        };
        snk_turn_run(&turn, client, self->entries[i], &event);
        snk_perform(&turn, NULL);
        snk_registry_unpin(&client->registry, self->entries[i]);
    }
    set_state(self, BUNDLE_FREE);
}

static void collect(snk_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        if (state_of(batch->bundles[i]) == BUNDLE_ANSWERED)
            take_back(batch->bundles[i]);
    }
}

static void done(snk_call *call)
{
    bundle *self = call->context;
    snk_batch *batch = self->batch;
    sneck_client *client = batch->client;
    set_state(self, BUNDLE_ANSWERED); /* from here on the renewer may use it again */
    if (!atomic_load(&batch->is_sending))
        snk_renewer_call(client);
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
    snk_store_submit(batch->client->store, &self->call);
}

/* An open bundle for a part; a new one if there is none. Waits when there is no room. */
static bundle *open_bundle(snk_batch *batch, uint32_t part)
{
    for (;;) {
        bundle *unused = NULL;
        for (size_t i = 0; i < batch->count; i++) {
            bundle *self = batch->bundles[i];
            bundle_state state = state_of(self);
            if (state == BUNDLE_OPEN && self->part == part)
                return self;
            if (state == BUNDLE_FREE)
                unused = self;
        }
        if (unused == NULL)
            unused = new_bundle(batch);
        if (unused != NULL) {
            unused->part = part;
            set_state(unused, BUNDLE_OPEN);
            return unused;
        }
        /* Only with more parts than bundles, or without memory. */
        snk_batch_finish(batch);
    }
}

void snk_batch_add(snk_batch *batch, snk_entry *entry, const snk_send *send)
{
    snk_store *store = batch->client->store;
    bundle *self = open_bundle(batch, store->ops->part == NULL ? 0 : store->ops->part(store, entry->name));
    snk_entry_pin(entry);
    self->entries[self->count] = entry;
    self->claims[self->count] = (snk_claim){
        .name = entry->name,
        .why = "",
        .grip = snk_entry_grip(entry),
        .send = *send,
    };
    self->count++;
    if (self->count == SNK_RENEW_BATCH_MAX)
        snk_batch_flush(batch);
}

void snk_batch_flush(snk_batch *batch)
{
    atomic_store(&batch->is_sending, true);
    for (size_t i = 0; i < batch->count; i++) {
        if (state_of(batch->bundles[i]) == BUNDLE_OPEN)
            send_bundle(batch->bundles[i]);
    }
    atomic_store(&batch->is_sending, false);
    collect(batch);
}

void snk_batch_finish(snk_batch *batch)
{
    snk_batch_flush(batch);
    while (atomic_load_explicit(&batch->telling, memory_order_acquire) > 0) {
        struct timespec pause = snk_timespec(SNK_NS_PER_MS);
        (void)nanosleep(&pause, NULL);
    }
    collect(batch);
}
