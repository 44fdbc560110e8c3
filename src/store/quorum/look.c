/* Looking at locks on all nodes, and breaking holds. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "store/quorum/questions.h"
#include "store/quorum/sight.h"
#include "store/redis/names.h"
#include "store/view.h"

/* ---- One lock ---- */

/* Asks all nodes what they know about a lock; NULL: `error` says why not. */
static snk_operation *look_at(snk_quorum_store *store, const char *name, sneck_error *error)
{
    snk_keys keys;
    snk_node_words words;
    snk_send nothing = { .lease_ns = 0 };
    if (snk_keys_make(&keys, store->prefix, name, error) != SNECK_OK)
        return NULL;
    snk_operation *look = snk_operation_new(store, SNK_OPERATION_LOOK, name, &nothing);
    if (look == NULL) {
        (void)snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory");
        return NULL;
    }
    look->script = SNK_NODE_INSPECT;
    snk_node_words_begin(&words, SNK_NODE_INSPECT, 3);
    snk_node_words_add_key(&words, &keys, SNK_KEY_LOCK);
    snk_node_words_add_key(&words, &keys, SNK_KEY_TOKEN);
    snk_node_words_add_key(&words, &keys, SNK_KEY_LOG);
    if (snk_operation_prepare(look, &words, error) != SNECK_OK) {
        snk_operation_unref(look);
        return NULL;
    }
    snk_operations_ask(store, &look, 1);
    return look;
}

/* What the nodes said, if so many of them did that it counts. */
static sneck_status see(snk_quorum_store *store, snk_operation *look, snk_sight *sight, sneck_error *error)
{
    snk_sight_make(store, look, sight);
    if (sight->answered >= snk_quorum_majority(&store->quorum))
        return SNECK_OK;
    const sneck_error *trouble = &look->trouble;
    bool away = trouble->status == SNECK_UNKNOWN || trouble->status == SNECK_OK;
    return snk_fail(error, away ? SNECK_UNAVAILABLE : trouble->status, trouble->cause,
                    "only %u of %u nodes answered, and a majority is needed: %.150s", sight->answered,
                    store->quorum.nodes, trouble->message);
}

sneck_status snk_quorum_inspect(snk_store *base, const char *name, snk_view *view, sneck_error *error)
{
    snk_quorum_store *store = snk_quorum_store_of(base);
    snk_view_reset(view);
    snk_view_name(view, name);
    snk_operation *look = look_at(store, name, error);
    if (look == NULL)
        return error == NULL ? SNECK_INVALID : error->status;
    snk_sight sight;
    sneck_status status = see(store, look, &sight, error);
    if (status == SNECK_OK)
        snk_sight_show(store, look, &sight, view);
    snk_operation_unref(look);
    if (status == SNECK_OK && view->out_of_memory)
        return snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory");
    return status == SNECK_OK ? snk_ok(error) : status;
}

/* ---- Breaking ---- */

/* Only the claim that was looked at, whatever has happened since. */
static sneck_status break_claim(snk_quorum_store *store, const char *name, const snk_sight *sight, const char *reason,
                                sneck_error *error)
{
    char text[SNK_WHY_LENGTH_MAX + SNK_HOST_LENGTH_MAX + 48];
    (void)snprintf(text, sizeof text, "%.200s (by pid %s on %s)", reason, store->pid, store->host);
    snk_release_terms terms = {
        .name = name,
        .claim = sight->claim,
        .attempt = SNK_ALL_ATTEMPTS,
        .lease_ns = store->quorum.lease_max_ns,
        .announce = true,
        .kind = "broken",
        .reason = text,
    };
    snk_operation *operation = snk_question_release_begin(store, &terms, sight->holders | sight->silent, 0, error);
    if (operation == NULL)
        return error == NULL ? SNECK_NO_MEMORY : error->status;
    snk_operations_ask(store, &operation, 1);
    snk_quorum_says says = snk_question_release_end(operation, error);
    snk_operation_unref(operation);
    switch (says) {
    case SNK_QUORUM_YES:
        return snk_ok(error);
    case SNK_QUORUM_NO:
        return snk_fail(error, SNECK_CONFLICT, 0, "%.120s was released in the very moment", name);
    case SNK_QUORUM_OPEN:
    case SNK_QUORUM_FAILED:
        return error == NULL ? SNECK_UNAVAILABLE : error->status;
    case SNK_QUORUM_UNCERTAIN:
        break;
    }
    return SNECK_UNKNOWN;
}

sneck_status snk_quorum_break(snk_store *base, const char *name, uint64_t token, const char *reason, sneck_error *error)
{
    snk_quorum_store *store = snk_quorum_store_of(base);
    sneck_error own;
    if (error == NULL)
        error = &own;
    snk_operation *look = look_at(store, name, error);
    if (look == NULL)
        return error->status;
    snk_sight sight;
    sneck_status status = see(store, look, &sight, error);
    snk_operation_unref(look);
    if (status != SNECK_OK)
        return status;
    if (!sight.held || sight.token != token || snk_id_is_none(&sight.claim))
        return snk_fail(error, SNECK_CONFLICT, 0, "%.120s is not held with token %" PRIu64, name, token);
    return break_claim(store, name, &sight, reason, error);
}

/* ---- All locks ---- */

/* One page of keys of a node; the cursor moves on, and is "0" after the last. */
static sneck_status scan_page(snk_quorum_node *node, const char *pattern, char cursor[24], snk_names *found,
                              sneck_error *error)
{
    const snk_quorum_store *store = node->store;
    char scan_pattern[SNK_NAMES_PATTERN_SIZE];
    snk_names_pattern(store->prefix, scan_pattern);
    const char *const words[] = { "SCAN", cursor, "MATCH", scan_pattern, "COUNT", "1000" };
    snk_redis_call call;
    snk_redis_call *const calls[] = { &call };
    bool uncertain = false;
    snk_redis_call_init(&call);
    sneck_status status = snk_redis_call_format(&call, 6, words, NULL, error);
    if (status == SNECK_OK) {
        snk_redis_drive(node->redis, calls, 1);
        status = snk_node_result(&call, node->where, &uncertain, error);
    }
    const redisReply *reply = call.reply;
    bool sound = status == SNECK_OK && reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
                 reply->element[0]->type == REDIS_REPLY_STRING && reply->element[1]->type == REDIS_REPLY_ARRAY;
    if (status == SNECK_OK && !sound)
        status = snk_fail(error, SNECK_UNAVAILABLE, 0, "%s: the answer to SCAN makes no sense", node->where);
    if (status == SNECK_OK && !snk_names_add_page(found, reply->element[1], store->prefix, pattern))
        status = snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory, or more than %d locks", SNK_NAMES_MAX);
    if (status == SNECK_OK)
        (void)snk_copy_text(cursor, 24, reply->element[0]->str);
    snk_redis_call_deinit(&call);
    return status;
}

static sneck_status scan_node(snk_quorum_node *node, const char *pattern, snk_names *found, sneck_error *error)
{
    char cursor[24] = "0";
    sneck_status status = SNECK_OK;
    do {
        status = scan_page(node, pattern, cursor, found, error);
    } while (status == SNECK_OK && strcmp(cursor, "0") != 0);
    return status;
}

/* A lock that is held is known to a majority, and so to one of any majority that is asked. */
static sneck_status scan_all(snk_quorum_store *store, const char *pattern, snk_names *found, sneck_error *error)
{
    uint32_t scanned = 0;
    sneck_error trouble = { .status = SNECK_OK };
    for (uint32_t i = 0; i < store->quorum.nodes; i++) {
        sneck_status status = scan_node(&store->nodes[i], pattern, found, &trouble);
        if (status == SNECK_NO_MEMORY)
            return snk_fail_as(error, &trouble);
        scanned += status == SNECK_OK;
    }
    if (scanned >= snk_quorum_majority(&store->quorum))
        return SNECK_OK;
    bool away = trouble.status == SNECK_UNKNOWN;
    return snk_fail(error, away ? SNECK_UNAVAILABLE : trouble.status, trouble.cause,
                    "only %u of %u nodes answered, and a majority is needed: %.150s", scanned, store->quorum.nodes,
                    trouble.message);
}

sneck_status snk_quorum_list(snk_store *base, const char *pattern, snk_view_fn callback, void *context,
                             sneck_error *error)
{
    snk_quorum_store *store = snk_quorum_store_of(base);
    snk_names found = { .count = 0 };
    sneck_error own;
    if (error == NULL)
        error = &own;
    snk_view *view = snk_view_new();
    if (view == NULL)
        return snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory");
    sneck_status status = scan_all(store, pattern, &found, error);
    snk_names_sort(&found);
    for (size_t i = 0; i < found.count && status == SNECK_OK; i++) {
        status = snk_quorum_inspect(base, found.list[i], view, error);
        if (status == SNECK_CONFLICT || status == SNECK_INVALID)
            status = SNECK_OK; /* something else than a lock */
        else if (status == SNECK_OK && view->info.held && !callback(context, view))
            break;
    }
    snk_names_deinit(&found);
    snk_view_free(view);
    return status == SNECK_OK ? snk_ok(error) : status;
}
