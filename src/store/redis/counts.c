/* Counts and versions. */
#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"
#include "store/redis/crowd.h"

static const char *verb_word(snk_tally_verb verb)
{
    static const char *const words[] = {
        [SNK_TALLY_READ] = "read", [SNK_TALLY_SET] = "set",   [SNK_TALLY_SET_IF_ZERO] = "set_if_zero",
        [SNK_TALLY_ADD] = "add",   [SNK_TALLY_DOWN] = "down", [SNK_TALLY_SIGNAL] = "signal",
    };
    return words[verb];
}

/* What running such a script means to the store. */
typedef struct script_effect {
    bool changes; /* if it was not answered, it may have changed something */
    bool commits; /* what it changed counts only when replicas have it too, where the store asks for that */
} script_effect;

/* It is done on the master, and cannot be taken back exactly: others may have gone on from there. */
static sneck_status judge_replicas(const snk_redis_store *store, const snk_redis_call *call, sneck_error *error)
{
    const snk_commitment *commitment = call->commitment;
    if (commitment == NULL || snk_reply_number(call->reply, 0) != SNK_REPLY_DONE ||
        commitment->acknowledged >= commitment->needed)
        return SNECK_OK;
    return snk_fail(error, SNECK_UNKNOWN, 0,
                    "%s: it is done, but %u of the %u replicas that are needed have it: a failover may forget it",
                    store->where, commitment->acknowledged, commitment->needed);
}

/* Runs a script that answers with numbers. */
static sneck_status run_script(snk_redis_store *store, const snk_run *run, script_effect effect, snk_redis_call *call,
                               sneck_error *error)
{
    bool uncertain = false;
    snk_commitment commitment = store->options.commitment;
    call->commitment = effect.commits && store->options.commits ? &commitment : NULL;
    sneck_status status = snk_run_one(store, run, call, &uncertain, error);
    if (status == SNECK_OK && snk_reply_number(call->reply, 0) == 0) {
        status = snk_fail(error, SNECK_UNKNOWN, 0, "%s: the answer to a script makes no sense", store->where);
        uncertain = true;
    }
    if (status == SNECK_OK)
        status = judge_replicas(store, call, error);
    call->commitment = NULL;
    if (status == SNECK_OK || !uncertain)
        return status;
    status = effect.changes ? SNECK_UNKNOWN : SNECK_UNAVAILABLE;
    if (error != NULL)
        error->status = status;
    return status;
}

sneck_status snk_redis_store_tally(snk_store *base, const snk_tally *tally, snk_tallied *tallied_out,
                                   sneck_error *error)
{
    snk_redis_store *store = snk_redis_store_of(base);
    snk_keys keys;
    sneck_status status = snk_keys_make_for(&keys, tally->object, store->prefix, tally->name, error);
    if (status != SNECK_OK)
        return status;
    char value[SNK_NUMBER_SIZE];
    char id[SNK_ID_TEXT_SIZE];
    (void)snprintf(value, sizeof value, "%" PRId64, tally->value);
    snk_id_to_hex(&tally->id, id);
    snk_run run = {
        .script = SNK_SCRIPT_TALLY,
        .keys = &keys,
        .count = 5,
        .arguments = { verb_word(tally->verb), value, id, snk_object_word(tally->object),
                       snk_text_flag(store->options.history) },
    };
    snk_redis_call call;
    snk_redis_call_init(&call);
    /* Who was signalled looks for itself: there is nothing that must not be forgotten. */
    script_effect effect = { .changes = tally->verb != SNK_TALLY_READ,
                             .commits = tally->verb != SNK_TALLY_READ && tally->verb != SNK_TALLY_SIGNAL };
    status = run_script(store, &run, effect, &call, error);
    if (status == SNECK_OK)
        *tallied_out = (snk_tallied){
            .count = snk_reply_number(call.reply, 1),
            .used = snk_reply_number(call.reply, 2),
            .done = snk_reply_number(call.reply, 3) != 0,
        };
    snk_redis_call_deinit(&call);
    return status == SNECK_OK ? snk_ok(error) : status;
}

sneck_status snk_redis_store_version(snk_store *base, const char *name, const uint64_t *expected, uint64_t *version_out,
                                     sneck_error *error)
{
    snk_redis_store *store = snk_redis_store_of(base);
    snk_keys keys;
    sneck_status status = snk_keys_make(&keys, store->prefix, name, error);
    if (status != SNECK_OK)
        return status;
    char text[SNK_NUMBER_SIZE] = "";
    if (expected != NULL)
        (void)snprintf(text, sizeof text, "%" PRIu64, *expected);
    snk_run run = { .script = SNK_SCRIPT_VERSION, .keys = &keys, .count = 1, .arguments = { text } };
    snk_redis_call call;
    snk_redis_call_init(&call);
    bool moved = false;
    script_effect effect = { .changes = expected != NULL, .commits = expected != NULL };
    status = run_script(store, &run, effect, &call, error);
    if (status == SNECK_OK) {
        *version_out = (uint64_t)snk_reply_number(call.reply, 1);
        moved = snk_reply_number(call.reply, 0) != SNK_REPLY_DONE;
    }
    snk_redis_call_deinit(&call);
    if (status != SNECK_OK)
        return status;
    if (moved)
        return snk_fail(error, SNECK_CONFLICT, 0, "the version of %.120s is %" PRIu64 ", not %s", name, *version_out,
                        text);
    return snk_ok(error);
}
