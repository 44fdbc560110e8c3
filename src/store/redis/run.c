#include "store/redis/run.h"

#include <string.h>

#include "base/error.h"
#include "redis/errors.h"

#define ARGUMENTS_MAX (4 + SNK_KEYS + SNK_RUN_ARGUMENTS_MAX)

int64_t snk_reply_number(const redisReply *reply, size_t index)
{
    if (reply->type != REDIS_REPLY_ARRAY || index >= reply->elements)
        return 0;
    return reply->element[index]->type == REDIS_REPLY_INTEGER ? reply->element[index]->integer : 0;
}

sneck_status snk_run_format(const snk_redis_store *store, const snk_run *run, bool with_text, snk_redis_call *call,
                            sneck_error *error)
{
    const snk_script *script = &snk_scripts[store->options.layout][run->script];
    const char *arguments[ARGUMENTS_MAX];
    size_t lengths[ARGUMENTS_MAX];
    size_t count = 0;
    char shard[SNK_SHARD_SIZE];
    call->slot = snk_channel_slot(store, run->keys);
    snk_channel_shard(store, call->slot, shard);
    arguments[count] = with_text ? "EVAL" : "EVALSHA";
    lengths[count++] = with_text ? 4 : 7;
    arguments[count] = with_text ? script->text : script->sha;
    lengths[count++] = with_text ? script->length : 40;
    _Static_assert(SNK_KEYS == 7, "the number of keys is written out below");
    bool is_keep = run->script == SNK_SCRIPT_KEEP;
    arguments[count] = is_keep ? "1" : "7";
    lengths[count++] = 1;
    for (size_t i = 0; i < (is_keep ? 1 : SNK_KEYS); i++) {
        arguments[count] = run->keys->text[i];
        lengths[count++] = run->keys->length[i];
    }
    for (size_t i = 0; i < run->count; i++) {
        arguments[count] = run->arguments[i];
        lengths[count++] = strlen(run->arguments[i]);
    }
    arguments[count] = shard;
    lengths[count++] = strlen(shard);
    return snk_redis_call_format(call, count, arguments, lengths, error);
}

bool snk_run_needs_text(const snk_redis_call *call)
{
    return call->outcome == SNK_REDIS_REPLY && snk_redis_error_of(call->reply) == SNK_REDIS_NOSCRIPT;
}

sneck_status snk_run_result(const snk_redis_store *store, const snk_redis_call *call, bool *uncertain_out,
                            sneck_error *error)
{
    bool uncertain = false;
    sneck_status status = SNECK_OK;
    if (call->outcome == SNK_REDIS_REPLY) {
        status = snk_redis_error_explain(call->reply, store->where, error);
        uncertain = status != SNECK_OK && !snk_redis_error_is_harmless(snk_redis_error_of(call->reply));
    } else {
        status = snk_fail_as(error, &call->error);
        uncertain = call->outcome == SNK_REDIS_UNCERTAIN;
    }
    if (uncertain_out != NULL)
        *uncertain_out = uncertain;
    return status;
}

sneck_status snk_run_one(snk_redis_store *store, const snk_run *run, snk_redis_call *call, bool *uncertain_out,
                         sneck_error *error)
{
    if (uncertain_out != NULL)
        *uncertain_out = false;
    bool with_text = false;
    do {
        sneck_status status = snk_run_format(store, run, with_text, call, error);
        if (status != SNECK_OK)
            return status;
        snk_redis_call *const calls[] = { call };
        snk_topology_drive(store->topology, calls, 1);
        with_text = !with_text;
    } while (with_text && snk_run_needs_text(call));
    return snk_run_result(store, call, uncertain_out, error);
}
