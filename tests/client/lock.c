/* Acquire, release and what belongs to them, without anybody waiting. */
#include "bed.h"

#include <string.h>
#include <unistd.h>

static void test_255_levels_work_and_the_next_is_a_limit(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    sneck_lock *lock = test_mutex(bed->client, "a", NULL);
    for (unsigned level = 1; level <= 255; level++) {
        EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
        assert_int_equal(sneck_hold_count(lock), level);
    }
    EXPECT(SNECK_LIMIT, sneck_acquire(lock, 0, &error));
    assert_int_equal(sneck_hold_count(lock), 255);
    for (unsigned level = 255; level > 0; level--) {
        assert_true(test_is_held_in_store(bed->client, "a"));
        EXPECT(SNECK_OK, sneck_release(lock, &error));
    }
    assert_false(test_is_held_in_store(bed->client, "a"));
    EXPECT(SNECK_NOT_OWNER, sneck_release(lock, &error));
    sneck_lock_free(lock);
}

static void release_as_stranger(void *argument)
{
    sneck_error error;
    EXPECT(SNECK_NOT_OWNER, sneck_release(argument, &error));
    EXPECT(SNECK_NOT_OWNER, sneck_extend(argument, 5000, &error));
    EXPECT(SNECK_BUSY, sneck_acquire(argument, 0, &error));
    assert_false(sneck_is_held(argument));
    assert_int_equal(sneck_hold_count(argument), 0);
    assert_true(sneck_token(argument) == 0);
    assert_true(sneck_remaining_ms(argument) == 0);
    assert_int_equal(sneck_lost_fd(argument), -1);
}

static void test_another_thread_can_neither_release_nor_take_it(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    sneck_lock *lock = test_mutex(bed->client, "a", NULL);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    test_on_thread(release_as_stranger, lock);
    assert_true(sneck_is_held(lock));
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    sneck_lock_free(lock);
}

static void test_a_holder_knows_token_and_time(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    sneck_lock *lock = test_mutex(bed->client, "a", NULL);
    uint64_t last = 0;
    for (int i = 0; i < 5; i++) {
        assert_false(sneck_is_held(lock));
        EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
        assert_true(sneck_is_held(lock));
        assert_true(sneck_token(lock) > last);
        last = sneck_token(lock);
        assert_in_range(sneck_remaining_ms(lock), 1, 30000);
        EXPECT(SNECK_OK, sneck_release(lock, &error));
        assert_true(sneck_token(lock) == 0);
    }
    sneck_lock_free(lock);
}

static void test_two_handles_share_the_lock_of_their_name(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    sneck_lock *one = test_mutex(bed->client, "a", NULL);
    sneck_lock *two = test_mutex(bed->client, "a", NULL);
    sneck_lock *other = test_mutex(bed->client, "b", NULL);
    EXPECT(SNECK_OK, sneck_acquire(one, 0, &error));
    EXPECT(SNECK_OK, sneck_acquire(two, 0, &error));
    EXPECT(SNECK_OK, sneck_acquire(other, 0, &error));
    assert_int_equal(sneck_hold_count(one), 2);
    assert_int_equal(sneck_hold_count(other), 1);
    sneck_lock_free(one); /* the other handle can release it */
    assert_int_equal(sneck_hold_count(two), 2);
    EXPECT(SNECK_OK, sneck_release(two, &error));
    EXPECT(SNECK_OK, sneck_release(two, &error));
    assert_false(test_is_held_in_store(bed->client, "a"));
    assert_true(test_is_held_in_store(bed->client, "b"));
    sneck_lock_free(two);
    sneck_lock_free(other);
    assert_false(test_is_held_in_store(bed->client, "b")); /* only that handle could release it */
}

static void acquire_busy(void *argument)
{
    sneck_error error;
    EXPECT(SNECK_OK, sneck_release(argument, &error));
}

static void test_a_handle_can_own_for_itself(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    sneck_lock *one = test_handle(bed->client, "a");
    sneck_lock *two = test_handle(bed->client, "a");
    EXPECT(SNECK_OK, sneck_acquire(one, 0, &error));
    EXPECT(SNECK_OK, sneck_acquire(one, 0, &error));
    EXPECT(SNECK_BUSY, sneck_acquire(two, 0, &error));
    EXPECT(SNECK_NOT_OWNER, sneck_release(two, &error));
    test_on_thread(acquire_busy, one); /* whichever thread calls */
    EXPECT(SNECK_OK, sneck_release(one, &error));
    EXPECT(SNECK_OK, sneck_acquire(two, 0, &error));
    sneck_lock_free(two); /* with a hold: it is released */
    assert_false(test_is_held_in_store(bed->client, "a"));
    sneck_lock_free(one);
}

static void test_a_handle_that_is_not_reentrant_says_deadlock(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    sneck_lock_options options = SNECK_LOCK_OPTIONS_INIT;
    options.reentrant = false;
    sneck_lock *lock = test_mutex(bed->client, "a", &options);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    EXPECT(SNECK_DEADLOCK, sneck_acquire(lock, SNECK_FOREVER, &error));
    assert_int_equal(sneck_hold_count(lock), 1);
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    sneck_lock_free(lock);
}

static sneck_status do_work(void *context, sneck_lock *lock)
{
    assert_true(sneck_is_held(lock));
    return *(const sneck_status *)context;
}

static sneck_status do_other(void *context, sneck_lock *lock)
{
    (void)context;
    assert_false(sneck_is_held(lock));
    return SNECK_CONFLICT;
}

static sneck_status lose_it(void *context, sneck_lock *lock)
{
    int fd = sneck_lost_fd(lock);
    test_break(context, "a");
    assert_true(test_readable(fd, TEST_PATIENCE_MS));
    return SNECK_OK;
}

static void test_with_releases_whatever_the_work_returns(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    sneck_lock *lock = test_handle(bed->client, "a");
    sneck_lock *other = test_handle(bed->client, "a");
    sneck_status result = SNECK_OK;
    EXPECT(SNECK_OK, sneck_with(lock, 0, do_work, NULL, &result, &error));
    assert_false(sneck_is_held(lock));
    result = SNECK_CONFLICT;
    EXPECT(SNECK_CONFLICT, sneck_with(lock, 0, do_work, NULL, &result, &error));
    assert_false(sneck_is_held(lock));
    EXPECT(SNECK_OK, sneck_acquire(other, 0, &error));
    EXPECT(SNECK_BUSY, sneck_with(lock, 0, do_work, NULL, &result, &error));
    EXPECT(SNECK_CONFLICT, sneck_with(lock, 0, do_work, do_other, &result, &error));
    EXPECT(SNECK_CONFLICT, sneck_with(lock, 20, do_work, do_other, &result, &error));
    EXPECT(SNECK_OK, sneck_release(other, &error));
    EXPECT(SNECK_INVALID, sneck_with(lock, -5, do_work, do_other, &result, &error));
    EXPECT(SNECK_INVALID, sneck_with(lock, 0, NULL, do_other, &result, &error));
    sneck_lock_free(other);
    sneck_lock_free(lock);
}

static void test_with_says_so_when_the_lock_was_lost_on_the_way(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    sneck_lock_options options = SNECK_LOCK_OPTIONS_INIT;
    options.lease_ms = 600;
    options.renew_ms = 50;
    sneck_lock *lock = test_mutex(bed->client, "a", &options);
    EXPECT(SNECK_LOST, sneck_with(lock, 0, lose_it, NULL, bed->client, &error));
    EXPECT(SNECK_NOT_OWNER, sneck_release(lock, &error));
    sneck_lock_free(lock);
}

static void test_extend_prolongs_and_never_shortens(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    sneck_lock *lock = test_mutex(bed->client, "a", NULL);
    EXPECT(SNECK_NOT_OWNER, sneck_extend(lock, 5000, &error));
    int64_t long_ms = bed->lease_max_ms;
    EXPECT(SNECK_OK, sneck_acquire_for(lock, 0, long_ms / 2, &error));
    EXPECT(SNECK_OK, sneck_extend(lock, 1000, &error));
    assert_true(sneck_remaining_ms(lock) > long_ms / 4);
    EXPECT(SNECK_OK, sneck_extend(lock, long_ms, &error));
    assert_true(sneck_remaining_ms(lock) > long_ms / 2);
    EXPECT(SNECK_INVALID, sneck_extend(lock, 99, &error));
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    sneck_lock_free(lock);
}

static void test_names_are_limited_and_come_back(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    sneck_client_options options = SNECK_CLIENT_OPTIONS_INIT;
    options.max_locks = 2;
    sneck_client *client = test_open(bed, &options);
    sneck_lock *one = test_mutex(client, "a", NULL);
    sneck_lock *again = test_mutex(client, "a", NULL);
    sneck_lock *two = test_mutex(client, "b", NULL);
    sneck_lock *three = NULL;
    EXPECT(SNECK_LIMIT, sneck_mutex(client, "c", NULL, &three, &error));
    assert_null(three);
    sneck_lock_free(one);
    EXPECT(SNECK_LIMIT, sneck_mutex(client, "c", NULL, &three, &error));
    sneck_lock_free(again);
    three = test_mutex(client, "c", NULL);
    sneck_lock_free(two);
    sneck_lock_free(three);
    sneck_close(client);
}

static bool count_local(void *context, const sneck_local *local)
{
    unsigned *counts = context;
    counts[0]++;
    counts[1] += local->holds;
    if (local->holds > 0)
        assert_true(local->token > 0 && local->remaining_ms > 0);
    return strcmp(local->name, "lock/49") != 0;
}

static void test_list_local_shows_what_is_held_here(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    sneck_lock *locks[100];
    for (int i = 0; i < 100; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "lock/%d", i);
        locks[i] = test_mutex(bed->client, name, NULL);
        if (i % 2 == 1)
            EXPECT(SNECK_OK, sneck_acquire(locks[i], 0, &error));
    }
    EXPECT(SNECK_OK, sneck_acquire(locks[1], 0, &error));
    unsigned counts[2] = { 0 };
    sneck_list_local(bed->client, count_local, counts);
    assert_int_equal(counts[0], 25); /* it stops where the callback says so */
    assert_int_equal(counts[1], 26);
    for (int i = 0; i < 100; i++)
        sneck_lock_free(locks[i]);
    counts[0] = 0;
    sneck_list_local(bed->client, count_local, counts);
    assert_int_equal(counts[0], 0);
}

#define NAMES_SIZE 256

static bool collect_names(void *context, const sneck_info *info)
{
    test_append(context, NAMES_SIZE, info->name);
    test_append(context, NAMES_SIZE, " ");
    return true;
}

static void test_inspect_list_and_break_show_the_holder(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    sneck_lock_options options = SNECK_LOCK_OPTIONS_INIT;
    options.why = "counting stock";
    sneck_lock *lock = test_mutex(bed->client, "stock/42", &options);
    sneck_lock *other = test_mutex(bed->client, "other", NULL);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    EXPECT(SNECK_OK, sneck_acquire(other, 0, &error));
    sneck_info *info = NULL;
    EXPECT(SNECK_OK, sneck_inspect(bed->client, "stock/42", &info, &error));
    assert_true(info->held);
    assert_string_equal(info->name, "stock/42");
    assert_string_equal(info->holder.why, "counting stock");
    assert_true(info->holder.pid == getpid());
    assert_true(info->token == sneck_token(lock));
    char thread[32];
    (void)snprintf(thread, sizeof thread, ":%d", (int)gettid());
    assert_non_null(strstr(info->holder.owner, thread));
    sneck_info_free(info);
    char names[NAMES_SIZE] = "";
    EXPECT(SNECK_OK, sneck_list(bed->client, NULL, collect_names, names, &error));
    assert_string_equal(names, "other stock/42 ");
    names[0] = '\0';
    EXPECT(SNECK_OK, sneck_list(bed->client, "stock/*", collect_names, names, &error));
    assert_string_equal(names, "stock/42 ");
    EXPECT(SNECK_CONFLICT, sneck_break(bed->client, "stock/42", sneck_token(lock) + 1, "a test", &error));
    EXPECT(SNECK_CONFLICT, sneck_break(bed->client, "nobody", 1, "a test", &error));
    EXPECT(SNECK_OK, sneck_break(bed->client, "stock/42", sneck_token(lock), "a test", &error));
    EXPECT(SNECK_LOST, sneck_release(lock, &error)); /* the store had to say so */
    EXPECT(SNECK_NOT_OWNER, sneck_release(lock, &error));
    sneck_lock_free(lock);
    sneck_lock_free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_255_levels_work_and_the_next_is_a_limit),
        cmocka_unit_test(test_another_thread_can_neither_release_nor_take_it),
        cmocka_unit_test(test_a_holder_knows_token_and_time),
        cmocka_unit_test(test_two_handles_share_the_lock_of_their_name),
        cmocka_unit_test(test_a_handle_can_own_for_itself),
        cmocka_unit_test(test_a_handle_that_is_not_reentrant_says_deadlock),
        cmocka_unit_test(test_with_releases_whatever_the_work_returns),
        cmocka_unit_test(test_with_says_so_when_the_lock_was_lost_on_the_way),
        cmocka_unit_test(test_extend_prolongs_and_never_shortens),
        cmocka_unit_test(test_names_are_limited_and_come_back),
        cmocka_unit_test(test_list_local_shows_what_is_held_here),
        cmocka_unit_test(test_inspect_list_and_break_show_the_holder),
    };
    return test_run_on_stores(tests, sizeof tests / sizeof tests[0]);
}
