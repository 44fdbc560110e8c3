/*
 * Four ways to talk to one Redis server, on lock+unlock pairs of distinct locks (two scripts of the hash layout):
 *
 *   own    a connection per thread, blocking: write, read
 *   iot    one connection, and a thread that does all I/O for the others
 *   ours   src/redis: one connection, callers do the I/O
 *   deep   one thread that keeps 64 commands in the pipe by hand: the limit
 *
 * Usage: bench-redis_io [SECONDS [ROUNDS [THREADS…]]]. Only ratios within one run mean anything, so the designs take
 * turns in each round, and the median of the rounds' ratios is shown: free on all cores, and with server and client
 * on one core.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../tests/lib/redis_server.h"
#include "base/clock.h"
#include "redis/bytes.h"
#include "redis/dial.h"
#include "redis/park.h"
#include "redis/redis.h"
#include "redis/settings.h"

#define THREADS_MAX 64
#define ROUNDS_MAX 31
#define DEPTH 64
#define SHA_SIZE 41

static const char lock_script[] = "if redis.call('exists',KEYS[1])==0 then redis.call('hset',KEYS[1],ARGV[2],1) "
                                  "redis.call('pexpire',KEYS[1],ARGV[1]) return nil end "
                                  "if redis.call('hexists',KEYS[1],ARGV[2])==1 then "
                                  "redis.call('hincrby',KEYS[1],ARGV[2],1) redis.call('pexpire',KEYS[1],ARGV[1]) "
                                  "return nil end return redis.call('pttl',KEYS[1])";
static const char unlock_script[] = "if redis.call('hexists',KEYS[1],ARGV[2])==0 then return nil end "
                                    "local c=redis.call('hincrby',KEYS[1],ARGV[2],-1) "
                                    "if c>0 then redis.call('pexpire',KEYS[1],ARGV[1]) return 0 end "
                                    "redis.call('del',KEYS[1]) redis.call('publish',KEYS[2],ARGV[3]) return 1";

/* One thread of one run. */
typedef struct worker {
    pthread_t thread;
    int number;
    uint64_t pairs;
    struct bench_run *run;
} worker;

typedef struct bench_run {
    void *(*work)(void *worker);
    int thread_count;
    bool one_core;
    atomic_bool stop;
    worker workers[THREADS_MAX];
    struct io_thread *io;
    snk_redis *redis;
} bench_run;

static redis_server server;
static snk_redis_settings settings;
static char lock_sha[SHA_SIZE];
static char unlock_sha[SHA_SIZE];

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "bench: %s\n", what);
    redis_server_stop(&server);
    exit(1);
}

/* ---- Blocking exchange ---- */

static int dial(void)
{
    int fd;
    sneck_error error;
    if (snk_redis_dial(&settings, -1, snk_now_ns() + SNK_NS_PER_S, &fd, &error) != SNECK_OK)
        die(error.message);
    return fd;
}

static void send_all(int fd, const char *data, size_t length)
{
    while (length > 0) {
        ssize_t count = send(fd, data, length, MSG_NOSIGNAL);
        if (count <= 0)
            die("send failed");
        data += count;
        length -= (size_t)count;
    }
}

static redisReply *receive_one(int fd, redisReader *reader)
{
    char data[16384];
    void *reply = NULL;
    while (redisReaderGetReply(reader, &reply) == REDIS_OK && reply == NULL) {
        ssize_t count = recv(fd, data, sizeof data, 0);
        if (count <= 0 && errno != EAGAIN)
            die("recv failed");
        if (count > 0)
            redisReaderFeed(reader, data, (size_t)count);
    }
    return reply;
}

/* The command that locks or unlocks lock `number`. */
static int format(char **command, bool lock, int number)
{
    char key[32];
    char owner[64];
    char channel[48];
    snprintf(key, sizeof key, "lock:bench-%d", number);
    snprintf(owner, sizeof owner, "7f3c1b52-3f0e-4a4c-9b55-0c4b7f2f9f10:%d", number);
    snprintf(channel, sizeof channel, "lock:release:bench-%d", number);
    const char *words[] = { "EVALSHA", lock ? lock_sha : unlock_sha, "2", key, channel, "30000", owner, "released" };
    return (int)redisFormatCommandArgv(command, 8, words, NULL);
}

static void load(const char *script, char sha[SHA_SIZE])
{
    const char *words[] = { "SCRIPT", "LOAD", script };
    char *command;
    int fd = dial();
    redisReader *reader = redisReaderCreate();
    size_t length = (size_t)redisFormatCommandArgv(&command, 3, words, NULL);
    send_all(fd, command, length);
    redisFreeCommand(command);
    redisReply *reply = receive_one(fd, reader);
    if (reply == NULL || reply->type != REDIS_REPLY_STRING)
        die("SCRIPT LOAD failed");
    snprintf(sha, SHA_SIZE, "%s", reply->str);
    freeReplyObject(reply);
    redisReaderFree(reader);
    close(fd);
}

static void check(const redisReply *reply, bool lock)
{
    if (reply == NULL || reply->type == REDIS_REPLY_ERROR || (lock && reply->type != REDIS_REPLY_NIL) ||
        (!lock && reply->integer != 1))
        die(reply != NULL && reply->type == REDIS_REPLY_ERROR ? reply->str : "wrong answer");
}

static bool goes_on(const worker *self)
{
    return !atomic_load_explicit(&self->run->stop, memory_order_relaxed);
}

/* ---- own ---- */

static void *work_own(void *argument)
{
    worker *self = argument;
    int fd = dial();
    redisReader *reader = redisReaderCreate();
    for (bool lock = true; goes_on(self) || !lock; lock = !lock) {
        char *command;
        int length = format(&command, lock, self->number);
        send_all(fd, command, (size_t)length);
        redisFreeCommand(command);
        redisReply *reply = receive_one(fd, reader);
        check(reply, lock);
        freeReplyObject(reply);
        self->pairs += !lock;
    }
    redisReaderFree(reader);
    close(fd);
    return NULL;
}

/* ---- deep ---- */

static void *work_deep(void *argument)
{
    worker *self = argument;
    int fd = dial();
    redisReader *reader = redisReaderCreate();
    snk_redis_bytes out = { 0 };
    for (bool lock = true; goes_on(self) || !lock; lock = !lock) {
        out.length = 0;
        for (int i = 0; i < DEPTH; i++) {
            char *command;
            int length = format(&command, lock, i);
            snk_redis_bytes_add(&out, command, (size_t)length);
            redisFreeCommand(command);
        }
        send_all(fd, out.data, out.length);
        for (int i = 0; i < DEPTH; i++) {
            redisReply *reply = receive_one(fd, reader);
            check(reply, lock);
            freeReplyObject(reply);
        }
        self->pairs += !lock ? DEPTH : 0;
    }
    snk_redis_bytes_free(&out);
    redisReaderFree(reader);
    close(fd);
    return NULL;
}

/* ---- iot ---- */

typedef struct io_request {
    struct io_request *next;
    char *command;
    size_t length;
    redisReply *reply;
    _Atomic uint32_t done;
} io_request;

typedef struct io_thread {
    pthread_t thread;
    pthread_mutex_t mutex;
    io_request *first; /* under mutex: to be sent */
    io_request **last;
    io_request *waiting; /* the thread's own: to be answered */
    io_request **waiting_last;
    bool asleep; /* under mutex */
    bool stop;   /* under mutex */
    int fd;
    int wake_fd;
} io_thread;

static bool take_requests(io_thread *io, snk_redis_bytes *out)
{
    pthread_mutex_lock(&io->mutex);
    io_request *first = io->first;
    io->first = NULL;
    io->last = &io->first;
    io->asleep = first == NULL;
    bool stop = io->stop;
    pthread_mutex_unlock(&io->mutex);
    out->length = 0;
    for (io_request *request = first; request != NULL; request = request->next) {
        snk_redis_bytes_add(out, request->command, request->length);
        *io->waiting_last = request;
        io->waiting_last = &request->next;
    }
    *io->waiting_last = NULL;
    if (out->length > 0)
        send_all(io->fd, out->data, out->length);
    return !stop;
}

static void answer_requests(io_thread *io, redisReader *reader)
{
    char data[16384];
    ssize_t count = recv(io->fd, data, sizeof data, MSG_DONTWAIT);
    if (count > 0)
        redisReaderFeed(reader, data, (size_t)count);
    void *reply = NULL;
    while (redisReaderGetReply(reader, &reply) == REDIS_OK && reply != NULL) {
        io_request *request = io->waiting;
        if (request == NULL)
            die("an answer to no question");
        io->waiting = request->next;
        if (io->waiting == NULL)
            io->waiting_last = &io->waiting;
        request->reply = reply;
        atomic_store_explicit(&request->done, 1, memory_order_release);
        snk_unpark(&request->done);
    }
}

static void *run_io(void *argument)
{
    io_thread *io = argument;
    redisReader *reader = redisReaderCreate();
    snk_redis_bytes out = { 0 };
    while (take_requests(io, &out)) {
        struct pollfd polled[] = { { .fd = io->fd, .events = POLLIN }, { .fd = io->wake_fd, .events = POLLIN } };
        poll(polled, 2, -1);
        eventfd_t value;
        if (polled[1].revents != 0)
            eventfd_read(io->wake_fd, &value);
        if (polled[0].revents != 0)
            answer_requests(io, reader);
    }
    snk_redis_bytes_free(&out);
    redisReaderFree(reader);
    return NULL;
}

static void io_submit(io_thread *io, io_request *request)
{
    pthread_mutex_lock(&io->mutex);
    if (request == NULL) {
        io->stop = true;
    } else {
        *io->last = request;
        io->last = &request->next;
    }
    bool wake = io->asleep;
    io->asleep = false;
    pthread_mutex_unlock(&io->mutex);
    if (wake)
        eventfd_write(io->wake_fd, 1);
}

static void *work_iot(void *argument)
{
    worker *self = argument;
    for (bool lock = true; goes_on(self) || !lock; lock = !lock) {
        io_request request = { 0 };
        request.length = (size_t)format(&request.command, lock, self->number);
        io_submit(self->run->io, &request);
        while (atomic_load_explicit(&request.done, memory_order_acquire) == 0)
            snk_park(&request.done, 0, SNK_NS_PER_S);
        redisFreeCommand(request.command);
        check(request.reply, lock);
        freeReplyObject(request.reply);
        self->pairs += !lock;
    }
    return NULL;
}

/* ---- ours ---- */

static void *work_ours(void *argument)
{
    worker *self = argument;
    snk_redis_call call;
    snk_redis_call_init(&call);
    for (bool lock = true; goes_on(self) || !lock; lock = !lock) {
        char key[32];
        char owner[64];
        char channel[48];
        snprintf(key, sizeof key, "lock:bench-%d", self->number);
        snprintf(owner, sizeof owner, "7f3c1b52-3f0e-4a4c-9b55-0c4b7f2f9f10:%d", self->number);
        snprintf(channel, sizeof channel, "lock:release:bench-%d", self->number);
        const char *words[] = {
            "EVALSHA", lock ? lock_sha : unlock_sha, "2", key, channel, "30000", owner, "released"
        };
        sneck_error error;
        if (snk_redis_call_format(&call, 8, words, NULL, &error) != SNECK_OK)
            die(error.message);
        snk_redis_drive(self->run->redis, &(snk_redis_call *){ &call }, 1);
        if (call.outcome != SNK_REDIS_REPLY)
            die(call.error.message);
        check(call.reply, lock);
        self->pairs += !lock;
    }
    snk_redis_call_deinit(&call);
    return NULL;
}

/* ---- Runs ---- */

static void pin(pid_t pid, bool one_core)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    for (size_t i = 0; i < (one_core ? 1 : (size_t)sysconf(_SC_NPROCESSORS_ONLN)); i++)
        CPU_SET(i, &set);
    sched_setaffinity(pid, sizeof set, &set);
}

static void open_designs(bench_run *run)
{
    static io_thread io;
    if (run->work == work_iot) {
        io = (io_thread){ .fd = dial(), .wake_fd = eventfd(0, EFD_NONBLOCK) };
        io.last = &io.first;
        io.waiting_last = &io.waiting;
        pthread_mutex_init(&io.mutex, NULL);
        run->io = &io;
        pthread_create(&io.thread, NULL, run_io, &io);
    }
    if (run->work == work_ours) {
        snk_redis_config config = { .host = "127.0.0.1", .port = server.port };
        sneck_error error;
        if (snk_redis_open(&config, &run->redis, &error) != SNECK_OK)
            die(error.message);
    }
}

static void close_designs(bench_run *run)
{
    if (run->io != NULL) {
        io_submit(run->io, NULL);
        pthread_join(run->io->thread, NULL);
        close(run->io->fd);
        close(run->io->wake_fd);
    }
    snk_redis_close(run->redis);
}

static double cpu_seconds(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

typedef struct outcome {
    double pairs_per_second;
    double cpu_us_per_pair; /* of the client */
} outcome;

static outcome measure(void *(*work)(void *), int thread_count, double seconds, bool one_core)
{
    static bench_run run;
    memset(&run, 0, sizeof run);
    run.work = work;
    run.thread_count = work == work_deep ? 1 : thread_count;
    pin(server.pid, one_core);
    pin(0, one_core);
    open_designs(&run);
    double cpu = cpu_seconds();
    int64_t start = snk_now_ns();
    for (int i = 0; i < run.thread_count; i++) {
        run.workers[i].number = i;
        run.workers[i].run = &run;
        pthread_create(&run.workers[i].thread, NULL, work, &run.workers[i]);
    }
    struct timespec length = snk_timespec((int64_t)(seconds * SNK_NS_PER_S));
    nanosleep(&length, NULL);
    atomic_store_explicit(&run.stop, true, memory_order_relaxed);
    uint64_t pairs = 0;
    for (int i = 0; i < run.thread_count; i++) {
        pthread_join(run.workers[i].thread, NULL);
        pairs += run.workers[i].pairs;
    }
    double elapsed = (double)(snk_now_ns() - start) / SNK_NS_PER_S;
    cpu = cpu_seconds() - cpu;
    close_designs(&run);
    return (outcome){ (double)pairs / elapsed, cpu * 1e6 / (double)pairs };
}

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;
    return (left > right) - (left < right);
}

static double median(double values[], int count)
{
    qsort(values, (size_t)count, sizeof values[0], compare);
    return values[count / 2];
}

enum {
    OWN,
    IOT,
    OURS,
    DEEP,
    DESIGNS
};

static void compare_designs(int threads, double seconds, int rounds, bool one_core)
{
    static void *(*const works[DESIGNS])(void *) = { work_own, work_iot, work_ours, work_deep };
    static double rate[DESIGNS][ROUNDS_MAX];
    static double cpu[DESIGNS][ROUNDS_MAX];
    static double ratio[DESIGNS][ROUNDS_MAX]; /* of ours to that */
    for (int i = 0; i < rounds; i++) {
        for (int design = 0; design < DESIGNS; design++) {
            outcome result = measure(works[design], threads, seconds, one_core);
            rate[design][i] = result.pairs_per_second;
            cpu[design][i] = result.cpu_us_per_pair;
        }
        for (int design = 0; design < DESIGNS; design++)
            ratio[design][i] = rate[OURS][i] / rate[design][i];
    }
    printf("%-5s %7d", one_core ? "one" : "all", threads);
    for (int design = 0; design < DESIGNS; design++)
        printf(" %8.0f", median(rate[design], rounds));
    printf(" |");
    for (int design = 0; design < DESIGNS; design++)
        printf(" %6.1f", median(cpu[design], rounds));
    printf(" | %8.2f %8.2f %9.2f\n", median(ratio[OWN], rounds), median(ratio[IOT], rounds),
           median(ratio[DEEP], rounds));
    fflush(stdout);
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? strtod(argv[1], NULL) : 0.5;
    int rounds = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 5;
    rounds = rounds < 1 ? 1 : rounds > ROUNDS_MAX ? ROUNDS_MAX : rounds;
    if (!redis_server_start(&server, NULL))
        die("redis-server does not start");
    snk_redis_config config = { .host = "127.0.0.1", .port = server.port };
    sneck_error error;
    if (snk_redis_settings_init(&settings, &config, &error) != SNECK_OK)
        die(error.message);
    load(lock_script, lock_sha);
    load(unlock_script, unlock_sha);
    printf("cores threads    own/s    iot/s   ours/s   deep/s | us cpu: own, iot, ours, deep |"
           " ours/own ours/iot ours/deep\n");
    static const int defaults[] = { 1, 2, 8, 16, 64 };
    for (int core = 0; core < 2; core++) {
        for (int i = 0; i < (argc > 3 ? argc - 3 : 5); i++) {
            int threads = argc > 3 ? (int)strtol(argv[3 + i], NULL, 10) : defaults[i];
            if (threads >= 1 && threads <= THREADS_MAX)
                compare_designs(threads, seconds, rounds, core == 1);
        }
    }
    snk_redis_settings_deinit(&settings);
    redis_server_stop(&server);
    return 0;
}
