/*
 * The Redis store against what one could write by hand with the same scripts:
 *
 *   pairs of acquire and release, each thread on a lock of its own
 *     raw    a blocking hiredis connection per thread, two EVALSHA a pair
 *     ours   sneck_acquire and sneck_release, one client
 *     deep   one thread that keeps 64 commands in the pipe by hand: the limit
 *
 *   hand-off of one lock among processes: from before the release to after the next one's acquire
 *     proto  a queue in Redis whose release script makes the head the owner and tells it on a channel of its own
 *     ours   sneck_acquire and sneck_release
 *
 * Usage: bench-redis_store [SECONDS [ROUNDS]]. Only ratios within one run mean anything: designs take turns in each
 * round, and the median of the rounds is shown. "one core": server and clients are pinned to one.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

#include "../tests/lib/redis_server.h"
#include "base/clock.h"
#include "base/ids.h"
#include "sneck.h"
#include "store/redis/keys.h"
#include "store/redis/scripts.h"

#define THREADS_MAX 64
#define ROUNDS_MAX 31
#define DEPTH 64
#define SAMPLES_MAX 200000
#define PROCESSES_MAX 32

static redis_server server;
static double seconds = 0.5;
static int rounds = 5;

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "bench: %s\n", what);
    redis_server_stop(&server);
    exit(1);
}

static redisContext *dial(void)
{
    redisContext *context = redisConnect("127.0.0.1", server.port);
    if (context == NULL || context->err != 0)
        die("cannot connect");
    return context;
}

static void pin(bool one_core)
{
    cpu_set_t cores;
    CPU_ZERO(&cores);
    size_t count = one_core ? 1 : (size_t)sysconf(_SC_NPROCESSORS_ONLN);
    for (size_t i = 0; i < count; i++)
        CPU_SET(i, &cores);
    sched_setaffinity(0, sizeof cores, &cores);
    sched_setaffinity(server.pid, sizeof cores, &cores);
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double values[], int count)
{
    qsort(values, (size_t)count, sizeof *values, compare_doubles);
    return values[count / 2];
}

/* ---- The scripts of the store, by hand ---- */

typedef struct by_hand {
    snk_keys keys;
    char claim[SNK_ID_TEXT_SIZE];
    char channel[64];
    char message[96];
} by_hand;

static void prepare(by_hand *lock, int number)
{
    char name[32];
    snprintf(name, sizeof name, "bench-%d", number);
    if (snk_keys_make(&lock->keys, "lock:", name, NULL) != SNECK_OK)
        die("keys");
    snprintf(lock->channel, sizeof lock->channel, "lock:release:%s", name);
    snprintf(lock->message, sizeof lock->message, "{\"lockKey\":\"%s\",\"releaseTime\":", name);
}

static size_t format(by_hand *lock, bool acquire, char **command)
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
    const char *const acquire_words[] = { lock->claim, "30000", "1", "1",
                                          "0",         "grant", "1", "7f3c1b52-3f0e-4a4c-9b55-0c4b7f2f9f10:17",
                                          "1234",      "bench", "" };
    const char *const release_words[] = { lock->claim, "0", "1", lock->channel, lock->message, "released" };
    size_t more = acquire ? 11 : 6;
    memcpy(words + count, acquire ? acquire_words : release_words, more * sizeof *words);
    return (size_t)redisFormatCommandArgv(command, (int)(count + more), words, NULL);
}

static void expect(redisReply *reply, bool acquire)
{
    if (reply == NULL || reply->type != REDIS_REPLY_ARRAY || reply->element[0]->integer != (acquire ? 1 : 5))
        die(reply != NULL && reply->type == REDIS_REPLY_ERROR ? reply->str : "a wrong answer");
    freeReplyObject(reply);
}

static void load_scripts(void)
{
    redisContext *context = dial();
    for (size_t i = 0; i < SNK_SCRIPTS; i++)
        freeReplyObject(redisCommand(context, "SCRIPT LOAD %s", snk_scripts[SNK_LAYOUT_HASH][i].text));
    redisFree(context);
}

/* ---- Pairs on distinct locks ---- */

typedef struct worker {
    pthread_t thread;
    int number;
    uint64_t pairs;
    sneck_client *client;
    atomic_bool *stop;
} worker;

static void *work_raw(void *argument)
{
    worker *self = argument;
    redisContext *context = dial();
    by_hand lock;
    prepare(&lock, self->number);
    while (!atomic_load_explicit(self->stop, memory_order_relaxed)) {
        for (int acquire = 1; acquire >= 0; acquire--) {
            char *command = NULL;
            void *reply = NULL;
            size_t length = format(&lock, acquire == 1, &command);
            redisAppendFormattedCommand(context, command, length);
            redisFreeCommand(command);
            redisGetReply(context, &reply);
            expect(reply, acquire == 1);
        }
        self->pairs++;
    }
    redisFree(context);
    return NULL;
}

static void *work_deep(void *argument)
{
    worker *self = argument;
    redisContext *context = dial();
    static by_hand locks[DEPTH];
    for (int i = 0; i < DEPTH; i++)
        prepare(&locks[i], i);
    while (!atomic_load_explicit(self->stop, memory_order_relaxed)) {
        for (int acquire = 1; acquire >= 0; acquire--) {
            for (int i = 0; i < DEPTH; i++) {
                char *command = NULL;
                size_t length = format(&locks[i], acquire == 1, &command);
                redisAppendFormattedCommand(context, command, length);
                redisFreeCommand(command);
            }
            for (int i = 0; i < DEPTH; i++) {
                void *reply = NULL;
                redisGetReply(context, &reply);
                expect(reply, acquire == 1);
            }
        }
        self->pairs += DEPTH;
    }
    redisFree(context);
    return NULL;
}

static void *work_ours(void *argument)
{
    worker *self = argument;
    sneck_error error;
    sneck_lock *lock = NULL;
    char name[32];
    snprintf(name, sizeof name, "bench-%d", self->number);
    if (sneck_mutex(self->client, name, NULL, &lock, &error) != SNECK_OK)
        die(error.message);
    while (!atomic_load_explicit(self->stop, memory_order_relaxed)) {
        if (sneck_acquire(lock, 1000, &error) != SNECK_OK || sneck_release(lock, &error) != SNECK_OK)
            die(error.message);
        self->pairs++;
    }
    sneck_lock_free(lock);
    return NULL;
}

static sneck_client *open_client(void)
{
    char url[64];
    sneck_error error;
    sneck_client *client = NULL;
    snprintf(url, sizeof url, "redis://127.0.0.1:%d", server.port);
    if (sneck_open(url, NULL, &client, &error) != SNECK_OK)
        die(error.message);
    return client;
}

/* Pairs a second; and the processor time of this process for each, in microseconds. */
static double measure_pairs(void *(*work)(void *), int threads, double *cpu_us)
{
    static worker workers[THREADS_MAX];
    atomic_bool stop = false;
    sneck_client *client = work == work_ours ? open_client() : NULL;
    for (int i = 0; i < threads; i++) {
        workers[i] = (worker){ .number = i, .client = client, .stop = &stop };
        pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    }
    int64_t begin_ns = snk_now_ns();
    int64_t begin_cpu_ns = snk_clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
    usleep((useconds_t)(seconds * 1e6));
    atomic_store(&stop, true);
    uint64_t pairs = 0;
    for (int i = 0; i < threads; i++) {
        pthread_join(workers[i].thread, NULL);
        pairs += workers[i].pairs;
    }
    double rate = (double)pairs * 1e9 / (double)(snk_now_ns() - begin_ns);
    if (cpu_us != NULL)
        *cpu_us = (double)(snk_clock_read_ns(CLOCK_PROCESS_CPUTIME_ID) - begin_cpu_ns) / 1e3 / (double)pairs;
    sneck_close(client);
    return rate;
}

static void compare_pairs(int threads, bool one_core)
{
    double raw[ROUNDS_MAX] = { 0 };
    double ours[ROUNDS_MAX] = { 0 };
    double ratio[ROUNDS_MAX] = { 0 };
    double share[ROUNDS_MAX] = { 0 };
    double raw_cpu[ROUNDS_MAX] = { 0 };
    double our_cpu[ROUNDS_MAX] = { 0 };
    pin(one_core);
    for (int i = 0; i < rounds; i++) {
        raw[i] = measure_pairs(work_raw, threads, &raw_cpu[i]);
        ours[i] = measure_pairs(work_ours, threads, &our_cpu[i]);
        ratio[i] = ours[i] / raw[i];
        share[i] = threads < 64 ? 0 : ours[i] / measure_pairs(work_deep, 1, NULL);
    }
    pin(false);
    printf("%-8s %2d threads  raw %7.0f/s  ours %7.0f/s  ours/raw %.2f", one_core ? "one core" : "free", threads,
           median(raw, rounds), median(ours, rounds), median(ratio, rounds));
    if (threads >= 64)
        printf("  ours/deep %.2f", median(share, rounds));
    printf("  cpu/pair raw %.0f us ours %.0f us\n", median(raw_cpu, rounds), median(our_cpu, rounds));
}

/* ---- Hand-off ---- */

/* Shared between the processes of one run. */
typedef struct board {
    _Atomic bool go;
    _Atomic bool stop;
    _Atomic unsigned ready;
    int64_t released_ns; /* under the lock */
    pid_t holder;        /* under the lock */
    unsigned count;      /* of samples; under the lock */
    unsigned turns;
    double samples[SAMPLES_MAX]; /* us */
} board;

static void note_turn(board *shared)
{
    int64_t now_ns = snk_now_ns();
    shared->turns++;
    if (shared->holder != getpid() && shared->released_ns != 0 && shared->count < SAMPLES_MAX)
        shared->samples[shared->count++] = (double)(now_ns - shared->released_ns) / 1000;
    shared->holder = getpid();
    shared->released_ns = snk_now_ns();
}

static void await_go(board *shared)
{
    atomic_fetch_add(&shared->ready, 1);
    while (!atomic_load(&shared->go))
        usleep(1000);
}

static void turns_ours(board *shared)
{
    sneck_client *client = open_client();
    sneck_error error;
    sneck_lock *lock = NULL;
    if (sneck_mutex(client, "turns", NULL, &lock, &error) != SNECK_OK)
        die(error.message);
    await_go(shared);
    while (!atomic_load(&shared->stop)) {
        if (sneck_acquire(lock, 20000, &error) != SNECK_OK)
            die(error.message);
        note_turn(shared);
        if (sneck_release(lock, &error) != SNECK_OK)
            die(error.message);
    }
    sneck_lock_free(lock);
    sneck_close(client);
}

static const char proto_lock[] = "if redis.call('set',KEYS[1],ARGV[1],'nx','px',ARGV[2]) then return 1 end "
                                 "redis.call('rpush',KEYS[2],ARGV[1]) return 0";
static const char proto_unlock[] =
    "if redis.call('get',KEYS[1])~=ARGV[1] then return 0 end "
    "while true do local head=redis.call('lpop',KEYS[2]) "
    "if not head then redis.call('del',KEYS[1]) redis.call('publish',ARGV[3],'free') return 1 end "
    "redis.call('set',KEYS[1],head,'px',ARGV[2]) if redis.call('publish',head,'go')>0 then return 1 end end";

static redisReply *proto_run(redisContext *context, const char *sha, const char *self)
{
    redisReply *reply = redisCommand(context, "EVALSHA %s 2 proto proto:queue %s 30000 proto:released", sha, self);
    if (reply == NULL || reply->type != REDIS_REPLY_INTEGER)
        die("the prototype failed");
    return reply;
}

static void proto_load(redisContext *context, const char *script, char sha[41])
{
    redisReply *reply = redisCommand(context, "SCRIPT LOAD %s", script);
    snprintf(sha, 41, "%s", reply->str);
    freeReplyObject(reply);
}

static void turns_proto(board *shared)
{
    redisContext *context = dial();
    redisContext *listener = dial();
    char lock_sha[41];
    char unlock_sha[41];
    char self[32];
    snprintf(self, sizeof self, "proto:%d", (int)getpid());
    proto_load(context, proto_lock, lock_sha);
    proto_load(context, proto_unlock, unlock_sha);
    freeReplyObject(redisCommand(listener, "SUBSCRIBE %s", self));
    await_go(shared);
    while (!atomic_load(&shared->stop)) {
        redisReply *reply = proto_run(context, lock_sha, self);
        bool granted = reply->integer == 1;
        freeReplyObject(reply);
        void *message = NULL;
        if (!granted && redisGetReply(listener, &message) == REDIS_OK)
            freeReplyObject(message);
        note_turn(shared);
        freeReplyObject(proto_run(context, unlock_sha, self));
    }
    redisFree(listener);
    redisFree(context);
}

typedef struct handoff {
    double median_us;
    double turns_per_s;
} handoff;

static handoff measure_handoff(void (*turns)(board *), int processes)
{
    board *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t children[PROCESSES_MAX];
    for (int i = 0; i < processes; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            turns(shared);
            _exit(0);
        }
    }
    while (atomic_load(&shared->ready) < (unsigned)processes)
        usleep(1000);
    int64_t begin_ns = snk_now_ns();
    atomic_store(&shared->go, true);
    usleep((useconds_t)(seconds * 1e6));
    atomic_store(&shared->stop, true);
    double took_s = (double)(snk_now_ns() - begin_ns) / 1e9;
    unsigned count = shared->count;
    handoff result = { .turns_per_s = shared->turns / took_s };
    for (int i = 0; i < processes; i++)
        waitpid(children[i], NULL, 0);
    qsort(shared->samples, count, sizeof(double), compare_doubles);
    result.median_us = count == 0 ? 0 : shared->samples[count / 2];
    munmap(shared, sizeof *shared);
    return result;
}

static void compare_handoff(void)
{
    static const int crowds[] = { 2, PROCESSES_MAX };
    double proto[2][ROUNDS_MAX] = { { 0 } };
    double ours[2][ROUNDS_MAX] = { { 0 } };
    double rate[2][ROUNDS_MAX] = { { 0 } };
    double ratio[2][ROUNDS_MAX] = { { 0 } };
    double growth[ROUNDS_MAX] = { 0 };
    for (int i = 0; i < rounds; i++) {
        for (int j = 0; j < 2; j++) {
            proto[j][i] = measure_handoff(turns_proto, crowds[j]).median_us;
            handoff our = measure_handoff(turns_ours, crowds[j]);
            ours[j][i] = our.median_us;
            rate[j][i] = our.turns_per_s;
            ratio[j][i] = ours[j][i] / proto[j][i];
        }
        growth[i] = ours[1][i] / ours[0][i];
    }
    for (int j = 0; j < 2; j++)
        printf("hand-off %2d processes  proto %.0f us  ours %.0f us  ours/proto %.2f  turns %.0f/s\n", crowds[j],
               median(proto[j], rounds), median(ours[j], rounds), median(ratio[j], rounds), median(rate[j], rounds));
    printf("hand-off 32/2 processes  ours %.2f\n", median(growth, rounds));
}

int main(int argc, char **argv)
{
    if (argc > 1)
        seconds = strtod(argv[1], NULL);
    if (argc > 2)
        rounds = (int)strtol(argv[2], NULL, 10);
    if (seconds <= 0 || rounds < 1 || rounds > ROUNDS_MAX) {
        fprintf(stderr, "usage: bench-redis_store [SECONDS [ROUNDS, at most %d]]\n", ROUNDS_MAX);
        return 64;
    }
    if (!redis_server_start(&server, NULL))
        die("redis-server does not start");
    load_scripts();
    setvbuf(stdout, NULL, _IOLBF, 0);
    compare_pairs(1, true);
    compare_pairs(1, false);
    compare_pairs(8, false);
    compare_pairs(16, false);
    compare_pairs(64, false);
    compare_handoff();
    redis_server_stop(&server);
    return 0;
}
