#include "client/batch.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/futex.h"
#include "base/limits.h"
#include "client/client.h"
#include "client/perform.h"
#include "store/store.h"

struct snk_batch {
    sneck_client *client;     /* borrowed */
    _Atomic int64_t since_ns; /* since when the store has it; SNK_NEVER_NS: it does not */
    pthread_mutex_t mutex;    /* before entry.mutex; only to give up or take back what the store has */
    bool is_out;              /* the store has it: nothing of it changes; under mutex */
    size_t count;
    snk_entry *entries[SNK_RENEW_BATCH_MAX]; /* pinned */
    snk_claim claims[SNK_RENEW_BATCH_MAX];
    snk_answer answers[SNK_RENEW_BATCH_MAX];
};

snk_batch *snk_batch_new(sneck_client *client)
{
    /* Most of it is never touched by a client with few locks, and so never there. */
    snk_batch *batch = calloc(1, sizeof *batch);
    if (batch == NULL)
        return NULL;
    batch->client = client;
    atomic_init(&batch->since_ns, SNK_NEVER_NS);
    (void)pthread_mutex_init(&batch->mutex, NULL);
    return batch;
}

void snk_batch_free(snk_batch *batch)
{
    if (batch != NULL)
        (void)pthread_mutex_destroy(&batch->mutex);
    free(batch);
}

size_t snk_batch_add(snk_batch *batch, snk_entry *entry, const snk_send *send)
{
    snk_entry_pin(entry);
    batch->entries[batch->count] = entry;
    batch->claims[batch->count] = (snk_claim){
        .name = entry->name,
        .why = "",
        .grip = snk_entry_grip(entry),
        .send = *send,
    };
    batch->count++;
    return batch->count == SNK_RENEW_BATCH_MAX ? snk_batch_flush(batch) : 0;
}

static void done(snk_call *call)
{
    _Atomic uint32_t *word = call->context;
    atomic_store_explicit(word, 1, memory_order_release);
    /* The waiter may be gone already, and the word with it: that harms nobody. */
    snk_futex_wake(word, INT_MAX, false);
}

static void set_out(snk_batch *batch, bool is_out)
{
    atomic_store_explicit(&batch->since_ns, is_out ? snk_now_ns() : SNK_NEVER_NS, memory_order_relaxed);
    (void)pthread_mutex_lock(&batch->mutex);
    batch->is_out = is_out;
    (void)pthread_mutex_unlock(&batch->mutex);
}

static void submit(snk_batch *batch)
{
    _Atomic uint32_t word = 0;
    snk_call call = {
        .claims = batch->claims,
        .answers = batch->answers,
        .count = batch->count,
        .done = done,
        .context = &word,
    };
    snk_store *store = batch->client->store;
    if (batch->claims[0].send.check && store->ops->check != NULL) {
        call.store = store;
        store->ops->check(store, &call);
    } else {
        snk_store_submit(store, &call);
    }
    while (atomic_load_explicit(&word, memory_order_acquire) == 0) {
        snk_futex_word wait = { .word = &word, .expected = 0 };
        (void)snk_futex_wait_any(&wait, 1, SNK_NEVER_NS);
    }
}

static bool has_loss(const snk_actions *actions)
{
    for (uint32_t i = 0; i < actions->note_count; i++)
        if (actions->notes[i].kind == SNECK_EVENT_LOST)
            return true;
    return false;
}

/* Takes an answer to its machine; what follows from it is left in the turn. */
static void reply(const snk_batch *batch, size_t index, const snk_answer *answer, snk_turn *turn)
{
    snk_event event = { .kind = SNK_EVENT_REPLY, .send = &batch->claims[index].send, .answer = answer };
    snk_turn_run(turn, batch->client, batch->entries[index], &event);
}

size_t snk_batch_flush(snk_batch *batch)
{
    size_t count = batch->count;
    size_t lost = 0;
    if (count == 0)
        return 0;
    set_out(batch, true);
    submit(batch);
    set_out(batch, false);
    batch->count = 0;
    for (size_t i = 0; i < count; i++) {
        snk_turn turn;
        snk_answer_settle(&batch->answers[i]);
        reply(batch, i, &batch->answers[i], &turn);
        lost += has_loss(&turn.actions);
        snk_perform(&turn, NULL);
        snk_registry_unpin(&batch->client->registry, batch->entries[i]);
    }
    return lost;
}

int64_t snk_batch_since_ns(const snk_batch *batch)
{
    return atomic_load_explicit(&batch->since_ns, memory_order_relaxed);
}

void snk_batch_abandon(snk_batch *batch)
{
    snk_answer none = { .kind = SNK_ANSWER_UNCERTAIN };
    (void)snk_fail(&none.error, SNECK_UNKNOWN, 0, "the renewal thread waits for the store and does not come back");
    (void)pthread_mutex_lock(&batch->mutex);
    for (size_t i = 0; i < batch->count && batch->is_out; i++) {
        snk_turn turn;
        reply(batch, i, &none, &turn);
        snk_perform_chases(&turn);
    }
    (void)pthread_mutex_unlock(&batch->mutex);
}
