#include "redis_bed.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#include "claims.h"
#include "test.h"

#define TEXT_SIZE 65536

/* ---- The server ---- */

/* The rules of the user that the documentation describes: what it says is what is tested. */
static void read_user(char *rules, size_t size)
{
    static const char mark[] = "    ACL SETUSER ";
    char path[512];
    const char *source = getenv("SNECK_SOURCE");
    (void)snprintf(path, sizeof path, "%s/docs/redis.md", source == NULL ? "." : source);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    bool found = false;
    while (!found && fgets(rules, (int)size, file) != NULL)
        found = strncmp(rules, mark, sizeof mark - 1) == 0;
    (void)fclose(file);
    assert_true(found);
    memmove(rules, rules + sizeof mark - 1, strlen(rules + sizeof mark - 1) + 1);
    rules[strcspn(rules, "\n")] = '\0';
}

void redis_bed_write_users(char path[64])
{
    char rules[2048];
    read_user(rules, sizeof rules);
    (void)snprintf(path, 64, "/tmp/sneck-users-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    (void)dprintf(fd, "user default on nopass ~* &* +@all\nuser %s\n", rules);
    (void)close(fd);
}

static bool connect_admin(redis_bed *bed)
{
    struct timeval patience = { .tv_sec = 30 };
    bed->admin = redisConnectUnixWithTimeout(bed->server.socket, patience);
    if (bed->admin != NULL && bed->admin->err == 0) {
        (void)redisSetTimeout(bed->admin, patience);
        redisReply *reply = redisCommand(bed->admin, "PING");
        bool ready = reply != NULL && reply->type == REDIS_REPLY_STATUS;
        if (reply != NULL)
            freeReplyObject(reply);
        if (ready)
            return true;
    }
    if (bed->admin != NULL)
        redisFree(bed->admin);
    bed->admin = NULL;
    return false;
}

void redis_bed_connect(redis_bed *bed)
{
    int64_t limit_ns = snk_now_ns() + 30 * SNK_NS_PER_S;
    while (!connect_admin(bed)) {
        assert_true(snk_now_ns() < limit_ns);
        redis_bed_pause(2);
    }
}

void redis_bed_start(redis_bed *bed)
{
    *bed = (redis_bed){ .admin = NULL };
    redis_bed_write_users(bed->rules);
    const char *const options[] = { "--aclfile", bed->rules, NULL };
    if (!redis_server_start(&bed->server, options))
        fail_msg("redis-server does not start");
    redis_bed_connect(bed);
}

void redis_bed_restart(redis_bed *bed)
{
    assert_true(redis_server_restart(&bed->server));
    redis_bed_connect(bed);
}

void redis_bed_crash(redis_bed *bed, bool saved)
{
    if (saved)
        redis_bed_do(bed, "SAVE");
    redisFree(bed->admin);
    bed->admin = NULL;
    redis_server_kill(&bed->server);
    if (!saved) {
        char path[128];
        (void)snprintf(path, sizeof path, "%s/dump.rdb", bed->server.directory);
        (void)unlink(path);
    }
}

void redis_bed_stop(redis_bed *bed)
{
    if (bed->admin != NULL)
        redisFree(bed->admin);
    redis_server_stop(&bed->server);
    (void)unlink(bed->rules);
}

/* ---- URLs ---- */

static void make_url(char *url, size_t size, int port, const char *keys)
{
    (void)snprintf(url, size, "redis://sneck:secret@127.0.0.1:%d%s%s", port, keys == NULL ? "" : "?",
                   keys == NULL ? "" : keys);
}

const char *redis_bed_url_at(int port, const char *keys)
{
    static char url[256];
    make_url(url, sizeof url, port, keys);
    return url;
}

const char *redis_bed_url(const redis_bed *bed, const char *keys)
{
    return redis_bed_url_at(bed->server.port, keys);
}

sneck_client *redis_bed_open(const redis_bed *bed, const char *keys, const sneck_client_options *options)
{
    sneck_error error;
    sneck_client *client = NULL;
    char url[256];
    make_url(url, sizeof url, bed->server.port, keys);
    if (sneck_open(url, options, &client, &error) != SNECK_OK)
        fail_msg("open: %s", error.message);
    return client;
}

/* ---- Looking ---- */

static redisReply *ask(redis_bed *bed, const char *format, va_list arguments)
{
    redisReply *reply = redisvCommand(bed->admin, format, arguments);
    if (reply == NULL)
        fail_msg("%s: the server does not answer", format);
    return reply;
}

redisReply *redis_bed_command(redis_bed *bed, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    redisReply *reply = ask(bed, format, arguments);
    va_end(arguments);
    return reply;
}

void redis_bed_do(redis_bed *bed, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    redisReply *reply = ask(bed, format, arguments);
    va_end(arguments);
    if (reply->type == REDIS_REPLY_ERROR)
        fail_msg("%s: %s", format, reply->str);
    freeReplyObject(reply);
}

long long redis_bed_number(redis_bed *bed, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    redisReply *reply = ask(bed, format, arguments);
    va_end(arguments);
    if (reply->type == REDIS_REPLY_ERROR)
        fail_msg("%s: %s", format, reply->str);
    long long number = reply->type == REDIS_REPLY_STRING ? strtoll(reply->str, NULL, 10) : reply->integer;
    freeReplyObject(reply);
    return number;
}

redisContext *redis_bed_send_aside(const redis_bed *bed, const char *format, ...)
{
    redisContext *aside = redisConnectUnix(bed->server.socket);
    assert_non_null(aside);
    va_list arguments;
    va_start(arguments, format);
    (void)redisvAppendCommand(aside, format, arguments);
    va_end(arguments);
    int done = 0;
    while (done == 0)
        assert_int_equal(redisBufferWrite(aside, &done), REDIS_OK);
    return aside;
}

void redis_bed_pause(int64_t ms)
{
    struct timespec pause = snk_timespec(ms * SNK_NS_PER_MS);
    (void)nanosleep(&pause, NULL);
}

void redis_bed_await(redis_bed *bed, const char *command, long long expected)
{
    int64_t limit_ns = snk_now_ns() + 30 * SNK_NS_PER_S;
    long long number = 0;
    while ((number = redis_bed_number(bed, command)) != expected) {
        if (snk_now_ns() >= limit_ns)
            fail_msg("%s is %lld, not %lld", command, number, expected);
        redis_bed_pause(1);
    }
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp((*(redisReply *const *)a)->str, (*(redisReply *const *)b)->str);
}

static void join(const redisReply *reply, char text[TEXT_SIZE])
{
    size_t length = 0;
    text[0] = '\0';
    for (size_t i = 0; i < reply->elements && length + 1 < TEXT_SIZE; i++) {
        const redisReply *element = reply->element[i];
        char number[24];
        (void)snprintf(number, sizeof number, "%lld", element->integer);
        length += (size_t)snprintf(text + length, TEXT_SIZE - length, "%s%s", i == 0 ? "" : " ",
                                   element->type == REDIS_REPLY_INTEGER ? number
                                   : element->str == NULL               ? ""
                                                                        : element->str);
    }
}

const char *redis_bed_text(redis_bed *bed, const char *format, ...)
{
    static char text[TEXT_SIZE];
    va_list arguments;
    va_start(arguments, format);
    redisReply *reply = ask(bed, format, arguments);
    va_end(arguments);
    if (reply->type == REDIS_REPLY_ARRAY)
        join(reply, text);
    else
        (void)snprintf(text, sizeof text, "%s", reply->str == NULL ? "" : reply->str);
    freeReplyObject(reply);
    return text;
}

const char *redis_bed_keys(redis_bed *bed)
{
    static char text[TEXT_SIZE];
    redisReply *reply = redis_bed_command(bed, "KEYS *");
    if (reply->elements > 0)
        qsort(reply->element, reply->elements, sizeof(redisReply *), compare_texts);
    join(reply, text);
    freeReplyObject(reply);
    return text;
}

void redis_bed_expect_limits(redis_bed *bed)
{
    redisReply *reply = redis_bed_command(bed, "KEYS *");
    for (size_t i = 0; i < reply->elements; i++) {
        if (redis_bed_number(bed, "PTTL %s", reply->element[i]->str) == -1)
            fail_msg("%s has no time limit", reply->element[i]->str);
    }
    freeReplyObject(reply);
}

/* ---- cmocka ---- */

int redis_bed_set_up(void **state)
{
    redis_bed *bed = calloc(1, sizeof *bed);
    if (bed == NULL)
        return -1;
    redis_bed_start(bed);
    *state = bed;
    return 0;
}

int redis_bed_tear_down(void **state)
{
    redis_bed_stop(*state);
    free(*state);
    return 0;
}
