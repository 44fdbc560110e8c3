/* Semaphores, latches, conditions and versions. */
#include <stdatomic.h>
#include <string.h>

#include "bed.h"

/* ---- Semaphores ---- */

static sneck_semaphore *open_semaphore(sneck_client *client, bool leased, int64_t permits)
{
    sneck_error error;
    sneck_semaphore *semaphore = NULL;
    sneck_semaphore_options options = SNECK_SEMAPHORE_OPTIONS_INIT;
    options.leased = leased;
    sneck_status status = sneck_semaphore_open(client, "s", &options, &semaphore, &error);
    if (status == SNECK_UNSUPPORTED)
        test_skip(error.message);
    EXPECT(SNECK_OK, status);
    EXPECT(SNECK_OK, sneck_semaphore_set_permits(semaphore, permits, &error));
    return semaphore;
}

static int64_t available(sneck_semaphore *semaphore)
{
    sneck_error error;
    int64_t count = -1;
    EXPECT(SNECK_OK, sneck_semaphore_available(semaphore, &count, &error));
    return count;
}

static void test_permits_are_taken_and_given_back(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    sneck_semaphore *semaphore = open_semaphore(bed->client, true, 3);
    sneck_permit *two = NULL;
    sneck_permit *one = NULL;
    sneck_permit *none = NULL;
    EXPECT(SNECK_OK, sneck_semaphore_acquire(semaphore, 2, 0, &two, &error));
    EXPECT(SNECK_OK, sneck_semaphore_acquire(semaphore, 1, 0, &one, &error));
    assert_int_equal(sneck_permit_units(two), 2);
    assert_true(sneck_permit_is_held(two) && sneck_permit_token(one) > sneck_permit_token(two));
    assert_true(sneck_permit_remaining_ms(one) > 0);
    assert_int_equal(available(semaphore), 0);
    EXPECT(SNECK_BUSY, sneck_semaphore_acquire(semaphore, 1, 0, &none, &error));
    assert_null(none);
    EXPECT(SNECK_OK, sneck_permit_release(two, &error));
    assert_int_equal(available(semaphore), 2);
    EXPECT(SNECK_OK, sneck_semaphore_drain(semaphore, &two, &error));
    assert_int_equal(sneck_permit_units(two), 2);
    EXPECT(SNECK_BUSY, sneck_semaphore_drain(semaphore, &none, &error));
    EXPECT(SNECK_OK, sneck_permit_release(two, &error));
    EXPECT(SNECK_OK, sneck_permit_release(one, &error));
    assert_int_equal(available(semaphore), 3);
    sneck_semaphore_free(semaphore);
}

static void test_a_lost_permit_says_so(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    sneck_semaphore *semaphore = open_semaphore(bed->client, true, 1);
    sneck_permit *permit = NULL;
    EXPECT(SNECK_OK, sneck_semaphore_acquire(semaphore, 1, 0, &permit, &error));
    test_break(bed->client, "s");
    EXPECT(SNECK_LOST, sneck_permit_release(permit, &error));
    assert_int_equal(available(semaphore), 1);
    sneck_semaphore_free(semaphore);
}

static void test_a_permit_is_prolonged(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    sneck_permit *permit = NULL;
    sneck_semaphore *semaphore = NULL;
    sneck_semaphore_options options = SNECK_SEMAPHORE_OPTIONS_INIT;
    options.lease_ms = 1000;
    options.renew_ms = SNECK_NEVER;
    EXPECT(SNECK_OK, sneck_semaphore_open(bed->client, "s", &options, &semaphore, &error));
    EXPECT(SNECK_OK, sneck_semaphore_set_permits(semaphore, 1, &error));
    EXPECT(SNECK_OK, sneck_semaphore_acquire(semaphore, 1, 0, &permit, &error));
    EXPECT(SNECK_OK, sneck_permit_extend(permit, 20000, &error));
    assert_true(sneck_permit_remaining_ms(permit) > 10000);
    EXPECT(SNECK_INVALID, sneck_permit_extend(permit, 1, &error));
    EXPECT(SNECK_INVALID, sneck_permit_extend(NULL, 20000, &error));
    test_break(bed->client, "s");
    EXPECT(SNECK_LOST, sneck_permit_extend(permit, 20000, &error));
    EXPECT(SNECK_LOST, sneck_permit_release(permit, &error));
    sneck_semaphore_free(semaphore);
}

static void test_a_plain_semaphore_counts(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    sneck_semaphore *semaphore = open_semaphore(bed->client, false, 2);
    sneck_permit *permit = NULL;
    EXPECT(SNECK_OK, sneck_semaphore_acquire(semaphore, 2, 0, &permit, &error));
    assert_int_equal(available(semaphore), 0);
    EXPECT(SNECK_OK, sneck_semaphore_add(semaphore, 3, &error)); /* by anybody */
    assert_int_equal(available(semaphore), 3);
    EXPECT(SNECK_INVALID, sneck_permit_extend(permit, 20000, &error));
    EXPECT(SNECK_OK, sneck_permit_release(permit, &error));
    assert_int_equal(available(semaphore), 5);
    EXPECT(SNECK_INVALID, sneck_semaphore_drain(semaphore, &permit, &error));
    sneck_semaphore_free(semaphore);
}

static void *wait_for_permit(void *semaphore)
{
    sneck_permit *permit = NULL;
    return (void *)(uintptr_t)sneck_semaphore_acquire(semaphore, 1, TEST_PATIENCE_MS, &permit, NULL);
}

/* Whatever came later would be granted to nobody otherwise. */
static void test_a_thread_that_is_cancelled_takes_no_permit(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    sneck_semaphore *semaphore = open_semaphore(bed->client, true, 0);
    sneck_permit *permit = NULL;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, wait_for_permit, semaphore), 0);
    test_await_waiting(bed->client, "s", 1);
    assert_int_equal(pthread_cancel(thread), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    EXPECT(SNECK_OK, sneck_semaphore_set_permits(semaphore, 1, &error));
    EXPECT(SNECK_OK, sneck_semaphore_acquire(semaphore, 1, 0, &permit, &error));
    EXPECT(SNECK_OK, sneck_permit_release(permit, &error));
    sneck_semaphore_free(semaphore);
}

static void test_bad_numbers_are_refused(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    sneck_semaphore *semaphore = open_semaphore(bed->client, true, 2);
    sneck_permit *permit = NULL;
    EXPECT(SNECK_INVALID, sneck_semaphore_acquire(semaphore, 0, 0, &permit, &error));
    EXPECT(SNECK_INVALID, sneck_semaphore_acquire(semaphore, 1, -7, &permit, &error));
    EXPECT(SNECK_INVALID, sneck_semaphore_acquire(semaphore, 1, 0, NULL, &error));
    EXPECT(SNECK_INVALID, sneck_semaphore_acquire(NULL, 1, 0, &permit, &error));
    EXPECT(SNECK_INVALID, sneck_semaphore_set_permits(semaphore, -1, &error));
    EXPECT(SNECK_INVALID, sneck_semaphore_add(semaphore, 1, &error));
    EXPECT(SNECK_INVALID, sneck_semaphore_available(semaphore, NULL, &error));
    EXPECT(SNECK_INVALID, sneck_permit_release(NULL, &error));
    sneck_semaphore_free(semaphore);
}

typedef struct crowd {
    sneck_semaphore *semaphore;
    _Atomic int inside;
    _Atomic int most;
    _Atomic int served;
} crowd;

static void *enter_again_and_again(void *argument)
{
    crowd *self = argument;
    for (unsigned i = 0; i < test_scaled(500); i++) {
        sneck_permit *permit = NULL;
        if (sneck_semaphore_acquire(self->semaphore, 1, TEST_PATIENCE_MS, &permit, NULL) != SNECK_OK)
            return NULL;
        int inside = ++self->inside;
        int most = self->most;
        while (inside > most && !atomic_compare_exchange_weak(&self->most, &most, inside))
            ;
        self->served++;
        self->inside--;
        (void)sneck_permit_release(permit, NULL);
    }
    return NULL;
}

static void test_never_more_than_the_permits_are_inside(void **state)
{
    enum {
        THREADS = 8,
        PERMITS = 3
    };
    test_bed *bed = *state;
    crowd all = { .semaphore = open_semaphore(bed->client, true, PERMITS) };
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, enter_again_and_again, &all), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(all.served, THREADS * test_scaled(500));
    assert_in_range(all.most, 1, PERMITS);
    assert_int_equal(available(all.semaphore), PERMITS);
    sneck_semaphore_free(all.semaphore);
}

/* ---- Latches ---- */

static sneck_latch *open_latch(sneck_client *client)
{
    sneck_error error;
    sneck_latch *latch = NULL;
    sneck_status status = sneck_latch_open(client, "l", NULL, &latch, &error);
    if (status == SNECK_UNSUPPORTED)
        test_skip(error.message);
    EXPECT(SNECK_OK, status);
    return latch;
}

static void *wait_for_latch(void *latch)
{
    return (void *)(uintptr_t)sneck_latch_wait(latch, TEST_PATIENCE_MS, NULL);
}

static void test_a_latch_lets_all_go_at_zero(void **state)
{
    enum {
        THREADS = 4
    };
    test_bed *bed = *state;
    sneck_error error;
    sneck_latch *latch = open_latch(bed->client);
    EXPECT(SNECK_OK, sneck_latch_wait(latch, 0, &error)); /* never set */
    EXPECT(SNECK_OK, sneck_latch_set(latch, 2, &error));
    EXPECT(SNECK_CONFLICT, sneck_latch_set(latch, 2, &error));
    EXPECT(SNECK_BUSY, sneck_latch_wait(latch, 0, &error));
    EXPECT(SNECK_TIMEOUT, sneck_latch_wait(latch, 20, &error));
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, wait_for_latch, latch), 0);
    EXPECT(SNECK_OK, sneck_latch_count_down(latch, &error));
    int64_t count = -1;
    EXPECT(SNECK_OK, sneck_latch_count(latch, &count, &error));
    assert_int_equal(count, 1);
    EXPECT(SNECK_OK, sneck_latch_count_down(latch, &error));
    for (int i = 0; i < THREADS; i++) {
        void *status = NULL;
        assert_int_equal(pthread_join(threads[i], &status), 0);
        assert_int_equal((uintptr_t)status, SNECK_OK);
    }
    EXPECT(SNECK_OK, sneck_latch_count_down(latch, &error)); /* at 0 it stays */
    EXPECT(SNECK_OK, sneck_latch_wait(latch, 0, &error));
    EXPECT(SNECK_OK, sneck_latch_set(latch, 1, &error)); /* the next generation */
    EXPECT(SNECK_INVALID, sneck_latch_set(latch, 0, &error));
    sneck_latch_free(latch);
}

/* ---- Conditions ---- */

typedef struct buffer {
    sneck_lock *lock;
    sneck_condition *changed;
    int items;
    int produced;
    int consumed;
} buffer;

static buffer open_buffer(sneck_client *client)
{
    sneck_error error;
    buffer made = { .lock = test_mutex(client, "b", NULL) };
    sneck_status status = sneck_condition_open(made.lock, "changed", &made.changed, &error);
    if (status == SNECK_UNSUPPORTED) {
        sneck_lock_free(made.lock);
        test_skip(error.message);
    }
    EXPECT(SNECK_OK, status);
    return made;
}

static void close_buffer(buffer *made)
{
    sneck_condition_free(made->changed);
    sneck_lock_free(made->lock);
}

static void test_who_does_not_hold_the_lock_cannot_wait(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    buffer shared = open_buffer(bed->client);
    EXPECT(SNECK_NOT_OWNER, sneck_condition_wait(shared.changed, SNECK_FOREVER, &error));
    EXPECT(SNECK_OK, sneck_condition_signal(shared.changed, &error)); /* nobody waits */
    close_buffer(&shared);
}

static void test_a_wait_without_a_signal_times_out_with_the_lock(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    buffer shared = open_buffer(bed->client);
    EXPECT(SNECK_OK, sneck_acquire(shared.lock, 0, &error));
    EXPECT(SNECK_OK, sneck_acquire(shared.lock, 0, &error));
    uint64_t before = sneck_token(shared.lock);
    EXPECT(SNECK_TIMEOUT, sneck_condition_wait(shared.changed, 30, &error));
    assert_int_equal(sneck_hold_count(shared.lock), 2);
    assert_true(sneck_token(shared.lock) > before); /* it was free in between */
    EXPECT(SNECK_OK, sneck_release(shared.lock, &error));
    EXPECT(SNECK_OK, sneck_release(shared.lock, &error));
    close_buffer(&shared);
}

static void *wait_for_item(void *argument)
{
    buffer *shared = argument;
    sneck_status status = sneck_acquire(shared->lock, TEST_PATIENCE_MS, NULL);
    while (status == SNECK_OK && shared->items == 0)
        status = sneck_condition_wait(shared->changed, TEST_PATIENCE_MS, NULL);
    if (status == SNECK_OK) {
        shared->items--;
        shared->consumed++;
    }
    (void)sneck_release(shared->lock, NULL);
    return (void *)(uintptr_t)status;
}

static void put_items(buffer *shared, int count, bool to_all)
{
    sneck_error error;
    EXPECT(SNECK_OK, sneck_acquire(shared->lock, TEST_PATIENCE_MS, &error));
    shared->items += count;
    EXPECT(SNECK_OK, to_all ? sneck_condition_broadcast(shared->changed, &error)
                            : sneck_condition_signal(shared->changed, &error));
    EXPECT(SNECK_OK, sneck_release(shared->lock, &error));
}

static void test_each_signal_is_taken_by_one_who_waits(void **state)
{
    enum {
        THREADS = 4
    };
    test_bed *bed = *state;
    buffer shared = open_buffer(bed->client);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, wait_for_item, &shared), 0);
    put_items(&shared, 1, false);
    put_items(&shared, 1, false);
    put_items(&shared, 2, true);
    for (int i = 0; i < THREADS; i++) {
        void *status = NULL;
        assert_int_equal(pthread_join(threads[i], &status), 0);
        assert_int_equal((uintptr_t)status, SNECK_OK);
    }
    assert_int_equal(shared.consumed, THREADS);
    assert_int_equal(shared.items, 0);
    close_buffer(&shared);
}

static void test_a_condition_wait_is_interrupted(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    buffer shared = open_buffer(bed->client);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, wait_for_item, &shared), 0);
    test_await_waiting(bed->client, "b/changed", 1);
    sneck_condition_interrupt(shared.changed);
    void *status = NULL;
    assert_int_equal(pthread_join(thread, &status), 0);
    assert_int_equal((uintptr_t)status, SNECK_CANCELED);
    EXPECT(SNECK_OK, sneck_acquire(shared.lock, 0, &error));
    EXPECT(SNECK_OK, sneck_release(shared.lock, &error));
    close_buffer(&shared);
}

static void test_bad_conditions_are_refused(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    buffer shared = open_buffer(bed->client);
    sneck_condition *condition = NULL;
    EXPECT(SNECK_INVALID, sneck_condition_open(shared.lock, "a/b", &condition, &error));
    EXPECT(SNECK_INVALID, sneck_condition_open(shared.lock, "", &condition, &error));
    EXPECT(SNECK_INVALID, sneck_condition_open(NULL, "a", &condition, &error));
    sneck_lock *reader = NULL;
    EXPECT(SNECK_OK, sneck_read_lock(bed->client, "b", NULL, &reader, &error));
    EXPECT(SNECK_INVALID, sneck_condition_open(reader, "a", &condition, &error));
    sneck_lock_free(reader);
    close_buffer(&shared);
}

/* ---- Versions ---- */

typedef struct optimist {
    sneck_client *client;
    _Atomic int value;
    _Atomic int conflicts;
} optimist;

static sneck_status add_one(void *context, uint64_t version)
{
    optimist *self = context;
    int value = self->value;
    sneck_status status = sneck_version_bump(self->client, "v", version, NULL);
    if (status == SNECK_OK)
        self->value = value + 1;
    else
        self->conflicts++;
    return status;
}

static void test_a_version_moves_for_one(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    uint64_t version = 7;
    sneck_status status = sneck_version_get(bed->client, "v", &version, &error);
    if (status == SNECK_UNSUPPORTED)
        test_skip(error.message);
    EXPECT(SNECK_OK, status);
    assert_true(version == 0);
    EXPECT(SNECK_OK, sneck_version_bump(bed->client, "v", 0, &error));
    EXPECT(SNECK_CONFLICT, sneck_version_bump(bed->client, "v", 0, &error));
    optimist self = { .client = bed->client };
    EXPECT(SNECK_OK, sneck_version_retry(bed->client, "v", 0, add_one, &self, &error));
    assert_int_equal(self.value, 1);
}

static sneck_status always_late(void *context, uint64_t version)
{
    (void)version;
    (*(int *)context)++;
    return SNECK_CONFLICT;
}

static sneck_status late_once(void *context, uint64_t version)
{
    (void)version;
    return (*(int *)context)++ == 0 ? SNECK_CONFLICT : SNECK_OK;
}

static void test_work_is_tried_again_for_as_long_as_it_may(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    uint64_t version = 0;
    sneck_status status = sneck_version_get(bed->client, "v", &version, &error);
    if (status == SNECK_UNSUPPORTED)
        test_skip(error.message);
    int calls = 0;
    EXPECT(SNECK_CONFLICT, sneck_version_retry(bed->client, "v", 0, always_late, &calls, &error));
    assert_int_equal(calls, 1);
    EXPECT(SNECK_CONFLICT, sneck_version_retry(bed->client, "v", 60, always_late, &calls, &error));
    assert_in_range(calls, 3, 1000);
    calls = 0;
    EXPECT(SNECK_OK, sneck_version_retry(bed->client, "v", INT64_MAX, late_once, &calls, &error));
    EXPECT(SNECK_INVALID, sneck_version_retry(bed->client, "v", 0, NULL, NULL, &error));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_permits_are_taken_and_given_back),
        cmocka_unit_test(test_a_lost_permit_says_so),
        cmocka_unit_test(test_a_permit_is_prolonged),
        cmocka_unit_test(test_a_plain_semaphore_counts),
        cmocka_unit_test(test_a_thread_that_is_cancelled_takes_no_permit),
        cmocka_unit_test(test_bad_numbers_are_refused),
        cmocka_unit_test(test_never_more_than_the_permits_are_inside),
        cmocka_unit_test(test_a_latch_lets_all_go_at_zero),
        cmocka_unit_test(test_who_does_not_hold_the_lock_cannot_wait),
        cmocka_unit_test(test_a_wait_without_a_signal_times_out_with_the_lock),
        cmocka_unit_test(test_each_signal_is_taken_by_one_who_waits),
        cmocka_unit_test(test_a_condition_wait_is_interrupted),
        cmocka_unit_test(test_bad_conditions_are_refused),
        cmocka_unit_test(test_a_version_moves_for_one),
        cmocka_unit_test(test_work_is_tried_again_for_as_long_as_it_may),
    };
    return test_run_kinds_on_stores(tests, sizeof tests / sizeof tests[0]);
}
