/* What the benchmarks on Redis share: a server, clients of it, and the scripts of the store used by hand. */
#ifndef SNK_BENCH_REDIS_BENCH_H
#define SNK_BENCH_REDIS_BENCH_H

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

#include "../tests/lib/redis_server.h"
#include "base/ids.h"
#include "bench.h"
#include "sneck.h"
#include "store/redis/keys.h"
#include "store/redis/scripts.h"

#define ROUNDS_MAX 31

static redis_server server;
static double seconds = 0.5;
static int rounds = 5;

static inline _Noreturn void die(const char *what)
{
    fprintf(stderr, "bench: %s\n", what);
    redis_server_stop(&server);
    exit(1);
}

static inline redisContext *dial(void)
{
    redisContext *context = redisConnect("127.0.0.1", server.port);
    if (context == NULL || context->err != 0)
        die("cannot connect");
    return context;
}

static inline void pin(bool one_core)
{
    cpu_set_t cores;
    CPU_ZERO(&cores);
    size_t count = one_core ? 1 : (size_t)sysconf(_SC_NPROCESSORS_ONLN);
    for (size_t i = 0; i < count; i++)
        CPU_SET(i, &cores);
    sched_setaffinity(0, sizeof cores, &cores);
    sched_setaffinity(server.pid, sizeof cores, &cores);
}

/* Processor time of the server so far. */
static inline double server_cpu_us(void)
{
    char path[64];
    char line[128];
    snprintf(path, sizeof path, "/proc/%d/schedstat", (int)server.pid);
    FILE *file = fopen(path, "r");
    if (file == NULL || fgets(line, sizeof line, file) == NULL)
        die(path);
    fclose(file);
    return (double)strtoull(line, NULL, 10) / 1e3; /* it begins with nanoseconds */
}

/* ---- The scripts of the store, by hand ---- */

typedef struct by_hand {
    snk_keys keys;
    char owner[48];
    char claim[SNK_ID_TEXT_SIZE];
    char channel[64];
    char message[96];
} by_hand;

static inline void prepare(by_hand *lock, int number)
{
    char name[32];
    snprintf(name, sizeof name, "bench-%d", number);
    snprintf(lock->owner, sizeof lock->owner, "7f3c1b52-3f0e-4a4c-9b55-%012d:17", (int)getpid());
    if (snk_keys_make(&lock->keys, "lock:", name, NULL) != SNECK_OK)
        die("keys");
    snprintf(lock->channel, sizeof lock->channel, "lock:release:%s", name);
    snprintf(lock->message, sizeof lock->message, "{\"lockKey\":\"%s\",\"releaseTime\":", name);
}

static inline size_t format(by_hand *lock, bool acquire, char **command)
{
    const snk_script *script = &snk_scripts[SNK_LAYOUT_HASH][acquire ? SNK_SCRIPT_ACQUIRE : SNK_SCRIPT_RELEASE];
    const char *words[24] = { "EVALSHA", script->sha, "7" };
    size_t count = 3;
    for (size_t i = 0; i < SNK_KEYS; i++)
        words[count++] = lock->keys.text[i];
    if (acquire) {
        snk_id id;
        if (!snk_id_random(&id))
            die("no random bytes");
        snk_id_to_hex(&id, lock->claim);
    }
    const char *const acquire_words[] = { lock->claim, "30000",     "1",    "1",     "0", "grant",
                                          "1",         lock->owner, "1234", "bench", "",  "" };
    const char *const release_words[] = {
        lock->claim, "0", "1", lock->channel, lock->message, "released", "PUBLISH", ""
    };
    size_t more = acquire ? 12 : 8;
    memcpy(words + count, acquire ? acquire_words : release_words, more * sizeof *words);
    return (size_t)redisFormatCommandArgv(command, (int)(count + more), words, NULL);
}

static inline void expect(redisReply *reply, bool acquire)
{
    if (reply == NULL || reply->type != REDIS_REPLY_ARRAY || reply->element[0]->integer != (acquire ? 1 : 5))
        die(reply != NULL && reply->type == REDIS_REPLY_ERROR ? reply->str : "a wrong answer");
    freeReplyObject(reply);
}

static inline void load_scripts(void)
{
    redisContext *context = dial();
    for (size_t i = 0; i < SNK_SCRIPTS; i++)
        freeReplyObject(redisCommand(context, "SCRIPT LOAD %s", snk_scripts[SNK_LAYOUT_HASH][i].text));
    redisFree(context);
}

static inline sneck_client *open_client(void)
{
    char url[64];
    sneck_error error;
    sneck_client *client = NULL;
    snprintf(url, sizeof url, "redis://127.0.0.1:%d", server.port);
    if (sneck_open(url, NULL, &client, &error) != SNECK_OK)
        die(error.message);
    return client;
}

/* The figures of a run: bench-… [SECONDS [ROUNDS]]. */
static inline void begin(int argc, char **argv)
{
    if (argc > 1)
        seconds = strtod(argv[1], NULL);
    if (argc > 2)
        rounds = (int)strtol(argv[2], NULL, 10);
    if (seconds <= 0 || rounds < 1 || rounds > ROUNDS_MAX) {
        fprintf(stderr, "usage: %s [SECONDS [ROUNDS, at most %d]]\n", argv[0], ROUNDS_MAX);
        exit(64);
    }
    if (!redis_server_start(&server, NULL))
        die("redis-server does not start");
    load_scripts();
    setvbuf(stdout, NULL, _IOLBF, 0);
}

#endif
