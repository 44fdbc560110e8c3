#include "client/batch.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/futex.h"
#include "base/limits.h"
#include "client/client.h"
#include "client/perform.h"
#include "store/store.h"

struct snk_batch {
    sneck_client *client; /* borrowed */
    size_t count;
    snk_entry *entries[SNK_RENEW_BATCH_MAX]; /* pinned */
    snk_claim claims[SNK_RENEW_BATCH_MAX];
    snk_answer answers[SNK_RENEW_BATCH_MAX];
};

snk_batch *snk_batch_new(sneck_client *client)
{
    /* Most of it is never touched by a client with few locks, and so never there. */
    snk_batch *batch = calloc(1, sizeof *batch);
    if (batch != NULL)
        batch->client = client;
    return batch;
}

void snk_batch_free(snk_batch *batch)
{
    free(batch);
}

void snk_batch_add(snk_batch *batch, snk_entry *entry, const snk_send *send)
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
    if (batch->count == SNK_RENEW_BATCH_MAX)
        snk_batch_flush(batch);
}

static void done(snk_call *call)
{
    _Atomic uint32_t *word = call->context;
    atomic_store_explicit(word, 1, memory_order_release);
    /* The waiter may be gone already, and the word with it: that harms nobody. */
    snk_futex_wake(word, INT_MAX, false);
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
    snk_store_submit(batch->client->store, &call);
    while (atomic_load_explicit(&word, memory_order_acquire) == 0) {
        snk_futex_word wait = { .word = &word, .expected = 0 };
        (void)snk_futex_wait_any(&wait, 1, SNK_NEVER_NS);
    }
}

void snk_batch_flush(snk_batch *batch)
{
    if (batch->count == 0)
        return;
    submit(batch);
    size_t count = batch->count;
    batch->count = 0;
    for (size_t i = 0; i < count; i++) {
        snk_turn turn;
        snk_answer_settle(&batch->answers[i]);
        snk_event event = {
            .kind = SNK_EVENT_REPLY,
            .send = &batch->claims[i].send,
            .answer = &batch->answers[i],
        };
        snk_turn_run(&turn, batch->client, batch->entries[i], &event);
        snk_perform(&turn, NULL);
        snk_registry_unpin(&batch->client->registry, batch->entries[i]);
    }
}
