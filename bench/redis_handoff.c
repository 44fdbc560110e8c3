/*
 * Hand-off of one lock among processes on the Redis store: from before the release to after the next one's acquire.
 *
 *     proto    the least that hands a lock on: a queue in Redis whose release script makes the head the owner and tells it
 *              on a channel of its own; no tokens, no leases of waiters, no record of who holds what
 *     by hand  the scripts of the store, by two blocking hiredis connections a process
 *     ours     sneck_acquire and sneck_release
 *
 * Usage: bench-redis_handoff [SECONDS [ROUNDS]]. Designs take turns in each round, and the median of the rounds is shown.
 */
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "redis_bench.h"

#define SAMPLES_MAX 200000
#define PROCESSES_MAX 32

/* Shared between the processes of one run. */
typedef struct board {
    _Atomic bool go;
    _Atomic bool stop;
    _Atomic unsigned ready;
    int64_t released_ns;          /* under the lock */
    pid_t holder;                 /* under the lock */
    unsigned count;               /* of samples; under the lock */
    int64_t samples[SAMPLES_MAX]; /* ns */
} board;

static void note_turn(board *shared)
{
    int64_t now_ns = snk_now_ns();
    if (shared->holder != getpid() && shared->released_ns != 0 && shared->count < SAMPLES_MAX)
        shared->samples[shared->count++] = now_ns - shared->released_ns;
    shared->holder = getpid();
    shared->released_ns = snk_now_ns();
}

static void await_go(board *shared)
{
    atomic_fetch_add(&shared->ready, 1);
    while (!atomic_load(&shared->go))
        usleep(1000);
}

/* ---- Designs ---- */

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

static void await_message(redisContext *listener)
{
    void *message = NULL;
    if (redisGetReply(listener, &message) != REDIS_OK)
        die("no message");
    freeReplyObject(message);
}

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
        if (!granted)
            await_message(listener);
        note_turn(shared);
        freeReplyObject(proto_run(context, unlock_sha, self));
    }
    redisFree(listener);
    redisFree(context);
}

/* Answers whether it was granted at once. */
static bool by_hand_ask(redisContext *context, by_hand *lock, bool acquire)
{
    char *command = NULL;
    void *reply = NULL;
    size_t length = format(lock, acquire, &command);
    redisAppendFormattedCommand(context, command, length);
    redisFreeCommand(command);
    redisGetReply(context, &reply);
    const redisReply *answer = reply;
    if (answer == NULL || answer->type != REDIS_REPLY_ARRAY)
        die("a wrong answer");
    bool granted = answer->element[0]->integer == 1;
    freeReplyObject(reply);
    return granted;
}

static void turns_by_hand(board *shared)
{
    redisContext *context = dial();
    redisContext *listener = dial();
    by_hand lock;
    prepare(&lock, 0);
    char channel[64];
    snprintf(channel, sizeof channel, "lock:wake:%.*s", SNK_UUID_TEXT_SIZE - 1, lock.owner);
    freeReplyObject(redisCommand(listener, "SUBSCRIBE %s", channel));
    await_go(shared);
    while (!atomic_load(&shared->stop)) {
        if (!by_hand_ask(context, &lock, true))
            await_message(listener);
        note_turn(shared);
        (void)by_hand_ask(context, &lock, false);
    }
    redisFree(listener);
    redisFree(context);
}

/* ---- Measuring ---- */

typedef struct pace {
    double us;        /* the median hand-off */
    double server_us; /* processor time of the server for one */
} pace;

static pace measure(void (*turns)(board *), int processes)
{
    board *shared = bench_share(sizeof *shared);
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
    double begin_server_us = server_cpu_us();
    atomic_store(&shared->go, true);
    usleep((useconds_t)(seconds * 1e6));
    atomic_store(&shared->stop, true);
    for (int i = 0; i < processes; i++)
        waitpid(children[i], NULL, 0);
    pace result = { .server_us = server_cpu_us() - begin_server_us };
    if (shared->count > 0) {
        result.us = bench_percentile_us(shared->samples, shared->count, 50);
        result.server_us /= shared->count;
    }
    munmap(shared, sizeof *shared);
    return result;
}

typedef struct figures {
    double us[ROUNDS_MAX];
    double server_us[ROUNDS_MAX];
} figures;

static void note(figures *all, int round, pace one)
{
    all->us[round] = one.us;
    all->server_us[round] = one.server_us;
}

static double show(const char *name, figures *all)
{
    double us = bench_median(all->us, (size_t)rounds);
    printf("    %-8s %4.0f us, of which the server computes %4.0f us\n", name, us,
           bench_median(all->server_us, (size_t)rounds));
    return us;
}

/* Answers with ours. */
static double compare(int processes)
{
    static figures proto;
    static figures manual;
    static figures ours;
    double ratio[ROUNDS_MAX] = { 0 };
    double overhead[ROUNDS_MAX] = { 0 };
    for (int i = 0; i < rounds; i++) {
        note(&proto, i, measure(turns_proto, processes));
        note(&manual, i, measure(turns_by_hand, processes));
        note(&ours, i, measure(turns_ours, processes));
        ratio[i] = ours.us[i] / proto.us[i];
        overhead[i] = ours.us[i] / manual.us[i];
    }
    double value = bench_median(ratio, (size_t)rounds);
    printf("redis, hand-off among %d processes: %.2f of the prototype (goal: at most 1.20), %.2f of by hand", processes,
           value, bench_median(overhead, (size_t)rounds));
    bench_goal_at_most(value, 1.2);
    show("proto", &proto);
    show("by hand", &manual);
    return show("ours", &ours);
}

int main(int argc, char **argv)
{
    begin(argc, argv);
    double two_us = compare(2);
    double many_us = compare(PROCESSES_MAX);
    printf("redis, hand-off among %d processes: %.2f of that among 2 (goal: at most 1.30)", PROCESSES_MAX,
           many_us / two_us);
    bench_goal_at_most(many_us / two_us, 1.3);
    redis_server_stop(&server);
    return 0;
}
