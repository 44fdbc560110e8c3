#include "store/quorum/operation.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/futex.h"

/* A node is given a part of the lease at most, so that a silent one does not use up what the others granted. */
#define TIMEOUT_DIVISOR 8
#define TIMEOUT_NS_MIN (25 * SNK_NS_PER_MS)

/* ---- Life ---- */

static int64_t timeout_for(const snk_quorum_store *store, int64_t lease_ns)
{
    int64_t part_ns = lease_ns / TIMEOUT_DIVISOR > TIMEOUT_NS_MIN ? lease_ns / TIMEOUT_DIVISOR : TIMEOUT_NS_MIN;
    return lease_ns > 0 && part_ns < store->options.timeout_ns ? part_ns : store->options.timeout_ns;
}

snk_operation *snk_operation_new(snk_quorum_store *store, snk_operation_kind kind, const char *name,
                                 const snk_send *send)
{
    size_t size = strlen(name) + 1;
    snk_operation *operation = malloc(sizeof *operation + size);
    if (operation == NULL)
        return NULL;
    /* Not the ballot, which is large: whoever needs it initialises it. */
    memset(operation, 0, offsetof(snk_operation, ballot));
    operation->store = store;
    operation->kind = kind;
    operation->send = *send;
    operation->timeout_ns = timeout_for(store, send->lease_ns);
    operation->is_decided = false;
    operation->is_over = false;
    operation->open = 0;
    operation->other_lease_max_ms = 0;
    operation->agree = 0;
    operation->differ = 0;
    operation->awaiter = NULL;
    operation->round_count = 0;
    (void)snk_ok(&operation->trouble);
    memset(operation->says, 0, sizeof operation->says);
    memcpy(operation->name, name, size);
    atomic_init(&operation->references, 1);
    (void)pthread_mutex_init(&operation->mutex, NULL);
    (void)atomic_fetch_add_explicit(&store->at_work, 1, memory_order_relaxed);
    return operation;
}

void snk_operation_unref(snk_operation *operation)
{
    /* Release and acquire: whoever frees it sees what the others did with it. */
    if (atomic_fetch_sub_explicit(&operation->references, 1, memory_order_acq_rel) != 1)
        return;
    snk_quorum_store *store = operation->store;
    for (uint32_t i = 0; i < operation->round_count; i++) {
        for (uint32_t j = 0; j < store->quorum.nodes; j++)
            snk_redis_call_deinit(&operation->rounds[i][j].errand.call);
        free(operation->rounds[i]);
    }
    (void)pthread_mutex_destroy(&operation->mutex);
    free(operation);
    snk_quorum_work_ended(store);
}

/* A denial or a wrong key is worth more to know than that a node is away. */
void snk_operation_trouble_locked(snk_operation *operation, const sneck_error *trouble)
{
    bool known = operation->trouble.status != SNECK_OK || operation->is_over;
    bool away = trouble->status == SNECK_UNAVAILABLE || trouble->status == SNECK_UNKNOWN;
    if (!known || (!away && !operation->is_over &&
                   (operation->trouble.status == SNECK_UNAVAILABLE || operation->trouble.status == SNECK_UNKNOWN)))
        operation->trouble = *trouble;
}

/* ---- Answers ---- */

static void tell(snk_awaiter *awaiter)
{
    /* Release: pairs with the acquire in await. After the last one the awaiter may be gone: waking nobody harms none. */
    if (atomic_fetch_sub_explicit(&awaiter->left, 1, memory_order_release) == 1)
        snk_futex_wake(&awaiter->left, INT_MAX, false);
}

static void await(snk_awaiter *awaiter)
{
    uint32_t left = 0;
    while ((left = atomic_load_explicit(&awaiter->left, memory_order_acquire)) > 0)
        (void)snk_futex_wait_any(&(snk_futex_word){ .word = &awaiter->left, .expected = left }, 1, SNK_NEVER_NS);
}

void snk_operation_await_rest(snk_operation *operation, int64_t until_ns)
{
    uint32_t settled = 0;
    while ((settled = atomic_load_explicit(&operation->settled, memory_order_acquire)) <
           operation->store->quorum.nodes) {
        int64_t left_ns = until_ns - snk_now_ns();
        if (left_ns <= 0)
            return;
        (void)snk_futex_wait_any(&(snk_futex_word){ .word = &operation->settled, .expected = settled }, 1, left_ns);
    }
}

static bool is_question(const snk_operation *operation)
{
    return operation->kind != SNK_OPERATION_BALLOT;
}

static void settle(snk_operation *operation, snk_request *request)
{
    snk_awaiter *awaiter = NULL;
    (void)pthread_mutex_lock(&operation->mutex);
    bool was_over = operation->is_over;
    bool is_last = --operation->open == 0;
    bool decides = is_question(operation) ? snk_question_settle_locked(operation, request)
                                          : snk_try_settle_locked(operation, request);
    if (decides && !operation->is_decided) {
        operation->is_decided = true;
        awaiter = operation->awaiter;
        operation->awaiter = NULL;
    }
    (void)pthread_mutex_unlock(&operation->mutex);
    if (awaiter != NULL)
        tell(awaiter);
    if (operation->kind == SNK_OPERATION_MEET) {
        (void)atomic_fetch_add_explicit(&operation->settled, 1, memory_order_release);
        snk_futex_wake(&operation->settled, INT_MAX, false);
    }
    if (is_question(operation))
        snk_question_settled(operation, request, is_last);
    else
        snk_try_settled(operation, request, was_over);
}

static void request_done(snk_errand *errand)
{
    snk_request *request = SNK_CONTAINER(errand, snk_request, errand);
    snk_operation *operation = request->operation;
    settle(operation, request);
    snk_operation_unref(operation);
}

/* ---- Questions ---- */

sneck_status snk_operation_prepare(snk_operation *operation, const snk_node_words *words, sneck_error *error)
{
    uint32_t nodes = operation->store->quorum.nodes;
    snk_request *requests = calloc(nodes, sizeof *requests);
    if (requests == NULL)
        return snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory for a request");
    operation->rounds[operation->round_count++] = requests;
    sneck_status status = SNECK_OK;
    for (uint32_t i = 0; i < nodes; i++) {
        snk_errand *errand = &requests[i].errand;
        snk_errand_init(errand, &operation->store->nodes[i], operation->script, request_done);
        errand->call.timeout_ns = operation->timeout_ns;
        requests[i].operation = operation;
        requests[i].round = operation->round_count;
        if (status == SNECK_OK)
            status = snk_node_words_format(words, &errand->call, error);
    }
    return status;
}

sneck_status snk_operation_prepare_node(snk_operation *operation, uint32_t node, const snk_node_words *words,
                                        sneck_error *error)
{
    return snk_node_words_format(words, &operation->rounds[operation->round_count - 1][node].errand.call, error);
}

static snk_request *last_request(const snk_operation *operation, uint32_t node)
{
    return &operation->rounds[operation->round_count - 1][node];
}

static void ask_node(snk_quorum_node *node, snk_operation *const operations[], size_t count)
{
    snk_errand *errands[SNK_RENEW_BATCH_MAX];
    for (size_t i = 0; i < count; i++)
        errands[i] = &last_request(operations[i], node->index)->errand;
    snk_errands_submit(errands, count);
}

/*
 * A node that is known to be away is not asked; that is an answer too. But since it was passed over somebody may have
 * reached it: then nothing is the matter with it any more, and there is nothing to say but to ask.
 */
static void skip_node(snk_quorum_node *node, snk_operation *const operations[], size_t count)
{
    sneck_error why;
    (void)pthread_mutex_lock(&node->store->mutex);
    why = node->trouble;
    (void)pthread_mutex_unlock(&node->store->mutex);
    if (why.status == SNECK_OK) {
        ask_node(node, operations, count);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        snk_request *request = last_request(operations[i], node->index);
        request->errand.call.outcome = SNK_REDIS_NOT_SENT;
        request->errand.call.error = why;
        settle(operations[i], request);
        snk_operation_unref(operations[i]);
    }
}

static void begin_round(snk_operation *operation, snk_awaiter *awaiter)
{
    uint32_t nodes = operation->store->quorum.nodes;
    (void)atomic_fetch_add_explicit(&operation->references, nodes, memory_order_relaxed);
    (void)pthread_mutex_lock(&operation->mutex);
    operation->is_decided = false;
    operation->open += nodes;
    operation->awaiter = awaiter;
    (void)pthread_mutex_unlock(&operation->mutex);
}

/* Nodes that are asked; those in `skipped` are not. */
typedef struct audience {
    uint32_t skipped;
    size_t count;
    snk_redis *servers[SNK_QUORUM_NODES_MAX];
} audience;

_Static_assert(SNK_QUORUM_NODES_MAX <= SNK_REDIS_ATTEND_MAX, "one thread can hear all nodes");

static audience choose_nodes(snk_quorum_store *store)
{
    audience asked = { .count = 0 };
    for (uint32_t i = 0; i < store->quorum.nodes; i++) {
        if (snk_quorum_node_is_askable(&store->nodes[i]))
            asked.servers[asked.count++] = store->nodes[i].redis;
        else
            asked.skipped |= UINT32_C(1) << i;
    }
    return asked;
}

/* Who is not needed for the decision may be heard later. */
static void allow_patience(const snk_quorum_store *store, snk_operation *const operations[], size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (uint32_t j = 0; j < store->quorum.nodes; j++)
            last_request(operations[i], j)->errand.call.patient = true;
}

/* Until then the thread that asks hears the nodes itself; what is not answered by then others give up. */
static int64_t heard_until_ns(snk_operation *const operations[], size_t count)
{
    int64_t shortest_ns = operations[0]->timeout_ns;
    for (size_t i = 1; i < count; i++)
        if (operations[i]->timeout_ns < shortest_ns)
            shortest_ns = operations[i]->timeout_ns;
    return snk_time_add(snk_now_ns(), shortest_ns);
}

void snk_operations_ask(snk_quorum_store *store, snk_operation *const operations[], size_t count)
{
    snk_awaiter awaiter = { .left = (uint32_t)count };
    for (size_t i = 0; i < count; i++)
        begin_round(operations[i], &awaiter);
    audience asked = choose_nodes(store);
    int64_t until_ns = heard_until_ns(operations, count);
    bool attends = asked.count > 0 && snk_redis_attend(asked.servers, asked.count);
    if (attends)
        allow_patience(store, operations, count);
    for (uint32_t i = 0; i < store->quorum.nodes; i++)
        if ((asked.skipped >> i & 1) == 0)
            ask_node(&store->nodes[i], operations, count);
    for (uint32_t i = 0; i < store->quorum.nodes; i++)
        if ((asked.skipped >> i & 1) != 0)
            skip_node(&store->nodes[i], operations, count);
    if (attends)
        snk_redis_receive(asked.servers, asked.count, &awaiter.left, until_ns);
    await(&awaiter);
}
