#include "store/quorum/questions.h"

#include "base/clock.h"
#include "base/error.h"
#include "store/quorum/adopt.h"
#include "store/quorum/fields.h"

/* ---- Answers of nodes ---- */

/* All of them but a look, which wants to see everything. */
static bool is_decided_locked(const snk_operation *operation)
{
    const snk_quorum *quorum = &operation->store->quorum;
    uint32_t count = 0;
    switch (operation->kind) {
    case SNK_OPERATION_RENEWAL:
        return snk_quorum_renewal(quorum, operation->says) != SNK_QUORUM_OPEN;
    case SNK_OPERATION_RELEASE:
        return snk_quorum_release(quorum, operation->says) != SNK_QUORUM_OPEN;
    case SNK_OPERATION_HELLO:
        for (uint32_t i = 0; i < quorum->nodes; i++)
            count += operation->says[i] == SNK_NODE_YES;
        return count >= snk_quorum_majority(quorum) || operation->open == 0;
    case SNK_OPERATION_MEET:
        if ((uint32_t)__builtin_popcount(operation->agree) >= snk_quorum_majority(quorum) ||
            (uint32_t)__builtin_popcount(operation->differ) >= snk_quorum_blocking(quorum))
            return true;
        break;
    case SNK_OPERATION_LOOK:
    case SNK_OPERATION_BALLOT:
        break;
    }
    return operation->open == 0;
}

/* The node has told its clock, and for how long it has been in use. */
static void read_hello_locked(snk_operation *operation, const snk_redis_call *call, snk_quorum_node *node)
{
    snk_quorum_store *store = operation->store;
    int64_t time_us = snk_node_number(call->reply, 0);
    int64_t lease_max_ms = snk_node_number(call->reply, 1);
    int64_t used_ns = (time_us / 1000 - snk_node_number(call->reply, 2)) * SNK_NS_PER_MS;
    int64_t wait_ns = 0;
    snk_quorum_node_heard(node, call, time_us);
    (void)snk_quorum_node_counts(node, call, &wait_ns);
    if (lease_max_ms == 0)
        return; /* nobody has used it yet */
    bool agrees = snk_quorum_node_agrees(node, lease_max_ms);
    operation->agree |= (uint32_t)agrees << node->index;
    operation->differ |= (uint32_t)!agrees << node->index;
    if (!agrees && !operation->is_over)
        operation->other_lease_max_ms = lease_max_ms;
    if (used_ns < store->quorum.lease_max_ns + SNK_QUORUM_YOUNG_NS)
        snk_quorum_node_is_young(node, store->quorum.lease_max_ns + SNK_QUORUM_YOUNG_NS - used_ns);
}

bool snk_question_settle_locked(snk_operation *operation, snk_request *request)
{
    snk_quorum_node *node = request->errand.node;
    const snk_redis_call *call = &request->errand.call;
    bool uncertain = false;
    sneck_error error;
    snk_node_says says = SNK_NODE_YES;
    if (snk_node_result(call, node->where, &uncertain, &error) != SNECK_OK) {
        says = uncertain ? SNK_NODE_SILENT : SNK_NODE_FAILED;
        snk_operation_trouble_locked(operation, &error);
    } else if (operation->kind == SNK_OPERATION_HELLO || operation->kind == SNK_OPERATION_MEET) {
        read_hello_locked(operation, call, node);
    } else if (operation->kind == SNK_OPERATION_LOOK) {
        int64_t wait_ns = 0;
        snk_quorum_node_heard(node, call, snk_node_number(call->reply, 0));
        (void)snk_quorum_node_counts(node, call, &wait_ns);
    } else {
        says = snk_node_number(call->reply, 0) == 1 ? SNK_NODE_YES : SNK_NODE_NO;
    }
    request->says = says;
    operation->says[node->index] = says;
    return is_decided_locked(operation);
}

/* ---- Renewals ---- */

snk_operation *snk_question_renew_begin(snk_quorum_store *store, const snk_claim *claim, const snk_quorum_claim *known,
                                        snk_answer *answer)
{
    snk_keys keys;
    snk_node_words words;
    char text[SNK_ATTEMPT_TEXT_SIZE];
    char lease[SNK_NUMBER_SIZE];
    char levels[SNK_NUMBER_SIZE];
    if (snk_keys_make(&keys, store->prefix, claim->name, &answer->error) != SNECK_OK)
        return NULL;
    snk_operation *operation = snk_operation_new(store, SNK_OPERATION_RENEWAL, claim->name, &claim->send);
    if (operation == NULL) {
        (void)snk_fail(&answer->error, SNECK_NO_MEMORY, 0, "out of memory for a request");
        return NULL;
    }
    operation->script = SNK_NODE_RENEW;
    operation->attempt = known->held_by;
    snk_attempt_text(&claim->send.claim, known->held_by, text);
    (void)snk_text_number(lease, snk_quorum_ms(claim->send.lease_ns));
    (void)snk_text_number(levels, claim->send.levels);
    snk_node_words_begin(&words, SNK_NODE_RENEW, 1);
    snk_node_words_add_key(&words, &keys, SNK_KEY_LOCK);
    snk_node_words_add(&words, text);
    snk_node_words_add(&words, lease);
    snk_node_words_add(&words, levels);
    if (snk_operation_prepare(operation, &words, &answer->error) == SNECK_OK)
        return operation;
    snk_operation_unref(operation);
    return NULL;
}

static snk_release_terms terms_of(const snk_operation *operation, uint32_t attempt)
{
    return (snk_release_terms){
        .name = operation->name,
        .claim = operation->send.claim,
        .attempt = attempt,
        .lease_ns = operation->send.lease_ns,
        .kind = "",
        .reason = "",
    };
}

/* No majority has it, so it is nobody's any more; the votes that it still has are in the way of others. */
static void forget(snk_operation *operation, const snk_node_says says[])
{
    snk_quorum_claim known;
    if (!snk_quorum_claims_remove(&operation->store->claims, &operation->send.claim, operation->name, &known))
        return; /* given up meanwhile: it is being released */
    uint32_t left = 0;
    for (uint32_t i = 0; i < SNK_QUORUM_NODES_MAX && i < operation->store->quorum.nodes; i++)
        left |= (uint32_t)(says[i] != SNK_NODE_NO) << i;
    snk_release_terms terms = terms_of(operation, operation->attempt);
    snk_undo_start_all(operation->store, left, known.unanswered, &terms);
}

static void explain_locked(const snk_operation *operation, snk_quorum_says says, sneck_error *error)
{
    const sneck_error *trouble = &operation->trouble;
    sneck_status status = says == SNK_QUORUM_UNCERTAIN ? SNECK_UNKNOWN : SNECK_UNAVAILABLE;
    if (says == SNK_QUORUM_FAILED && trouble->status != SNECK_OK && trouble->status != SNECK_UNKNOWN)
        status = trouble->status;
    (void)snk_fail(error, status, trouble->cause, "too few of the %u nodes answered%s%.150s",
                   operation->store->quorum.nodes, trouble->status == SNECK_OK ? "" : ": ",
                   trouble->status == SNECK_OK ? "" : trouble->message);
}

void snk_question_renew_end(snk_operation *operation, const snk_quorum_claim *known, snk_answer *answer)
{
    snk_node_says says[SNK_QUORUM_NODES_MAX] = { 0 };
    (void)pthread_mutex_lock(&operation->mutex);
    for (uint32_t i = 0; i < operation->store->quorum.nodes; i++)
        says[i] = operation->says[i];
    snk_quorum_says result = snk_quorum_renewal(&operation->store->quorum, says);
    explain_locked(operation, result, &answer->error);
    operation->is_over = true;
    (void)pthread_mutex_unlock(&operation->mutex);
    switch (result) {
    case SNK_QUORUM_YES:
        answer->kind = SNK_ANSWER_HELD;
        answer->token_first = known->token;
        answer->token_last = known->token;
        break;
    case SNK_QUORUM_NO:
        answer->kind = SNK_ANSWER_GONE;
        forget(operation, says);
        break;
    case SNK_QUORUM_OPEN:
    case SNK_QUORUM_FAILED:
        answer->kind = SNK_ANSWER_FAILED;
        break;
    case SNK_QUORUM_UNCERTAIN:
        answer->kind = SNK_ANSWER_UNCERTAIN;
        break;
    }
}

/* ---- Spreading ---- */

/* All nodes have answered a renewal: those that do not have the claim get it, if it is a hold yet. */
static void spread(snk_operation *operation)
{
    (void)pthread_mutex_lock(&operation->mutex);
    uint32_t adopters = snk_quorum_adopters(&operation->store->quorum, operation->says);
    (void)pthread_mutex_unlock(&operation->mutex);
    snk_adopt(operation, adopters);
}

/* ---- Releases ---- */

snk_operation *snk_question_release_begin(snk_quorum_store *store, const snk_release_terms *terms, uint32_t touched,
                                          uint32_t unanswered, sneck_error *error)
{
    snk_release_texts texts;
    snk_node_words words;
    snk_send send = { .ask = SNK_ASK_RELEASE, .claim = terms->claim, .lease_ns = terms->lease_ns };
    sneck_status status = snk_release_words(store, terms, &texts, &words, error);
    if (status != SNECK_OK)
        return NULL;
    snk_operation *operation = snk_operation_new(store, SNK_OPERATION_RELEASE, terms->name, &send);
    if (operation == NULL) {
        (void)snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory for a request");
        return NULL;
    }
    operation->script = SNK_NODE_RELEASE;
    operation->attempt = terms->attempt;
    operation->touched = touched;
    operation->unanswered = terms->unanswered ? UINT32_MAX : unanswered;
    status = snk_operation_prepare(operation, &words, error);
    snk_release_terms bury = *terms;
    bury.unanswered = true;
    if (status == SNECK_OK && unanswered != 0 && !terms->unanswered)
        status = snk_release_words(store, &bury, &texts, &words, error);
    for (uint32_t i = 0; i < store->quorum.nodes && status == SNECK_OK && !terms->unanswered; i++)
        if ((unanswered >> i & 1) != 0)
            status = snk_operation_prepare_node(operation, i, &words, error);
    if (status == SNECK_OK)
        return operation;
    snk_operation_unref(operation);
    return NULL;
}

snk_quorum_says snk_question_release_end(snk_operation *operation, sneck_error *error)
{
    (void)pthread_mutex_lock(&operation->mutex);
    snk_quorum_says result = snk_quorum_release(&operation->store->quorum, operation->says);
    if (result == SNK_QUORUM_FAILED || result == SNK_QUORUM_UNCERTAIN)
        explain_locked(operation, result, error);
    operation->is_over = true;
    (void)pthread_mutex_unlock(&operation->mutex);
    return result;
}

/* A node that did not answer a release, or refused it, is told again, whoever has heard what meanwhile. */
static void tell_again(snk_operation *operation, const snk_request *request)
{
    uint32_t node = request->errand.node->index;
    bool unanswered = (operation->unanswered >> node & 1) != 0;
    if ((operation->touched >> node & 1) == 0 && !unanswered)
        return; /* it never had it */
    snk_release_terms terms = terms_of(operation, operation->attempt);
    terms.unanswered = unanswered;
    snk_undo_start(operation->store, node, &terms);
}

void snk_question_settled(snk_operation *operation, const snk_request *request, bool is_last)
{
    bool answered = request->errand.call.outcome == SNK_REDIS_REPLY;
    if (operation->kind == SNK_OPERATION_RELEASE && !snk_quorum_release_is_heard(request->says, answered))
        tell_again(operation, request);
    if (operation->kind == SNK_OPERATION_RENEWAL && is_last)
        spread(operation);
}
