/* Waiting: timeouts, interrupts, cancellation, order, hand-off. */
#include "bed.h"

#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

/* One call of sneck_acquire on a thread of its own. */
typedef struct caller {
    pthread_t thread;
    sneck_lock *lock;
    int64_t wait_ms;
    sneck_status status;
    bool releases;
} caller;

static void *call(void *argument)
{
    caller *self = argument;
    self->status = sneck_acquire(self->lock, self->wait_ms, NULL);
    if (self->status == SNECK_OK && self->releases)
        (void)sneck_release(self->lock, NULL);
    return NULL;
}

static void start(caller *self)
{
    assert_int_equal(pthread_create(&self->thread, NULL, call, self), 0);
}

static sneck_status join(caller *self)
{
    assert_int_equal(pthread_join(self->thread, NULL), 0);
    return self->status;
}

static void test_a_wait_ends_on_time(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    sneck_lock *holder = test_handle(bed->client, "a");
    sneck_lock *waiter = test_handle(bed->client, "a");
    EXPECT(SNECK_OK, sneck_acquire(holder, 0, &error));
    int64_t began_ms = test_now_ms();
    EXPECT(SNECK_TIMEOUT, sneck_acquire(waiter, 60, &error));
    assert_in_range(test_now_ms() - began_ms, 59, TEST_PATIENCE_MS);
    EXPECT(SNECK_BUSY, sneck_acquire(waiter, 0, &error));
    assert_int_equal(test_queue_in_store(bed->client, "a"), 0);
    EXPECT(SNECK_OK, sneck_release(holder, &error));
    EXPECT(SNECK_OK, sneck_acquire(waiter, 60, &error));
    EXPECT(SNECK_OK, sneck_release(waiter, &error));
    sneck_lock_free(holder);
    sneck_lock_free(waiter);
}

static void test_a_release_wakes_who_waits(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    sneck_lock *holder = test_handle(bed->client, "a");
    caller waiter = { .lock = test_handle(bed->client, "a"), .wait_ms = SNECK_FOREVER };
    EXPECT(SNECK_OK, sneck_acquire(holder, 0, &error));
    uint64_t token = sneck_token(holder);
    start(&waiter);
    test_await_waiting(bed->client, "a", 1);
    EXPECT(SNECK_OK, sneck_release(holder, &error));
    assert_int_equal(join(&waiter), SNECK_OK);
    assert_true(sneck_token(waiter.lock) > token);
    EXPECT(SNECK_OK, sneck_release(waiter.lock, &error));
    sneck_lock_free(holder);
    sneck_lock_free(waiter.lock);
}

static void interrupt(test_bed *bed, bool fair)
{
    sneck_error error;
    sneck_lock_options options = SNECK_LOCK_OPTIONS_INIT;
    options.owner = SNECK_OWNER_HANDLE;
    options.fair = fair && bed->is_fair;
    sneck_lock *holder = test_handle(bed->client, "a");
    caller one = { .lock = test_mutex(bed->client, "a", &options), .wait_ms = SNECK_FOREVER };
    caller two = { .lock = test_mutex(bed->client, "a", &options), .wait_ms = SNECK_FOREVER };
    EXPECT(SNECK_OK, sneck_acquire(holder, 0, &error));
    sneck_interrupt(one.lock); /* nobody waits, and it is not sticky */
    start(&one);
    start(&two);
    test_await_waiting(bed->client, "a", 2);
    sneck_interrupt(one.lock);
    assert_int_equal(join(&one), SNECK_CANCELED);
    test_await_waiting(bed->client, "a", 1);
    EXPECT(SNECK_OK, sneck_release(holder, &error));
    assert_int_equal(join(&two), SNECK_OK);
    EXPECT(SNECK_OK, sneck_release(two.lock, &error));
    assert_int_equal(test_queue_in_store(bed->client, "a"), 0);
    assert_false(test_is_held_in_store(bed->client, "a"));
    sneck_lock_free(holder);
    sneck_lock_free(one.lock);
    sneck_lock_free(two.lock);
}

static void test_interrupt_ends_the_waits_on_one_handle(void **state)
{
    interrupt(*state, false);
    interrupt(*state, true);
}

/* Fair waiters stand in the store's queue, in the order in which they came there. */
static void await_queue(const test_bed *bed, size_t count)
{
    int64_t until_ms = test_now_ms() + TEST_PATIENCE_MS;
    while (test_queue_in_store(bed->client, "a") != count)
        assert_true(test_now_ms() < until_ms);
}

static void cancel(test_bed *bed, bool fair, bool granted)
{
    sneck_error error;
    sneck_lock_options options = SNECK_LOCK_OPTIONS_INIT;
    options.fair = fair && bed->is_fair;
    sneck_lock *holder = test_handle(bed->client, "a");
    caller waiter = { .lock = test_mutex(bed->client, "a", &options), .wait_ms = SNECK_FOREVER };
    caller second = { .lock = waiter.lock, .wait_ms = SNECK_FOREVER, .releases = true };
    EXPECT(SNECK_OK, sneck_acquire(holder, 0, &error));
    start(&waiter);
    test_await_waiting(bed->client, "a", 1);
    if (options.fair)
        await_queue(bed, 1);
    start(&second);
    test_await_waiting(bed->client, "a", 2);
    if (options.fair)
        await_queue(bed, 2);
    if (granted) /* the lock may be on its way to the thread that goes */
        EXPECT(SNECK_OK, sneck_release(holder, &error));
    assert_int_equal(pthread_cancel(waiter.thread), 0);
    void *result = NULL;
    assert_int_equal(pthread_join(waiter.thread, &result), 0);
    if (!granted) {
        assert_ptr_equal(result, PTHREAD_CANCELED);
        test_await_waiting(bed->client, "a", 1);
        EXPECT(SNECK_OK, sneck_release(holder, &error));
    }
    /* It may have returned before it was cancelled, and ended without a release: the watchdog gives the lock back. */
    assert_int_equal(join(&second), SNECK_OK);
    assert_int_equal(test_queue_in_store(bed->client, "a"), 0);
    assert_false(test_is_held_in_store(bed->client, "a"));
    sneck_lock_free(holder);
    sneck_lock_free(waiter.lock);
}

static void test_a_thread_that_is_cancelled_leaves_nothing_behind(void **state)
{
    cancel(*state, false, false);
    cancel(*state, true, false);
}

static void test_a_thread_that_is_cancelled_while_it_is_served_leaves_nothing_behind(void **state)
{
    test_bed *bed = *state;
    for (unsigned i = 0; i < test_scaled(100); i++) {
        sneck_client *client = bed->client;
        bed->client = test_open(bed, NULL);
        cancel(bed, i % 2 == 0, true);
        sneck_close(bed->client);
        bed->client = client;
    }
}

/* ---- Order ---- */

typedef struct place {
    caller caller;
    atomic_uint *served;
    unsigned order;
} place;

static void *take_place(void *argument)
{
    place *self = argument;
    self->caller.status = sneck_acquire(self->caller.lock, SNECK_FOREVER, NULL);
    self->order = atomic_fetch_add(self->served, 1);
    (void)sneck_release(self->caller.lock, NULL);
    return NULL;
}

static void test_fair_waiters_are_served_in_the_order_they_came(void **state)
{
    test_bed *bed = *state;
    test_needs_order(bed);
    sneck_error error;
    sneck_lock_options options = SNECK_LOCK_OPTIONS_INIT;
    options.fair = true;
    sneck_lock *lock = test_mutex(bed->client, "a", &options);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    atomic_uint served = 0;
    place places[8] = { 0 };
    for (unsigned i = 0; i < 8; i++) {
        places[i] = (place){ .caller = { .lock = lock }, .served = &served };
        assert_int_equal(pthread_create(&places[i].caller.thread, NULL, take_place, &places[i]), 0);
        await_queue(bed, i + 1);
    }
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    for (unsigned i = 0; i < 8; i++) {
        assert_int_equal(join(&places[i].caller), SNECK_OK);
        assert_int_equal(places[i].order, i);
    }
    sneck_lock_free(lock);
}

static void test_the_place_of_one_that_leaves_passes_to_the_next(void **state)
{
    test_bed *bed = *state;
    if (bed->directory[0] == '\0')
        return; /* two clients meet only in a file */
    sneck_error error;
    sneck_client *other = test_open(bed, NULL);
    sneck_lock *holder = test_mutex(other, "a", NULL);
    EXPECT(SNECK_OK, sneck_acquire(holder, 0, &error));
    caller one = { .lock = test_handle(bed->client, "a"), .wait_ms = SNECK_FOREVER };
    caller two = { .lock = test_handle(bed->client, "a"), .wait_ms = SNECK_FOREVER };
    start(&one);
    test_await_waiting(bed->client, "a", 1);
    start(&two);
    test_await_waiting(bed->client, "a", 2);
    sneck_interrupt(one.lock);
    assert_int_equal(join(&one), SNECK_CANCELED);
    assert_int_equal(test_queue_in_store(other, "a"), 1);
    EXPECT(SNECK_OK, sneck_release(holder, &error));
    assert_int_equal(join(&two), SNECK_OK);
    EXPECT(SNECK_OK, sneck_release(two.lock, &error));
    sneck_lock_free(holder);
    sneck_lock_free(one.lock);
    sneck_lock_free(two.lock);
    sneck_close(other);
}

/* ---- Many at once ---- */

typedef struct crowd {
    sneck_client *clients[2];
    unsigned rounds;
    unsigned fair_each; /* one thread of so many asks for its turn; 0: none */
    unsigned long counter;
    uint64_t token;
    atomic_uint failures;
    atomic_int strange; /* the last status that should not have been */
    atomic_uint number;
} crowd;

static bool is_fair(const crowd *self, unsigned number)
{
    return self->fair_each > 0 && number % self->fair_each == 0;
}

static void *count_up(void *argument)
{
    crowd *self = argument;
    unsigned number = atomic_fetch_add(&self->number, 1);
    sneck_lock_options options = SNECK_LOCK_OPTIONS_INIT;
    options.fair = is_fair(self, number);
    sneck_lock *lock = NULL;
    if (sneck_mutex(self->clients[number % 2], "counter", &options, &lock, NULL) != SNECK_OK) {
        atomic_fetch_add(&self->failures, 1);
        return NULL;
    }
    for (unsigned i = 0; i < self->rounds; i++) {
        if (sneck_acquire(lock, SNECK_FOREVER, NULL) != SNECK_OK) {
            atomic_fetch_add(&self->failures, 1);
            continue;
        }
        self->counter++;
        uint64_t token = sneck_token(lock);
        if (token <= self->token)
            atomic_fetch_add(&self->failures, 1);
        self->token = token;
        if (sneck_release(lock, NULL) != SNECK_OK)
            atomic_fetch_add(&self->failures, 1);
    }
    sneck_lock_free(lock);
    return NULL;
}

static void count_with_8_threads(crowd *self)
{
    pthread_t threads[8];
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count_up, self), 0);
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(atomic_load(&self->failures), 0);
    assert_int_equal(self->counter, 8 * self->rounds);
    assert_false(test_is_held_in_store(self->clients[0], "counter"));
}

static void test_8_threads_count_exactly_and_tokens_rise(void **state)
{
    test_bed *bed = *state;
    crowd self = { .clients = { bed->client, bed->client }, .rounds = test_scaled(10000) };
    count_with_8_threads(&self);
}

static void test_fair_and_barging_threads_count_exactly_together(void **state)
{
    test_bed *bed = *state;
    crowd self = { .clients = { bed->client, bed->client },
                   .rounds = test_scaled(2000),
                   .fair_each = bed->is_fair ? 2 : 0 };
    count_with_8_threads(&self);
}

static void test_threads_of_two_clients_count_exactly(void **state)
{
    test_bed *bed = *state;
    if (bed->directory[0] == '\0')
        return; /* two clients meet only in a file */
    crowd self = { .clients = { bed->client, test_open(bed, NULL) }, .rounds = test_scaled(2000) };
    count_with_8_threads(&self);
    sneck_close(self.clients[1]);
}

/* All of them wait before the first one is served. */
static void test_500_threads_wait_for_one_lock_and_all_are_served(void **state)
{
    enum {
        THREADS = 500
    };
    test_bed *bed = *state;
    sneck_error error;
    crowd self = { .clients = { bed->client, bed->client }, .rounds = 1, .fair_each = bed->is_fair ? 1 : 0 };
    sneck_lock *holder = test_handle(bed->client, "counter");
    EXPECT(SNECK_OK, sneck_acquire(holder, 0, &error));
    pthread_t threads[THREADS];
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count_up, &self), 0);
    test_await_waiting(bed->client, "counter", THREADS);
    EXPECT(SNECK_OK, sneck_release(holder, &error));
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(atomic_load(&self.failures), 0);
    assert_int_equal(self.counter, THREADS);
    assert_false(test_is_held_in_store(bed->client, "counter"));
    assert_int_equal(test_queue_in_store(bed->client, "counter"), 0);
    sneck_lock_free(holder);
}

/* ---- Giving up all the time ---- */

static void *try_for_a_while(void *argument)
{
    crowd *self = argument;
    unsigned number = atomic_fetch_add(&self->number, 1);
    sneck_lock_options options = SNECK_LOCK_OPTIONS_INIT;
    options.fair = is_fair(self, number);
    sneck_lock *lock = NULL;
    if (sneck_mutex(self->clients[0], "counter", &options, &lock, NULL) != SNECK_OK) {
        atomic_fetch_add(&self->failures, 1);
        return NULL;
    }
    for (unsigned i = 0; i < self->rounds; i++) {
        sneck_status status = sneck_acquire(lock, (int64_t)(i + number) % 4, NULL);
        if (status == SNECK_OK) {
            self->counter++;
            sneck_status released = sneck_release(lock, NULL);
            if (released != SNECK_OK)
                atomic_store(&self->strange, 100 + (int)released);
        } else if (status != SNECK_TIMEOUT && status != SNECK_BUSY && status != SNECK_CANCELED) {
            atomic_store(&self->strange, (int)status);
        }
        if (i % 16 == number)
            sneck_interrupt(lock);
    }
    sneck_lock_free(lock);
    return NULL;
}

static void test_waits_that_end_early_leave_the_lock_free(void **state)
{
    test_bed *bed = *state;
    crowd self = { .clients = { bed->client }, .rounds = test_scaled(5000), .fair_each = bed->is_fair ? 3 : 0 };
    pthread_t threads[8];
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, try_for_a_while, &self), 0);
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(atomic_load(&self.failures), 0);
    assert_int_equal(atomic_load(&self.strange), 0);
    assert_true(self.counter > 0);
    sneck_error error;
    sneck_lock *lock = test_mutex(bed->client, "counter", NULL);
    EXPECT(SNECK_OK, sneck_acquire(lock, TEST_PATIENCE_MS, &error));
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    assert_int_equal(test_queue_in_store(bed->client, "counter"), 0);
    sneck_lock_free(lock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_wait_ends_on_time),
        cmocka_unit_test(test_a_release_wakes_who_waits),
        cmocka_unit_test(test_interrupt_ends_the_waits_on_one_handle),
        cmocka_unit_test(test_a_thread_that_is_cancelled_leaves_nothing_behind),
        cmocka_unit_test(test_a_thread_that_is_cancelled_while_it_is_served_leaves_nothing_behind),
        cmocka_unit_test(test_fair_waiters_are_served_in_the_order_they_came),
        cmocka_unit_test(test_the_place_of_one_that_leaves_passes_to_the_next),
        cmocka_unit_test(test_8_threads_count_exactly_and_tokens_rise),
        cmocka_unit_test(test_fair_and_barging_threads_count_exactly_together),
        cmocka_unit_test(test_threads_of_two_clients_count_exactly),
        cmocka_unit_test(test_500_threads_wait_for_one_lock_and_all_are_served),
        cmocka_unit_test(test_waits_that_end_early_leave_the_lock_free),
    };
    return test_run_on_stores(tests, sizeof tests / sizeof tests[0]);
}
