#include "store/quorum/adopt.h"

#include <stdlib.h>

#include "base/error.h"
#include "store/quorum/fields.h"
#include "store/quorum/undo.h"

typedef struct adoption {
    snk_errand errand;
    snk_id claim;
    uint32_t attempt;
    int64_t lease_ns;
    char name[SNK_NAME_LENGTH_MAX + 1];
} adoption;

static void adoption_done(snk_errand *errand)
{
    adoption *self = SNK_CONTAINER(errand, adoption, errand);
    snk_quorum_node *node = errand->node;
    snk_quorum_store *store = node->store;
    bool uncertain = false;
    sneck_error error;
    bool done = snk_node_result(&errand->call, node->where, &uncertain, &error) == SNECK_OK;
    /* From now on the release must look there too. If that is past, nobody knows whether it came before this. */
    bool holds = (done || uncertain) &&
                 snk_quorum_claims_touch(&store->claims, &self->claim, self->attempt, node->index, uncertain);
    if ((done || uncertain) && !holds) {
        snk_release_terms terms = { .name = self->name,
                                    .claim = self->claim,
                                    .attempt = self->attempt,
                                    .lease_ns = self->lease_ns,
                                    .unanswered = uncertain,
                                    .kind = "",
                                    .reason = "" };
        snk_undo_start(store, node->index, &terms);
    }
    snk_redis_call_deinit(&errand->call);
    free(self);
    snk_quorum_work_ended(store);
}

static sneck_status format_adoption(const snk_operation *operation, const snk_quorum_claim *known, snk_redis_call *call)
{
    const snk_quorum_store *store = operation->store;
    snk_quorum_fields fields = {
        .claim = operation->send.claim, .attempt = operation->attempt, .thread = known->thread, .why = known->why
    };
    snk_quorum_texts texts;
    snk_keys keys;
    snk_node_words words;
    char lease[SNK_NUMBER_SIZE];
    sneck_status status = snk_keys_make(&keys, store->prefix, operation->name, NULL);
    if (status != SNECK_OK)
        return status;
    snk_quorum_texts_make(store, &fields, known->token, &texts);
    (void)snk_text_number(lease, snk_quorum_ms(operation->send.lease_ns));
    snk_node_words_begin(&words, SNK_NODE_ADOPT, 3);
    snk_node_words_add_key(&words, &keys, SNK_KEY_LOCK);
    snk_node_words_add_key(&words, &keys, SNK_KEY_TOKEN);
    snk_node_words_add_key(&words, &keys, SNK_KEY_GONE);
    snk_node_words_add(&words, texts.claim);
    snk_node_words_add(&words, lease);
    snk_node_words_add(&words, texts.token);
    snk_node_words_add(&words, operation->kind == SNK_OPERATION_RENEWAL ? "1" : "0");
    snk_quorum_texts_add(store, &texts, &words);
    return snk_node_words_format(&words, call, NULL);
}

static void adopt(const snk_operation *operation, uint32_t number, const snk_quorum_claim *known)
{
    snk_quorum_store *store = operation->store;
    adoption *self = calloc(1, sizeof *self);
    if (self == NULL)
        return; /* the next renewal finds the same */
    self->claim = operation->send.claim;
    self->attempt = operation->attempt;
    self->lease_ns = operation->send.lease_ns;
    (void)snk_copy_text(self->name, sizeof self->name, operation->name);
    snk_errand_init(&self->errand, &store->nodes[number], SNK_NODE_ADOPT, adoption_done);
    self->errand.call.timeout_ns = operation->timeout_ns;
    if (format_adoption(operation, known, &self->errand.call) != SNECK_OK) {
        snk_redis_call_deinit(&self->errand.call);
        free(self);
        return;
    }
    (void)atomic_fetch_add_explicit(&store->at_work, 1, memory_order_relaxed);
    snk_errand *errand = &self->errand;
    snk_errands_submit(&errand, 1);
}

void snk_adopt(const snk_operation *operation, uint32_t nodes)
{
    snk_quorum_claim known;
    if (nodes == 0 || atomic_load_explicit(&operation->store->is_closing, memory_order_relaxed) ||
        !snk_quorum_claims_find(&operation->store->claims, &operation->send.claim, &known) ||
        known.state != SNK_QUORUM_HOLDS || known.held_by != operation->attempt)
        return;
    for (uint32_t i = 0; i < operation->store->quorum.nodes; i++)
        if ((nodes >> i & 1) != 0)
            adopt(operation, i, &known);
}
