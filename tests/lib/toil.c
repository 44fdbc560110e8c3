#include "toil.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "process.h"
#include "redis_bed.h"
#include "sneck.h"
#include "test.h"

#define LOCK TOIL_TAG "toil"

/* ---- The resource ---- */

static void lock_resource(toil *work)
{
    /* A worker that is killed inside would leave it locked; none is. */
    if (pthread_mutex_lock(&work->mutex) != 0)
        _exit(2);
}

/* A token is shown: false when a higher one was seen before. */
static bool show_locked(toil *work, uint64_t token)
{
    if (token < work->highest) {
        work->refused++;
        return false;
    }
    work->highest = token;
    return true;
}

static bool read_value(toil *work, uint64_t token, int64_t *value)
{
    lock_resource(work);
    bool shown = show_locked(work, token);
    *value = work->value;
    (void)pthread_mutex_unlock(&work->mutex);
    return shown;
}

static void write_value(toil *work, uint64_t token, int64_t value)
{
    lock_resource(work);
    if (show_locked(work, token)) {
        work->lost_updates += value != work->value + 1;
        work->value = value;
        work->accepted++;
    }
    (void)pthread_mutex_unlock(&work->mutex);
}

static uint64_t look_at_highest(toil *work)
{
    lock_resource(work);
    uint64_t highest = work->highest;
    (void)pthread_mutex_unlock(&work->mutex);
    return highest;
}

static void note_grant(toil *work, uint64_t token, uint64_t floor)
{
    lock_resource(work);
    work->falling += token <= floor;
    if (work->token_count < TOIL_TOKENS_MAX)
        work->tokens[work->token_count++] = token;
    (void)pthread_mutex_unlock(&work->mutex);
}

/* ---- A worker ---- */

typedef struct worker {
    toil *work;
    size_t number;
} worker;

static void do_turn(const worker *self, sneck_lock *lock)
{
    toil *work = self->work;
    sneck_error error;
    uint64_t floor = look_at_highest(work);
    if (sneck_acquire(lock, 10000, &error) != SNECK_OK) {
        (void)atomic_fetch_add(&work->failures, 1);
        (void)usleep(2000);
        return;
    }
    uint64_t token = sneck_token(lock);
    int64_t value = 0;
    if (token != 0) { /* else it was lost in this moment */
        note_grant(work, token, floor);
        if (read_value(work, token, &value))
            write_value(work, token, value + 1);
        atomic_store(&work->served_at_ns[self->number], snk_now_ns());
        (void)atomic_fetch_add(&work->grants, 1);
    }
    if (sneck_release(lock, &error) == SNECK_LOST)
        (void)atomic_fetch_add(&work->told, 1);
    (void)usleep(1000); /* the servers need the processors too */
}

static int run(void *context)
{
    const worker *self = context;
    sneck_client_options options = SNECK_CLIENT_OPTIONS_INIT;
    options.lease_ms = self->work->lease_ms;
    sneck_error error;
    sneck_client *client = NULL;
    sneck_lock *lock = NULL;
    test_child_expect(sneck_open(self->work->url, &options, &client, &error), SNECK_OK, &error, "open");
    test_child_expect(sneck_mutex(client, LOCK, NULL, &lock, &error), SNECK_OK, &error, "mutex");
    test_signal(&self->work->ready);
    while (atomic_load(&self->work->stop) == 0)
        do_turn(self, lock);
    sneck_lock_free(lock);
    sneck_close(client);
    return 0;
}

toil *toil_start(const char *url, int64_t lease_ms)
{
    toil *work = test_share(sizeof *work);
    (void)snprintf(work->url, sizeof work->url, "%s", url);
    work->lease_ms = lease_ms;
    pthread_mutexattr_t attributes;
    assert_int_equal(pthread_mutexattr_init(&attributes), 0);
    assert_int_equal(pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED), 0);
    assert_int_equal(pthread_mutex_init(&work->mutex, &attributes), 0);
    for (size_t i = 0; i < TOIL_PROCESSES; i++)
        work->workers[i] = test_spawn(run, &(worker){ .work = work, .number = i });
    assert_true(test_await(&work->ready, TOIL_PROCESSES));
    return work;
}

static int compare(const void *a, const void *b)
{
    uint64_t first = *(const uint64_t *)a;
    uint64_t second = *(const uint64_t *)b;
    return first < second ? -1 : first > second;
}

void toil_stop(toil *work)
{
    atomic_store(&work->stop, 1);
    for (size_t i = 0; i < TOIL_PROCESSES; i++)
        assert_int_equal(test_join(work->workers[i]), 0);
    qsort(work->tokens, work->token_count, sizeof work->tokens[0], compare);
    size_t repeated = 0;
    for (size_t i = 1; i < work->token_count; i++)
        repeated += work->tokens[i] == work->tokens[i - 1];
    printf("# figure: %zu grants to %d processes: %zu tokens twice, %llu below one seen before, %llu writes accepted, "
           "%llu refused, %llu updates lost; %llu acquires failed, %llu holds were told of their end\n",
           work->token_count, TOIL_PROCESSES, repeated, (unsigned long long)work->falling,
           (unsigned long long)work->accepted, (unsigned long long)work->refused,
           (unsigned long long)work->lost_updates, (unsigned long long)atomic_load(&work->failures),
           (unsigned long long)atomic_load(&work->told));
    assert_int_equal(repeated, 0);
    assert_int_equal(work->falling, 0);
    assert_int_equal(work->lost_updates, 0);
    assert_int_equal(work->value, work->accepted);
    (void)pthread_mutex_destroy(&work->mutex);
    (void)munmap(work, sizeof *work);
}

static size_t count_served(toil *work, int64_t since_ns, int64_t *last_ns)
{
    size_t served = 0;
    *last_ns = 0;
    for (size_t i = 0; i < TOIL_PROCESSES; i++) {
        int64_t at_ns = atomic_load(&work->served_at_ns[i]);
        served += at_ns > since_ns;
        *last_ns = at_ns > *last_ns ? at_ns : *last_ns;
    }
    return served;
}

static int64_t await_served(toil *work, int64_t since_ns, size_t count)
{
    int64_t limit_ns = snk_now_ns() + test_patience_ns();
    int64_t last_ns = 0;
    size_t served = 0;
    while ((served = count_served(work, since_ns, &last_ns)) < count) {
        if (snk_now_ns() > limit_ns)
            fail_msg("only %zu of %d processes go on", served, TOIL_PROCESSES);
        redis_bed_pause(1);
    }
    return snk_now_ns() - since_ns;
}

int64_t toil_await_all_ns(toil *work, int64_t since_ns)
{
    return await_served(work, since_ns, TOIL_PROCESSES);
}

int64_t toil_await_any_ns(toil *work, int64_t since_ns)
{
    return await_served(work, since_ns, 1);
}
