/* Asynchronous acquire and release. */
#include "bed.h"

#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

/* What `done` was called with, and how often. */
typedef struct outcome {
    atomic_uint count;
    atomic_int status;
    pthread_t thread;
    sneck_lock *releases; /* `done` starts the release of this one */
} outcome;

static void note(void *context, sneck_status status, const sneck_error *error)
{
    outcome *self = context;
    self->thread = pthread_self();
    atomic_store(&self->status, status == error->status ? (int)status : -2);
    if (self->releases != NULL && sneck_release(self->releases, NULL) != SNECK_OK)
        atomic_store(&self->status, -3);
    atomic_fetch_add(&self->count, 1);
}

static int await_outcome(outcome *self)
{
    int64_t until_ms = test_now_ms() + TEST_PATIENCE_MS;
    while (atomic_load(&self->count) == 0) {
        assert_true(test_now_ms() < until_ms);
        (void)usleep(500);
    }
    assert_int_equal(atomic_load(&self->count), 1);
    assert_false(pthread_equal(self->thread, pthread_self()));
    return atomic_load(&self->status);
}

static void test_a_request_acquires_and_another_releases(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    sneck_lock *lock = test_handle(bed->client, "a");
    outcome acquired = { 0 };
    outcome released = { 0 };
    outcome again = { 0 };
    EXPECT(SNECK_OK, sneck_acquire_async(lock, 0, note, &acquired, NULL, &error));
    assert_int_equal(await_outcome(&acquired), SNECK_OK);
    assert_true(sneck_is_held(lock));
    EXPECT(SNECK_OK, sneck_release_async(lock, note, &released, NULL, &error));
    assert_int_equal(await_outcome(&released), SNECK_OK);
    assert_false(sneck_is_held(lock));
    assert_false(test_is_held_in_store(bed->client, "a"));
    EXPECT(SNECK_OK, sneck_release_async(lock, note, &again, NULL, &error));
    assert_int_equal(await_outcome(&again), SNECK_NOT_OWNER);
    sneck_lock_free(lock);
}

static void test_a_request_waits_for_its_turn(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    sneck_lock *holder = test_handle(bed->client, "a");
    sneck_lock *waiter = test_handle(bed->client, "a");
    outcome busy = { 0 };
    outcome late = { 0 };
    outcome acquired = { 0 };
    EXPECT(SNECK_OK, sneck_acquire(holder, 0, &error));
    EXPECT(SNECK_OK, sneck_acquire_async(waiter, 0, note, &busy, NULL, &error));
    assert_int_equal(await_outcome(&busy), SNECK_BUSY);
    int64_t began_ms = test_now_ms();
    EXPECT(SNECK_OK, sneck_acquire_async(waiter, 40, note, &late, NULL, &error));
    assert_int_equal(await_outcome(&late), SNECK_TIMEOUT);
    assert_true(test_now_ms() - began_ms >= 39);
    EXPECT(SNECK_OK, sneck_acquire_async(waiter, SNECK_FOREVER, note, &acquired, NULL, &error));
    test_await_waiting(bed->client, "a", 1);
    EXPECT(SNECK_OK, sneck_release(holder, &error));
    assert_int_equal(await_outcome(&acquired), SNECK_OK);
    EXPECT(SNECK_OK, sneck_release(waiter, &error));
    assert_int_equal(test_queue_in_store(bed->client, "a"), 0);
    sneck_lock_free(holder);
    sneck_lock_free(waiter);
}

static void test_a_request_whose_time_is_over_leaves_the_queue(void **state)
{
    test_bed *bed = *state;
    test_needs_order(bed);
    sneck_error error;
    sneck_lock_options options = SNECK_LOCK_OPTIONS_INIT;
    options.owner = SNECK_OWNER_HANDLE;
    options.fair = true; /* so that it has a place in the store */
    sneck_lock *holder = test_handle(bed->client, "a");
    sneck_lock *waiter = test_mutex(bed->client, "a", &options);
    outcome late = { 0 };
    EXPECT(SNECK_OK, sneck_acquire(holder, 0, &error));
    EXPECT(SNECK_OK, sneck_acquire_async(waiter, 1500, note, &late, NULL, &error));
    int64_t until_ms = test_now_ms() + TEST_PATIENCE_MS;
    while (test_queue_in_store(bed->client, "a") != 1)
        assert_true(test_now_ms() < until_ms);
    assert_int_equal(await_outcome(&late), SNECK_TIMEOUT);
    while (test_queue_in_store(bed->client, "a") != 0)
        assert_true(test_now_ms() < until_ms);
    sneck_lock_free(holder);
    sneck_lock_free(waiter);
}

static void test_a_request_waits_for_another_client(void **state)
{
    test_bed *bed = *state;
    if (bed->directory[0] == '\0')
        return; /* two clients meet only in a file */
    sneck_error error;
    sneck_client *other = test_open(bed, NULL);
    sneck_lock *holder = test_mutex(other, "a", NULL);
    sneck_lock *waiter = test_handle(bed->client, "a");
    for (unsigned i = 0; i < test_scaled(100); i++) {
        outcome acquired = { 0 };
        EXPECT(SNECK_OK, sneck_acquire(holder, 0, &error));
        EXPECT(SNECK_OK, sneck_acquire_async(waiter, SNECK_FOREVER, note, &acquired, NULL, &error));
        test_await_waiting(bed->client, "a", 1);
        int64_t began_ms = test_now_ms();
        EXPECT(SNECK_OK, sneck_release(holder, &error));
        assert_int_equal(await_outcome(&acquired), SNECK_OK);
        assert_true(test_now_ms() - began_ms < 5000); /* it was woken: a look would come after a third of the lease */
        EXPECT(SNECK_OK, sneck_release(waiter, &error));
    }
    sneck_lock_free(holder);
    sneck_lock_free(waiter);
    sneck_close(other);
}

static void test_a_request_can_be_cancelled(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    sneck_lock *holder = test_handle(bed->client, "a");
    sneck_lock *waiter = test_handle(bed->client, "a");
    outcome canceled = { 0 };
    outcome interrupted = { 0 };
    sneck_request *request = NULL;
    EXPECT(SNECK_OK, sneck_acquire(holder, 0, &error));
    EXPECT(SNECK_OK, sneck_acquire_async(waiter, SNECK_FOREVER, note, &canceled, &request, &error));
    test_await_waiting(bed->client, "a", 1);
    sneck_cancel(request);
    assert_int_equal(await_outcome(&canceled), SNECK_CANCELED);
    sneck_cancel(request); /* too late, and harmless */
    sneck_request_free(request);
    EXPECT(SNECK_OK, sneck_acquire_async(waiter, SNECK_FOREVER, note, &interrupted, &request, &error));
    sneck_request_free(request); /* the request goes on */
    test_await_waiting(bed->client, "a", 1);
    sneck_interrupt(waiter);
    assert_int_equal(await_outcome(&interrupted), SNECK_CANCELED);
    EXPECT(SNECK_OK, sneck_release(holder, &error));
    assert_int_equal(test_queue_in_store(bed->client, "a"), 0);
    sneck_request_free(NULL);
    sneck_cancel(NULL);
    sneck_lock_free(holder);
    sneck_lock_free(waiter);
}

static void test_a_request_that_has_the_lock_cannot_be_cancelled(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    sneck_lock *lock = test_handle(bed->client, "a");
    outcome acquired = { 0 };
    sneck_request *request = NULL;
    EXPECT(SNECK_OK, sneck_acquire_async(lock, 0, note, &acquired, &request, &error));
    assert_int_equal(await_outcome(&acquired), SNECK_OK);
    sneck_cancel(request);
    assert_true(sneck_is_held(lock));
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    sneck_lock_free(lock);
    sneck_cancel(request); /* the handle is gone, the request is not */
    sneck_request_free(request);
}

static void test_done_may_call_sneck(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    sneck_lock *lock = test_handle(bed->client, "a");
    outcome acquired = { .releases = lock };
    EXPECT(SNECK_OK, sneck_acquire_async(lock, 0, note, &acquired, NULL, &error));
    assert_int_equal(await_outcome(&acquired), SNECK_OK);
    assert_false(sneck_is_held(lock));
    sneck_lock_free(lock);
}

static void test_wrong_arguments_are_refused(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    outcome never = { 0 };
    sneck_lock *lock = test_handle(bed->client, "a");
    sneck_lock *of_thread = test_mutex(bed->client, "a", NULL);
    sneck_request *request = (sneck_request *)(void *)&never;
    EXPECT(SNECK_INVALID, sneck_acquire_async(of_thread, 0, note, &never, &request, &error));
    assert_null(request);
    assert_non_null(strstr(error.message, "SNECK_OWNER_HANDLE"));
    EXPECT(SNECK_INVALID, sneck_release_async(of_thread, note, &never, NULL, &error));
    EXPECT(SNECK_INVALID, sneck_acquire_async(NULL, 0, note, &never, NULL, &error));
    EXPECT(SNECK_INVALID, sneck_acquire_async(lock, 0, NULL, &never, NULL, &error));
    EXPECT(SNECK_INVALID, sneck_acquire_async(lock, -2, note, &never, NULL, &error));
    EXPECT(SNECK_INVALID, sneck_release_async(NULL, note, &never, NULL, &error));
    EXPECT(SNECK_INVALID, sneck_release_async(lock, NULL, &never, NULL, &error));
    sneck_lock_free(lock);
    sneck_lock_free(of_thread);
    assert_int_equal(atomic_load(&never.count), 0);
}

/* ---- Many at once ---- */

typedef struct chain {
    sneck_lock *lock;
    unsigned left;
    unsigned long *counter;
    atomic_uint *running;
    atomic_uint *failures;
} chain;

static void next_link(chain *self);

static void on_released(void *context, sneck_status status, const sneck_error *error)
{
    chain *self = context;
    if (status != SNECK_OK || error->status != SNECK_OK)
        atomic_fetch_add(self->failures, 1);
    next_link(self);
}

static void on_acquired(void *context, sneck_status status, const sneck_error *error)
{
    chain *self = context;
    if (status == SNECK_OK)
        (*self->counter)++;
    if (status != SNECK_OK || sneck_release_async(self->lock, on_released, self, NULL, NULL) != SNECK_OK) {
        (void)error;
        atomic_fetch_add(self->failures, 1);
        atomic_fetch_sub(self->running, 1);
    }
}

static void next_link(chain *self)
{
    if (self->left == 0) {
        atomic_fetch_sub(self->running, 1);
        return;
    }
    self->left--;
    if (sneck_acquire_async(self->lock, SNECK_FOREVER, on_acquired, self, NULL, NULL) != SNECK_OK) {
        atomic_fetch_add(self->failures, 1);
        atomic_fetch_sub(self->running, 1);
    }
}

static void test_chains_of_requests_count_exactly(void **state)
{
    test_bed *bed = *state;
    unsigned rounds = test_scaled(1000);
    unsigned long counter = 0;
    atomic_uint running = 16;
    atomic_uint failures = 0;
    chain chains[16];
    for (int i = 0; i < 16; i++) {
        chains[i] = (chain){ test_handle(bed->client, "a"), rounds, &counter, &running, &failures };
        next_link(&chains[i]);
    }
    int64_t until_ms = test_now_ms() + INT64_C(3) * TEST_PATIENCE_MS;
    while (atomic_load(&running) > 0) {
        assert_true(test_now_ms() < until_ms);
        (void)usleep(1000);
    }
    assert_int_equal(atomic_load(&failures), 0);
    assert_int_equal(counter, 16 * rounds);
    for (int i = 0; i < 16; i++)
        sneck_lock_free(chains[i].lock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_request_acquires_and_another_releases),
        cmocka_unit_test(test_a_request_waits_for_its_turn),
        cmocka_unit_test(test_a_request_whose_time_is_over_leaves_the_queue),
        cmocka_unit_test(test_a_request_waits_for_another_client),
        cmocka_unit_test(test_a_request_can_be_cancelled),
        cmocka_unit_test(test_a_request_that_has_the_lock_cannot_be_cancelled),
        cmocka_unit_test(test_done_may_call_sneck),
        cmocka_unit_test(test_wrong_arguments_are_refused),
        cmocka_unit_test(test_chains_of_requests_count_exactly),
    };
    return test_run_on_stores(tests, sizeof tests / sizeof tests[0]);
}
