/* Running scripts on the server. */
#ifndef SNK_STORE_REDIS_RUN_H
#define SNK_STORE_REDIS_RUN_H

#include "store/redis/redis.h"

/* What the scripts answer first. */
typedef enum snk_reply_kind {
    SNK_REPLY_HELD = 1,
    SNK_REPLY_QUEUED = 2,
    SNK_REPLY_BUSY = 3,
    SNK_REPLY_GONE = 4,
    SNK_REPLY_DONE = 5,
    SNK_REPLY_ONE_BY_ONE = 6
} snk_reply_kind;

/* A number of a reply, 0 when it is not there: the short answers leave zeros out. */
int64_t snk_reply_number(const redisReply *reply, size_t index);

#define SNK_RUN_ARGUMENTS_MAX 13

/* One script to run, with the keys of a lock. Borrowed until it is formatted. */
typedef struct snk_run {
    snk_script_kind script;
    const snk_keys *keys;
    size_t count;
    const char *arguments[SNK_RUN_ARGUMENTS_MAX];
} snk_run;

/* Formats the call as EVALSHA, or, with the text of the script, as EVAL. */
sneck_status snk_run_format(const snk_redis_store *store, const snk_run *run, bool with_text, snk_redis_call *call,
                            sneck_error *error);

/* True when the server answered that it does not know the script: it did not run, and may be sent again with its text. */
bool snk_run_needs_text(const snk_redis_call *call);

/*
 * Runs one script and waits for its answer; `call` was initialised and is deinitialised by the caller. SNECK_OK: the
 * reply is in it and is no error. Else `*uncertain_out` (may be NULL) says whether it may have run.
 */
sneck_status snk_run_one(snk_redis_store *store, const snk_run *run, snk_redis_call *call, bool *uncertain_out,
                         sneck_error *error);

/* What came of a call: SNECK_OK with a reply that is no error; else as above. */
sneck_status snk_run_result(const snk_redis_store *store, const snk_redis_call *call, bool *uncertain_out,
                            sneck_error *error);

#endif
