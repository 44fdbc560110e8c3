#include "redis/call.h"

#include <limits.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"

void snk_redis_call_init(snk_redis_call *call)
{
    *call = (snk_redis_call){ .lane = SNK_REDIS_SHARED };
}

void snk_redis_call_reset(snk_redis_call *call)
{
    if (call->reply != NULL)
        freeReplyObject(call->reply);
    call->reply = NULL;
    call->run = 0;
    call->sent_at_ns = 0;
    call->reply_at_ns = 0;
    call->outcome = SNK_REDIS_NOT_SENT;
}

static void drop_command(snk_redis_call *call)
{
    if (call->command != NULL)
        redisFreeCommand(call->command);
    call->command = NULL;
    call->command_length = 0;
}

void snk_redis_call_deinit(snk_redis_call *call)
{
    snk_redis_call_reset(call);
    drop_command(call);
}

/* The bytes of all arguments, or more than the limit. */
static size_t total_length(size_t count, const char *const arguments[], const size_t lengths[])
{
    size_t total = 0;
    for (size_t i = 0; i < count && total <= SNK_REDIS_COMMAND_BYTES_MAX; i++) {
        size_t length = lengths != NULL ? lengths[i] : strlen(arguments[i]);
        if (length > SNK_REDIS_COMMAND_BYTES_MAX)
            return length;
        total += length;
    }
    return total;
}

/* Its result says so too: it is not sent, and who looks at the result alone must not find that of an earlier run. */
static sneck_status refuse(snk_redis_call *call, sneck_error *error, sneck_status status, const char *why)
{
    (void)snk_fail(&call->error, status, 0, "redis: %s", why);
    return snk_fail_as(error, &call->error);
}

sneck_status snk_redis_call_format(snk_redis_call *call, size_t count, const char *const arguments[],
                                   const size_t lengths[], sneck_error *error)
{
    snk_redis_call_reset(call);
    drop_command(call);
    if (count == 0 || count > INT_MAX || total_length(count, arguments, lengths) > SNK_REDIS_COMMAND_BYTES_MAX)
        return refuse(call, error, SNECK_LIMIT, "the command is empty, or too long");
    /* hiredis wants pointers to non-const pointers, and changes nothing behind them. */
    union {
        const char *const *in;
        const char **out;
    } words = { .in = arguments };
    char *command = NULL;
    long long length = redisFormatCommandArgv(&command, (int)count, words.out, lengths);
    if (length < 0)
        return refuse(call, error, SNECK_NO_MEMORY, "no memory for a command");
    call->command = command;
    call->command_length = (size_t)length;
    return snk_ok(error);
}
