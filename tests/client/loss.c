/* Renewal, the end of leases, and what is left of a hold that was lost. */
#include "bed.h"

#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "client/supervise.h"
#include "engine/deadline.h"

/* A long lease with frequent renewals: loss by force is found soon, and long before the lease would end. */
static sneck_lock_options quick(const test_bed *bed)
{
    sneck_lock_options options = SNECK_LOCK_OPTIONS_INIT;
    options.lease_ms = bed->lease_max_ms / 2;
    options.renew_ms = 30;
    return options;
}

static void await_loss(sneck_lock *lock)
{
    int fd = sneck_lost_fd(lock);
    assert_true(fd >= 0);
    assert_true(test_readable(fd, TEST_PATIENCE_MS));
}

static void test_renewal_keeps_a_lock_over_three_leases(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    sneck_lock_options options = SNECK_LOCK_OPTIONS_INIT;
    options.lease_ms = 1000;
    options.renew_ms = 30;
    sneck_lock *lock = test_mutex(bed->client, "a", &options);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    uint64_t token = sneck_token(lock);
    assert_false(test_readable(sneck_lost_fd(lock), 3 * 1000 + 100));
    assert_true(sneck_token(lock) == token);
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    sneck_lock_free(lock);
}

static void test_a_hold_for_a_time_ends_with_it(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    sneck_lock_options options = quick(bed); /* would be renewed, if acquired otherwise */
    sneck_lock *lock = test_mutex(bed->client, "a", &options);
    int64_t began_ms = test_now_ms();
    EXPECT(SNECK_OK, sneck_acquire_for(lock, 0, 500, &error));
    assert_in_range(sneck_remaining_ms(lock), 0, 500);
    await_loss(lock);
    assert_true(test_now_ms() - began_ms >= 400);
    assert_false(sneck_is_held(lock));
    assert_int_equal(sneck_hold_count(lock), 0);
    assert_true(sneck_token(lock) == 0);
    assert_true(sneck_remaining_ms(lock) == 0);
    EXPECT(SNECK_LOST, sneck_release(lock, &error));
    EXPECT(SNECK_NOT_OWNER, sneck_release(lock, &error));
    EXPECT(SNECK_OK, sneck_acquire(lock, TEST_PATIENCE_MS, &error));
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    sneck_lock_free(lock);
}

static void test_a_hold_for_a_time_can_be_extended(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    sneck_lock *lock = test_mutex(bed->client, "a", NULL);
    EXPECT(SNECK_OK, sneck_acquire_for(lock, 0, 1000, &error));
    int fd = sneck_lost_fd(lock);
    EXPECT(SNECK_OK, sneck_extend(lock, bed->lease_max_ms, &error));
    assert_false(test_readable(fd, 1100)); /* it follows the new deadline */
    assert_true(sneck_is_held(lock));
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    assert_false(test_readable(fd, 0));
    sneck_lock_free(lock);
}

static void test_each_level_of_a_lost_hold_says_so_once(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    sneck_lock_options options = quick(bed);
    sneck_lock *lock = test_mutex(bed->client, "a", &options);
    for (int i = 0; i < 3; i++)
        EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    int fd = sneck_lost_fd(lock);
    test_break(bed->client, "a");
    assert_true(test_readable(fd, TEST_PATIENCE_MS));
    assert_false(sneck_is_held(lock));
    assert_true(sneck_token(lock) == 0);
    assert_int_equal(sneck_lost_fd(lock), -1);
    assert_true(test_readable(fd, 0));                              /* it stays so until it is armed anew */
    EXPECT(SNECK_LOST, sneck_acquire(lock, SNECK_FOREVER, &error)); /* no level is added */
    EXPECT(SNECK_LOST, sneck_extend(lock, 1000, &error));
    for (int i = 0; i < 3; i++)
        EXPECT(SNECK_LOST, sneck_release(lock, &error));
    EXPECT(SNECK_NOT_OWNER, sneck_release(lock, &error));
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    assert_int_equal(sneck_hold_count(lock), 1);
    assert_int_equal(sneck_lost_fd(lock), fd);
    assert_false(test_readable(fd, 0));
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    sneck_lock_free(lock);
}

static void test_others_go_on_while_a_loser_has_levels_left(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    sneck_lock_options options = quick(bed);
    options.owner = SNECK_OWNER_HANDLE;
    sneck_lock *loser = test_mutex(bed->client, "a", &options);
    sneck_lock *next = test_mutex(bed->client, "a", &options);
    EXPECT(SNECK_OK, sneck_acquire(loser, 0, &error));
    uint64_t token = sneck_token(loser);
    int fd = sneck_lost_fd(loser);
    test_break(bed->client, "a");
    assert_true(test_readable(fd, TEST_PATIENCE_MS));
    EXPECT(SNECK_OK, sneck_acquire(next, TEST_PATIENCE_MS, &error));
    assert_true(sneck_token(next) > token);
    EXPECT(SNECK_LOST, sneck_release(loser, &error)); /* and nothing of the next one's */
    EXPECT(SNECK_NOT_OWNER, sneck_release(loser, &error));
    assert_true(sneck_is_held(next));
    assert_true(test_is_held_in_store(bed->client, "a"));
    EXPECT(SNECK_OK, sneck_release(next, &error));
    sneck_lock_free(loser);
    sneck_lock_free(next);
}

static void test_a_broken_lock_is_lost_at_the_release_at_the_latest(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    sneck_lock_options options = SNECK_LOCK_OPTIONS_INIT;
    options.renew_ms = SNECK_NEVER;
    sneck_lock *lock = test_mutex(bed->client, "a", &options);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    test_break(bed->client, "a");
    EXPECT(SNECK_LOST, sneck_release(lock, &error));
    EXPECT(SNECK_NOT_OWNER, sneck_release(lock, &error));
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    test_break(bed->client, "a");
    EXPECT(SNECK_LOST, sneck_extend(lock, 1000, &error));
    EXPECT(SNECK_LOST, sneck_release(lock, &error));
    sneck_lock_free(lock);
}

static void test_a_loss_that_the_release_finds_is_told_and_counted(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    sneck_client *client = test_open(bed, NULL);
    assert_true(sneck_event_fd(client) >= 0);
    sneck_lock_options options = SNECK_LOCK_OPTIONS_INIT;
    options.renew_ms = SNECK_NEVER;
    sneck_lock *lock = test_mutex(client, "a", &options);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    uint64_t token = sneck_token(lock);
    test_break(client, "a");
    EXPECT(SNECK_LOST, sneck_release(lock, &error));
    sneck_event lost = test_await_event(client, SNECK_EVENT_LOST);
    assert_int_equal(lost.cause, SNECK_CAUSE_GONE);
    assert_true(lost.token == token);
    assert_int_equal(test_health(client).lost, 1);
    assert_true(test_await_event(client, SNECK_EVENT_BROKEN).token == token);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    assert_int_equal(test_health(client).lost, 1);
    sneck_lock_free(lock);
    sneck_close(client);
}

static void *break_when_wanted(void *argument)
{
    sneck_client *client = argument;
    while (test_queue_in_store(client, "a") == 0)
        (void)usleep(1000);
    test_break(client, "a");
    return NULL;
}

/* That is what locks are broken for. */
static void test_a_lock_that_is_broken_for_somebody_who_waits_is_told_so(void **state)
{
    test_bed *bed = *state;
    if (strcmp(bed->url, "memory:") == 0)
        test_skip("two clients share no memory store");
    test_needs_order(bed); /* who waits is in the store's queue */
    sneck_error error;
    sneck_client_options client_options = SNECK_CLIENT_OPTIONS_INIT;
    client_options.watchdog_ms = 600000; /* only when it is told to */
    sneck_client *client = test_open(bed, &client_options);
    assert_true(sneck_event_fd(client) >= 0);
    sneck_lock_options options = SNECK_LOCK_OPTIONS_INIT;
    options.renew_ms = SNECK_NEVER;
    sneck_lock *lock = test_mutex(client, "a", &options);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    uint64_t token = sneck_token(lock);
    sneck_lock *other = test_handle(bed->client, "a"); /* another owner: its thread has the lock */
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, break_when_wanted, bed->client), 0);
    EXPECT(SNECK_OK, sneck_acquire(other, TEST_PATIENCE_MS, &error));
    assert_int_equal(pthread_join(thread, NULL), 0);
    test_find_loss(client, 1);
    assert_true(test_await_event(client, SNECK_EVENT_LOST).token == token);
    assert_true(test_await_event(client, SNECK_EVENT_BROKEN).token == token);
    sneck_lock_free(lock);
    sneck_lock_free(other);
    sneck_close(client);
}

static void test_many_locks_are_renewed_together(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    unsigned count = test_scaled(3000);
    if (strstr(bed->url, "mode=row") != NULL && count > 100)
        count = 100; /* each has a connection of its own */
    sneck_lock_options options = SNECK_LOCK_OPTIONS_INIT;
    options.lease_ms = 6000;
    options.renew_ms = 200;
    sneck_lock **locks = calloc(count, sizeof(sneck_lock *));
    assert_non_null(locks);
    for (unsigned i = 0; i < count; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "lock/%u", i);
        locks[i] = test_mutex(bed->client, name, &options);
        EXPECT(SNECK_OK, sneck_acquire(locks[i], 0, &error));
    }
    assert_false(test_readable(sneck_lost_fd(locks[0]), 6500));
    for (unsigned i = 0; i < count; i++) {
        EXPECT(SNECK_OK, sneck_release(locks[i], &error));
        sneck_lock_free(locks[i]);
    }
    free(locks);
}

static void test_the_mirror_shows_the_deadline_of_each_step(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    sneck_lock_options options = quick(bed);
    sneck_lock *lock = test_mutex(bed->client, "a", &options);
    _Atomic int64_t word = -7;
    snk_lock_mirror_deadline(lock, &word);
    assert_true(atomic_load(&word) == SNK_DEADLINE_NONE);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    int64_t first_ns = atomic_load(&word);
    assert_true(first_ns > test_now_ms() * 1000000);
    EXPECT(SNECK_OK, sneck_extend(lock, bed->lease_max_ms, &error));
    assert_true(atomic_load(&word) > first_ns);
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    assert_true(atomic_load(&word) == SNK_DEADLINE_NONE);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    int fd = sneck_lost_fd(lock);
    test_break(bed->client, "a");
    assert_true(test_readable(fd, TEST_PATIENCE_MS));
    assert_true(atomic_load(&word) == SNK_DEADLINE_LOST);
    snk_lock_mirror_deadline(lock, NULL);
    EXPECT(SNECK_LOST, sneck_release(lock, &error));
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    assert_true(atomic_load(&word) == SNK_DEADLINE_LOST);
    sneck_lock_free(lock);
}

static void test_a_claim_is_forgotten_by_its_id(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    sneck_lock_options options = SNECK_LOCK_OPTIONS_INIT;
    options.renew_ms = SNECK_NEVER;
    sneck_lock *lock = test_mutex(bed->client, "a", &options);
    snk_id claim;
    assert_false(snk_lock_claim(lock, &claim));
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    assert_true(snk_lock_claim(lock, &claim));
    EXPECT(SNECK_OK, snk_client_forget(bed->client, "a", &claim, &error));
    EXPECT(SNECK_LOST, snk_client_forget(bed->client, "a", &claim, &error));
    assert_false(test_is_held_in_store(bed->client, "a"));
    EXPECT(SNECK_LOST, sneck_release(lock, &error));
    sneck_lock_free(lock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_renewal_keeps_a_lock_over_three_leases),
        cmocka_unit_test(test_a_hold_for_a_time_ends_with_it),
        cmocka_unit_test(test_a_hold_for_a_time_can_be_extended),
        cmocka_unit_test(test_each_level_of_a_lost_hold_says_so_once),
        cmocka_unit_test(test_others_go_on_while_a_loser_has_levels_left),
        cmocka_unit_test(test_a_broken_lock_is_lost_at_the_release_at_the_latest),
        cmocka_unit_test(test_a_loss_that_the_release_finds_is_told_and_counted),
        cmocka_unit_test(test_a_lock_that_is_broken_for_somebody_who_waits_is_told_so),
        cmocka_unit_test(test_many_locks_are_renewed_together),
        cmocka_unit_test(test_the_mirror_shows_the_deadline_of_each_step),
        cmocka_unit_test(test_a_claim_is_forgotten_by_its_id),
    };
    return test_run_on_stores(tests, sizeof tests / sizeof tests[0]);
}
