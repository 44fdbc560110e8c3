/* The scripts that run on each node, as embed.py makes them of scripts/, and the words that they are given. */
#ifndef SNK_STORE_QUORUM_RUN_H
#define SNK_STORE_QUORUM_RUN_H

#include "redis/redis.h"
#include "store/redis/keys.h"
#include "store/redis/scripts.h"

typedef enum snk_node_script {
    SNK_NODE_VOTE,
    SNK_NODE_RENEW,
    SNK_NODE_RELEASE,
    SNK_NODE_ADOPT,
    SNK_NODE_INSPECT,
    SNK_NODE_HELLO,
    SNK_NODE_SCRIPTS
} snk_node_script;

extern const snk_script snk_node_scripts[SNK_NODE_SCRIPTS];

#define SNK_NODE_WORDS_MAX 32

/* A question in words. They are borrowed until it is formatted. */
typedef struct snk_node_words {
    size_t count;
    const char *words[SNK_NODE_WORDS_MAX];
    size_t lengths[SNK_NODE_WORDS_MAX];
} snk_node_words;

/* Begins a question: the script, and how many keys come first. */
void snk_node_words_begin(snk_node_words *words, snk_node_script script, size_t keys);
void snk_node_words_add(snk_node_words *words, const char *word);
void snk_node_words_add_key(snk_node_words *words, const snk_keys *keys, snk_key key);

sneck_status snk_node_words_format(const snk_node_words *words, snk_redis_call *call, sneck_error *error);

/* A call that makes the script known to a server and does nothing else. */
sneck_status snk_node_script_format(snk_node_script script, snk_redis_call *call, sneck_error *error);

/* Which script that server does not know; SNK_NODE_SCRIPTS: the call has another problem, or none. */
bool snk_node_needs_script(const snk_redis_call *call);

/* What came of a call: SNECK_OK with a reply that is no error; else `*uncertain_out` says whether it may have run. */
sneck_status snk_node_result(const snk_redis_call *call, const char *where, bool *uncertain_out, sneck_error *error);

/* Element `index` of a reply that is an array of numbers; 0 when there is none. */
int64_t snk_node_number(const redisReply *reply, size_t index);

#endif
