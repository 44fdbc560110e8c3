#include "redis/greet.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "redis/errors.h"

#define STEPS_MAX 4
#define RECEIVE_SIZE 4096

typedef struct greet_step {
    const char *words[3];
    size_t count;
    bool needed; /* an error here is the end */
    bool tells;  /* its reply is INFO */
} greet_step;

static size_t plan(const snk_redis_settings *settings, const char *database, greet_step steps[STEPS_MAX])
{
    size_t count = 0;
    if (settings->password[0] != '\0' && settings->user[0] != '\0')
        steps[count++] = (greet_step){ { "AUTH", settings->user, settings->password }, 3, true, false };
    else if (settings->password[0] != '\0')
        steps[count++] = (greet_step){ { "AUTH", settings->password }, 2, true, false };
    if (settings->database != 0)
        steps[count++] = (greet_step){ { "SELECT", database }, 2, true, false };
    if (settings->client_name[0] != '\0')
        steps[count++] = (greet_step){ { "CLIENT", "SETNAME", settings->client_name }, 3, false, false };
    steps[count++] = (greet_step){ { "INFO", "server" }, 2, false, true };
    return count;
}

static sneck_status send_all(const snk_redis_greeter *peer, const char *data, size_t length, sneck_error *error)
{
    while (length > 0) {
        ssize_t count = snk_redis_wire_send(peer->wire, data, length, error);
        if (count < 0)
            return SNECK_UNAVAILABLE;
        if (count == 0 && !snk_redis_poll(peer->wire->fd, POLLOUT, peer->stop_fd, peer->until_ns))
            return snk_fail(error, SNECK_UNAVAILABLE, ETIMEDOUT, "%s: the server does not read", peer->settings->where);
        data += count;
        length -= (size_t)count;
    }
    return SNECK_OK;
}

static sneck_status send_steps(const snk_redis_greeter *peer, const greet_step steps[], size_t count,
                               sneck_error *error)
{
    sneck_status status = SNECK_OK;
    for (size_t i = 0; i < count && status == SNECK_OK; i++) {
        snk_redis_call call;
        snk_redis_call_init(&call);
        status = snk_redis_call_format(&call, steps[i].count, steps[i].words, NULL, error);
        if (status == SNECK_OK)
            status = send_all(peer, call.command, call.command_length, error);
        if (call.command != NULL)
            explicit_bzero(call.command, call.command_length); /* a password may be in it */
        snk_redis_call_deinit(&call);
    }
    return status;
}

/* The text after "key:" in the reply of INFO, or NULL. */
static const char *info_value(const char *info, const char *key)
{
    const char *found = strstr(info, key);
    return found != NULL ? found + strlen(key) : NULL;
}

static void read_info(const redisReply *reply, snk_redis_greeting *greeting)
{
    if (reply->type != REDIS_REPLY_STRING)
        return;
    const char *run = info_value(reply->str, "\nrun_id:");
    if (run != NULL) {
        char digits[17];
        snk_copy_text(digits, sizeof digits, run);
        greeting->run = strtoull(digits, NULL, 16);
    }
    const char *uptime = info_value(reply->str, "\nuptime_in_seconds:");
    greeting->started_at_ns = snk_now_ns() - (uptime != NULL ? strtoll(uptime, NULL, 10) * SNK_NS_PER_S : 0);
    const char *version = info_value(reply->str, "redis_version:");
    unsigned major;
    unsigned minor;
    unsigned patch;
    if (version == NULL)
        return;
    char *rest;
    major = (unsigned)strtoul(version, &rest, 10);
    minor = *rest == '.' ? (unsigned)strtoul(rest + 1, &rest, 10) : 0;
    patch = *rest == '.' ? (unsigned)strtoul(rest + 1, &rest, 10) : 0;
    greeting->version = major * 10000 + minor * 100 + patch;
}

static sneck_status take_reply(const redisReply *reply, const greet_step *step, const char *where,
                               snk_redis_greeting *greeting, sneck_error *error)
{
    snk_redis_error_kind kind = snk_redis_error_of(reply);
    if (step->tells)
        read_info(reply, greeting);
    if (kind == SNK_REDIS_NO_ERROR)
        return SNECK_OK;
    /* These come instead of any answer, and the server hangs up after the first two. */
    bool fatal = kind == SNK_REDIS_MAXCLIENTS || kind == SNK_REDIS_PROTECTED || kind == SNK_REDIS_NOAUTH;
    if (!step->needed && !fatal)
        return SNECK_OK;
    sneck_status status = snk_redis_error_explain(reply, where, error);
    /* No command of a caller has left yet. */
    if (status == SNECK_UNKNOWN && error != NULL)
        error->status = SNECK_UNAVAILABLE;
    return status == SNECK_UNKNOWN ? SNECK_UNAVAILABLE : status;
}

static sneck_status receive_reply(const snk_redis_greeter *peer, redisReply **reply_out, sneck_error *error)
{
    char data[RECEIVE_SIZE];
    for (;;) {
        if (!snk_redis_parser_next(peer->parser, reply_out, error))
            return SNECK_UNAVAILABLE;
        if (*reply_out != NULL)
            return SNECK_OK;
        ssize_t count = snk_redis_wire_receive_now(peer->wire, data, sizeof data, error);
        if (count < 0)
            return SNECK_UNAVAILABLE;
        if (count == 0 && !snk_redis_poll(peer->wire->fd, POLLIN, peer->stop_fd, peer->until_ns))
            return snk_fail(error, SNECK_UNAVAILABLE, ETIMEDOUT, "%s: the server does not answer",
                            peer->settings->where);
        if (count > 0 && !snk_redis_parser_feed(peer->parser, data, (size_t)count, error))
            return SNECK_UNAVAILABLE;
    }
}

sneck_status snk_redis_greet(const snk_redis_greeter *peer, snk_redis_greeting *greeting_out, sneck_error *error)
{
    *greeting_out = (snk_redis_greeting){ 0 };
    char database[16];
    snprintf(database, sizeof database, "%d", peer->settings->database);
    greet_step steps[STEPS_MAX];
    size_t count = plan(peer->settings, database, steps);
    sneck_error send_error;
    /* A server without room answers before it has read anything, and hangs up: hear it out even if sending failed. */
    sneck_status sent = send_steps(peer, steps, count, &send_error);
    if (sent == SNECK_NO_MEMORY)
        return snk_fail_as(error, &send_error); /* the server has no reason to say anything */
    for (size_t i = 0; i < count; i++) {
        redisReply *reply;
        sneck_status status = receive_reply(peer, &reply, error);
        if (status != SNECK_OK)
            return sent != SNECK_OK ? snk_fail_as(error, &send_error) : status;
        status = take_reply(reply, &steps[i], peer->settings->where, greeting_out, error);
        freeReplyObject(reply);
        if (status != SNECK_OK)
            return status;
    }
    return SNECK_OK;
}
