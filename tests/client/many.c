/* So many locks at once that limits are reached: what must be done about each is done, and told in time. */
#include "bed.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* More than may be released for dead owners within a second. */
#define LEFT_BEHIND 25000
/* Many times what the queue of events has room for. */
#define LOST_AT_ONCE 50000

typedef struct many {
    sneck_client *client;
    sneck_lock **locks;
    size_t count;
    sneck_lock_options options;
} many;

static void take_all(void *argument)
{
    const many *self = argument;
    sneck_error error;
    for (size_t i = 0; i < self->count; i++)
        EXPECT(SNECK_OK, sneck_acquire(self->locks[i], 0, &error));
}

static many begin_many(size_t count, sneck_client_options client_options)
{
    sneck_error error;
    many self = { .count = count, .options = SNECK_LOCK_OPTIONS_INIT };
    EXPECT(SNECK_OK, sneck_open("memory:", &client_options, &self.client, &error));
    self.locks = calloc(count, sizeof(sneck_lock *));
    assert_non_null(self.locks);
    return self;
}

static void make_locks(many *self)
{
    for (size_t i = 0; i < self->count; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "many/%zu", i);
        self->locks[i] = test_mutex(self->client, name, &self->options);
    }
}

static void end_many(many *self)
{
    for (size_t i = 0; i < self->count; i++)
        sneck_lock_free(self->locks[i]);
    sneck_close(self->client);
    free(self->locks);
}

static void await_none_held(sneck_client *client)
{
    int64_t until_ms = test_now_ms() + TEST_PATIENCE_MS;
    while (test_health(client).held > 0) {
        if (test_now_ms() > until_ms)
            fail_msg("%llu are still held", (unsigned long long)test_health(client).held);
        (void)usleep(10000);
    }
}

static void test_all_that_a_thread_leaves_behind_is_given_back(void **state)
{
    (void)state;
    sneck_client_options options = SNECK_CLIENT_OPTIONS_INIT;
    options.watchdog_ms = 600000; /* no round is needed for it */
    many self = begin_many(LEFT_BEHIND, options);
    self.options.lease_ms = 600000;
    make_locks(&self);
    test_on_thread(take_all, &self);
    await_none_held(self.client);
    end_many(&self);
}

/* Leases that end while nobody fetches events: whoever counts on being told must not wait for a full queue. */
static void test_losses_are_told_in_time_however_many_wait_to_be_fetched(void **state)
{
    (void)state;
    sneck_client_options options = SNECK_CLIENT_OPTIONS_INIT;
    options.watchdog_ms = SNECK_NEVER;
    many self = begin_many(LOST_AT_ONCE, options);
    assert_true(sneck_event_fd(self.client) >= 0);
    self.options.lease_ms = 2000;
    self.options.renew_ms = SNECK_NEVER;
    make_locks(&self);
    take_all(&self);
    int64_t began_ms = test_now_ms();
    int64_t until_ms = began_ms + self.options.lease_ms + TEST_PATIENCE_MS / 4;
    while (test_health(self.client).lost < self.count && test_now_ms() < until_ms)
        (void)usleep(10000);
    assert_int_equal(test_health(self.client).lost, self.count);
    size_t told = 0;
    sneck_event event;
    while (sneck_event_next(self.client, &event))
        told += event.kind == SNECK_EVENT_LOST;
    assert_int_equal(told, self.count);
    end_many(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_that_a_thread_leaves_behind_is_given_back),
        cmocka_unit_test(test_losses_are_told_in_time_however_many_wait_to_be_fetched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
