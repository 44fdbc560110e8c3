#include "store/quorum/undo.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "engine/renewal.h"
#include "store/quorum/errand.h"

/* On one node at a time; what is beyond is left to the leases. */
#define UNDOS_MAX 1024
/* Where somebody else's data is, it stays. */
#define REFUSALS_MAX 3

typedef struct undo {
    snk_errand errand;
    int64_t give_up_at_ns;
    uint32_t refusals;
} undo;

/* ---- Words ---- */

void snk_attempt_text(const snk_id *claim, uint32_t attempt, char text[SNK_ATTEMPT_TEXT_SIZE])
{
    snk_id_to_hex(claim, text);
    if (attempt != SNK_ALL_ATTEMPTS)
        (void)snk_text_number(snk_text_append(text + SNK_ID_TEXT_SIZE - 1, ".", 1), attempt);
}

static int64_t tombstone_ms(const snk_release_terms *terms)
{
    int64_t tombstone_ns = terms->lease_ns > SNK_TOMBSTONE_NS ? terms->lease_ns : SNK_TOMBSTONE_NS;
    return terms->unanswered ? tombstone_ns / SNK_NS_PER_MS : 0;
}

sneck_status snk_release_words(snk_quorum_store *store, const snk_release_terms *terms, snk_release_texts *texts,
                               snk_node_words *words, sneck_error *error)
{
    sneck_status status = snk_keys_make(&texts->keys, store->prefix, terms->name, error);
    if (status != SNECK_OK)
        return status;
    snk_attempt_text(&terms->claim, terms->attempt, texts->claim);
    (void)snk_text_number(texts->tombstone, tombstone_ms(terms));
    snk_quorum_news_make(store, terms->announce ? terms->name : NULL, &texts->news);
    snk_node_words_begin(words, SNK_NODE_RELEASE, 3);
    snk_node_words_add_key(words, &texts->keys, SNK_KEY_LOCK);
    snk_node_words_add_key(words, &texts->keys, SNK_KEY_GONE);
    snk_node_words_add_key(words, &texts->keys, SNK_KEY_LOG);
    snk_node_words_add(words, texts->claim);
    snk_node_words_add(words, texts->tombstone);
    snk_node_words_add(words, texts->news.channel);
    snk_node_words_add(words, texts->news.message);
    snk_node_words_add(words, store->options.history ? terms->kind : "");
    snk_node_words_add(words, terms->reason);
    return SNECK_OK;
}

/* ---- Taking back ---- */

static void end(undo *self)
{
    snk_quorum_store *store = self->errand.node->store;
    (void)atomic_fetch_sub_explicit(&self->errand.node->undoing, 1, memory_order_relaxed);
    snk_redis_call_deinit(&self->errand.call);
    free(self);
    snk_quorum_work_ended(store);
}

typedef enum sequel {
    SEQUEL_END,
    SEQUEL_AGAIN,
    SEQUEL_LATER
} sequel;

static sequel judge(undo *self)
{
    const snk_redis_call *call = &self->errand.call;
    const snk_quorum_node *node = self->errand.node;
    bool uncertain = false;
    sneck_error error;
    if (snk_node_result(call, node->where, &uncertain, &error) == SNECK_OK ||
        atomic_load_explicit(&node->store->is_closing, memory_order_relaxed) || snk_now_ns() >= self->give_up_at_ns)
        return SEQUEL_END;
    /* Connecting has pauses of its own, and silence takes its time; nothing else does. */
    if (call->outcome != SNK_REDIS_REPLY && (error.status == SNECK_UNAVAILABLE || error.status == SNECK_UNKNOWN))
        return SEQUEL_AGAIN;
    self->refusals++;
    return error.status == SNECK_INVALID && self->refusals >= REFUSALS_MAX ? SEQUEL_END : SEQUEL_LATER;
}

static void undo_done(snk_errand *errand)
{
    undo *self = SNK_CONTAINER(errand, undo, errand);
    switch (judge(self)) {
    case SEQUEL_END:
        end(self);
        break;
    case SEQUEL_AGAIN:
        snk_errand_repeat(errand);
        break;
    case SEQUEL_LATER:
        errand->is_sent_again = false; /* the node may have been restarted meanwhile, and forgotten the script */
        snk_errand_repeat_later(errand, snk_now_ns() + snk_backoff_ns(self->refusals, SNK_BACKOFF_NS_MAX));
        break;
    }
}

void snk_undo_start(snk_quorum_store *store, uint32_t number, const snk_release_terms *terms)
{
    snk_quorum_node *node = &store->nodes[number];
    snk_release_texts texts;
    snk_node_words words;
    if (atomic_load_explicit(&store->is_closing, memory_order_relaxed) ||
        atomic_load_explicit(&node->undoing, memory_order_relaxed) >= UNDOS_MAX)
        return;
    undo *self = calloc(1, sizeof *self);
    if (self == NULL)
        return;
    snk_errand_init(&self->errand, node, SNK_NODE_RELEASE, undo_done);
    self->errand.call.timeout_ns = store->options.timeout_ns;
    self->give_up_at_ns = snk_now_ns() + 2 * terms->lease_ns + tombstone_ms(terms) * SNK_NS_PER_MS;
    if (snk_release_words(store, terms, &texts, &words, NULL) != SNECK_OK ||
        snk_node_words_format(&words, &self->errand.call, NULL) != SNECK_OK) {
        snk_redis_call_deinit(&self->errand.call);
        free(self);
        return;
    }
    (void)atomic_fetch_add_explicit(&node->undoing, 1, memory_order_relaxed);
    (void)atomic_fetch_add_explicit(&store->at_work, 1, memory_order_relaxed);
    snk_errand *errand = &self->errand;
    snk_errands_submit(&errand, 1);
}

void snk_undo_start_all(snk_quorum_store *store, uint32_t nodes, uint32_t unanswered, const snk_release_terms *terms)
{
    for (uint32_t i = 0; i < store->quorum.nodes; i++) {
        snk_release_terms one = *terms;
        one.unanswered = (unanswered >> i & 1) != 0;
        if (((nodes | unanswered) >> i & 1) != 0)
            snk_undo_start(store, i, &one);
    }
}
