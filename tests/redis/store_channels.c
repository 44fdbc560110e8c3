/* Many tasks on few locks: one connection of a client listens for all of its threads, and no channel is left behind. */
#include "test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "bed.h"
#include "redis_bed.h"

enum {
    CLIENTS = 2,
    THREADS = 32, /* of all of them */
    LOCKS = 5
};

typedef struct crew {
    sneck_client *clients[CLIENTS];
    atomic_uint next_thread;
    atomic_uint next_task;
    unsigned tasks;
    unsigned long done[LOCKS]; /* plain: only the locks keep them sound */
    atomic_uint failures;
} crew;

static void *work(void *argument)
{
    crew *self = argument;
    sneck_client *client = self->clients[atomic_fetch_add(&self->next_thread, 1) % CLIENTS];
    for (unsigned task = 0; (task = atomic_fetch_add(&self->next_task, 1)) < self->tasks;) {
        static const char *const names[LOCKS] = { "a", "b", "c", "d", "e" };
        sneck_lock *lock = test_mutex(client, names[task % LOCKS], NULL);
        if (sneck_acquire(lock, TEST_PATIENCE_MS, NULL) == SNECK_OK) {
            self->done[task % LOCKS]++;
            atomic_fetch_add(&self->failures, sneck_release(lock, NULL) != SNECK_OK);
        } else {
            atomic_fetch_add(&self->failures, 1);
        }
        sneck_lock_free(lock);
    }
    return NULL;
}

static void run_crew(crew *self)
{
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, self), 0);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    unsigned long done = 0;
    for (size_t i = 0; i < LOCKS; i++)
        done += self->done[i];
    assert_int_equal(atomic_load(&self->failures), 0);
    assert_int_equal(done, self->tasks);
}

static unsigned count_of(const char *text, const char *word)
{
    unsigned count = 0;
    for (const char *at = strstr(text, word); at != NULL; at = strstr(at + 1, word))
        count++;
    return count;
}

static void expect_no_channel_left(redis_bed *bed, const char *keys)
{
    crew self = { .tasks = test_scaled(5000) };
    for (size_t i = 0; i < CLIENTS; i++)
        self.clients[i] = redis_bed_open(bed, keys, NULL);
    run_crew(&self);
    /* A client listens once it has waited for another; by chance one may not have had to. */
    assert_in_range(count_of(redis_bed_text(bed, "CLIENT LIST TYPE pubsub"), "id="), 1, CLIENTS);
    /* Nobody waits any more: what may be left is each client's own channel. */
    redis_bed_await(bed, "EVAL return(#redis.call('PUBSUB','CHANNELS','lock:release:*')) 0", 0);
    assert_true(redis_bed_number(bed, "EVAL %s 0", "return #redis.call('PUBSUB','CHANNELS')") <= CLIENTS);
    for (size_t i = 0; i < CLIENTS; i++)
        sneck_close(self.clients[i]);
    redis_bed_await(bed, "EVAL return(#redis.call('PUBSUB','CHANNELS')) 0", 0);
}

static void test_many_tasks_leave_no_channel(void **state)
{
    expect_no_channel_left(*state, NULL);
}

static void test_many_tasks_that_are_all_woken_leave_no_channel(void **state)
{
    expect_no_channel_left(*state, "wake=all");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_many_tasks_leave_no_channel, redis_bed_set_up, redis_bed_tear_down),
        cmocka_unit_test_setup_teardown(test_many_tasks_that_are_all_woken_leave_no_channel, redis_bed_set_up,
                                        redis_bed_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
