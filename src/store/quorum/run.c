#include "store/quorum/run.h"

#include <string.h>

#include "base/error.h"
#include "redis/errors.h"

static const char *const digits[] = { "0", "1", "2", "3", "4" };

static void add(snk_node_words *words, const char *word, size_t length)
{
    words->words[words->count] = word;
    words->lengths[words->count++] = length;
}

void snk_node_words_begin(snk_node_words *words, snk_node_script script, size_t keys)
{
    words->count = 0;
    add(words, "EVALSHA", 7);
    add(words, snk_node_scripts[script].sha, 40);
    add(words, digits[keys], 1);
}

void snk_node_words_add(snk_node_words *words, const char *word)
{
    add(words, word, strlen(word));
}

void snk_node_words_add_key(snk_node_words *words, const snk_keys *keys, snk_key key)
{
    add(words, keys->text[key], keys->length[key]);
}

sneck_status snk_node_words_format(const snk_node_words *words, snk_redis_call *call, sneck_error *error)
{
    return snk_redis_call_format(call, words->count, words->words, words->lengths, error);
}

sneck_status snk_node_script_format(snk_node_script script, snk_redis_call *call, sneck_error *error)
{
    const char *const words[] = { "EVAL", snk_node_scripts[script].text, "0" };
    const size_t lengths[] = { 4, snk_node_scripts[script].length, 1 };
    return snk_redis_call_format(call, 3, words, lengths, error);
}

bool snk_node_needs_script(const snk_redis_call *call)
{
    return call->outcome == SNK_REDIS_REPLY && snk_redis_error_of(call->reply) == SNK_REDIS_NOSCRIPT;
}

sneck_status snk_node_result(const snk_redis_call *call, const char *where, bool *uncertain_out, sneck_error *error)
{
    *uncertain_out = false;
    if (call->outcome == SNK_REDIS_REPLY) {
        sneck_status status = snk_redis_error_explain(call->reply, where, error);
        *uncertain_out = status != SNECK_OK && !snk_redis_error_is_harmless(snk_redis_error_of(call->reply));
        return status;
    }
    *uncertain_out = call->outcome == SNK_REDIS_UNCERTAIN;
    return snk_fail_as(error, &call->error);
}

int64_t snk_node_number(const redisReply *reply, size_t index)
{
    if (reply->type == REDIS_REPLY_INTEGER)
        return index == 0 ? reply->integer : 0;
    if (reply->type != REDIS_REPLY_ARRAY || index >= reply->elements)
        return 0;
    return reply->element[index]->type == REDIS_REPLY_INTEGER ? reply->element[index]->integer : 0;
}
