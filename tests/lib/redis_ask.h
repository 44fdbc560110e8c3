/* Short ways to use src/redis in tests. */
#ifndef SNK_TEST_REDIS_ASK_H
#define SNK_TEST_REDIS_ASK_H

#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "redis/errors.h"
#include "redis/redis.h"

/* Formats the words of `line`, which are separated by single spaces. */
static inline void redis_format(snk_redis_call *call, const char *line)
{
    const char *words[32];
    size_t lengths[32];
    size_t count = 0;
    while (count < 32) {
        words[count] = line;
        lengths[count] = strcspn(line, " ");
        line += lengths[count++];
        if (*line++ == '\0')
            break;
    }
    sneck_error error;
    if (snk_redis_call_format(call, count, words, lengths, &error) != SNECK_OK)
        fail_msg("%s", error.message);
}

/* Sends the words of `line` and waits. The call must be deinitialised. */
static inline snk_redis_outcome redis_ask(snk_redis *redis, snk_redis_call *call, const char *line)
{
    snk_redis_call_init(call);
    redis_format(call, line);
    snk_redis_drive(redis, &(snk_redis_call *){ call }, 1);
    return call->outcome;
}

/* The same for a command that must be answered, and not by an error. */
static inline void redis_do(snk_redis *redis, const char *line)
{
    snk_redis_call call;
    redis_ask(redis, &call, line);
    if (call.outcome != SNK_REDIS_REPLY)
        fail_msg("%s: %s", line, call.error.message);
    if (call.reply->type == REDIS_REPLY_ERROR)
        fail_msg("%s: %s", line, call.reply->str);
    snk_redis_call_deinit(&call);
}

static inline long long redis_integer(snk_redis *redis, const char *line)
{
    snk_redis_call call;
    redis_ask(redis, &call, line);
    if (call.outcome != SNK_REDIS_REPLY)
        fail_msg("%s: %s", line, call.error.message);
    long long value = call.reply->type == REDIS_REPLY_STRING ? strtoll(call.reply->str, NULL, 10) : call.reply->integer;
    snk_redis_call_deinit(&call);
    return value;
}

static inline snk_redis *redis_open(const snk_redis_config *config)
{
    snk_redis *redis = NULL;
    sneck_error error;
    if (snk_redis_open(config, &redis, &error) != SNECK_OK)
        fail_msg("%s", error.message);
    return redis;
}

static inline void sleep_ms(int ms)
{
    nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L }, NULL);
}

/* Waits until `number` is at least `value`; false after ten seconds. */
static inline bool wait_for_number(_Atomic int *number, int value)
{
    for (int i = 0; i < 5000 && *number < value; i++)
        sleep_ms(2);
    return *number >= value;
}

#endif
