/* What the client does when its store does not answer, or not in time. */
#include "bed.h"

#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "faulty.h"

static sneck_lock_options leased(int64_t lease_ms, int64_t renew_ms)
{
    sneck_lock_options options = SNECK_LOCK_OPTIONS_INIT;
    options.lease_ms = lease_ms;
    options.renew_ms = renew_ms;
    options.owner = SNECK_OWNER_HANDLE;
    return options;
}

static void await_count(atomic_uint *counter, unsigned count)
{
    int64_t until_ms = test_now_ms() + TEST_PATIENCE_MS;
    while (atomic_load(counter) < count) {
        assert_true(test_now_ms() < until_ms);
        (void)usleep(1000);
    }
}

static void await_free(sneck_client *client, const char *name)
{
    int64_t until_ms = test_now_ms() + TEST_PATIENCE_MS;
    while (test_is_held_in_store(client, name)) {
        assert_true(test_now_ms() < until_ms);
        (void)usleep(1000);
    }
}

static void test_a_store_that_cannot_be_reached_is_told_at_once(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    test_faulty *faulty = test_make_faulty(bed->client);
    sneck_lock *lock = test_mutex(bed->client, "a", NULL);
    test_set_fault(faulty, SNK_ASK_ACQUIRE, TEST_FAILS);
    EXPECT(SNECK_UNAVAILABLE, sneck_acquire(lock, SNECK_FOREVER, &error));
    EXPECT(SNECK_UNAVAILABLE, sneck_acquire(lock, 0, &error));
    assert_int_equal(atomic_load(&faulty->calls[SNK_ASK_ACQUIRE]), 2);
    test_set_fault(faulty, SNK_ASK_ACQUIRE, TEST_WORKS);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    sneck_lock_free(lock);
}

static void test_an_acquire_without_an_answer_is_chased(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    test_faulty *faulty = test_make_faulty(bed->client);
    sneck_lock *lock = test_mutex(bed->client, "a", NULL);
    test_set_fault(faulty, SNK_ASK_ACQUIRE, TEST_NO_ANSWER);
    test_set_fault(faulty, SNK_ASK_RELEASE, TEST_FAILS);
    EXPECT(SNECK_UNKNOWN, sneck_acquire(lock, 0, &error));
    assert_true(test_is_held_in_store(bed->client, "a"));
    await_count(&faulty->calls[SNK_ASK_RELEASE], 3); /* again and again, until it is answered */
    assert_true(test_is_held_in_store(bed->client, "a"));
    test_set_fault(faulty, SNK_ASK_RELEASE, TEST_WORKS);
    await_free(bed->client, "a");
    sneck_lock_free(lock);
}

static void test_a_release_without_an_answer_is_repeated(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    test_faulty *faulty = test_make_faulty(bed->client);
    sneck_lock *lock = test_mutex(bed->client, "a", NULL);
    static const struct {
        test_fault fault;
        sneck_status status;
    } rows[] = { { TEST_FAILS, SNECK_UNAVAILABLE },
                 { TEST_SWALLOWS, SNECK_UNKNOWN },
                 { TEST_NO_ANSWER, SNECK_UNKNOWN } };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
        test_set_fault(faulty, SNK_ASK_RELEASE, rows[i].fault);
        EXPECT(rows[i].status, sneck_release(lock, &error));
        assert_false(sneck_is_held(lock));
        EXPECT(SNECK_NOT_OWNER, sneck_release(lock, &error));
        test_set_fault(faulty, SNK_ASK_RELEASE, TEST_WORKS);
        await_free(bed->client, "a");
    }
    sneck_lock_free(lock);
}

#define PERMITS 2

/* A plain semaphore, in which permits are taken for good; skips where the store keeps none. */
static sneck_semaphore *open_plain(sneck_client *client, int64_t permits)
{
    sneck_error error;
    sneck_semaphore *semaphore = NULL;
    sneck_semaphore_options options = SNECK_SEMAPHORE_OPTIONS_INIT;
    options.leased = false;
    if (sneck_semaphore_open(client, "a", &options, &semaphore, &error) == SNECK_UNSUPPORTED)
        test_skip(error.message);
    EXPECT(SNECK_OK, sneck_semaphore_set_permits(semaphore, permits, &error));
    return semaphore;
}

/* Takes one while releases go wrong in one way or the other, until so many of them have. */
static sneck_permit *take_untold(sneck_semaphore *semaphore, test_faulty *faulty, bool is_swallowed, unsigned count)
{
    sneck_error error;
    sneck_permit *permit = NULL;
    unsigned releases = atomic_load(&faulty->calls[SNK_ASK_RELEASE]);
    test_set_fault(faulty, SNK_ASK_RELEASE, is_swallowed ? TEST_SWALLOWS : TEST_FAILS);
    EXPECT(SNECK_OK, sneck_semaphore_acquire(semaphore, 1, 0, &permit, &error));
    await_count(&faulty->calls[SNK_ASK_RELEASE], releases + count);
    test_set_fault(faulty, SNK_ASK_RELEASE, TEST_WORKS);
    return permit;
}

static void expect_left(sneck_semaphore *semaphore, int64_t expected)
{
    sneck_error error;
    int64_t left = 0;
    EXPECT(SNECK_OK, sneck_semaphore_available(semaphore, &left, &error));
    assert_int_equal(left, expected);
}

/* Otherwise what the caller has would be there for somebody else, too. */
static void test_what_was_taken_stays_taken_though_the_store_was_told_late(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    sneck_semaphore *semaphore = open_plain(bed->client, PERMITS);
    test_faulty *faulty = test_make_faulty(bed->client);
    for (int i = 0; i < 2; i++) {
        sneck_permit *permit = take_untold(semaphore, faulty, i % 2 == 1, 2);
        await_free(bed->client, "a");
        expect_left(semaphore, PERMITS - 1);
        EXPECT(SNECK_OK, sneck_permit_release(permit, &error));
        expect_left(semaphore, PERMITS);
    }
    sneck_semaphore_free(semaphore);
}

/* Whether what was taken has been used up by then or not: it comes back, and once. */
static void test_what_was_taken_comes_back_once_though_the_store_was_not_told(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    sneck_semaphore *semaphore = open_plain(bed->client, PERMITS);
    test_faulty *faulty = test_make_faulty(bed->client);
    for (int i = 0; i < 20; i++) {
        sneck_permit *permit = take_untold(semaphore, faulty, i % 2 == 1, 1);
        EXPECT(SNECK_OK, sneck_permit_release(permit, &error));
        await_free(bed->client, "a");
        expect_left(semaphore, PERMITS);
    }
    sneck_semaphore_free(semaphore);
}

static void test_failed_renewals_end_in_loss_at_the_deadline_and_not_before(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    test_faulty *faulty = test_make_faulty(bed->client);
    sneck_lock_options options = leased(800, 50);
    sneck_lock *lock = test_mutex(bed->client, "a", &options);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    test_set_fault(faulty, SNK_ASK_RENEW, TEST_FAILS);
    await_count(&faulty->calls[SNK_ASK_RENEW], 3);
    assert_true(sneck_is_held(lock)); /* a failed renewal is no loss */
    assert_true(test_readable(sneck_lost_fd(lock), TEST_PATIENCE_MS));
    assert_false(sneck_is_held(lock));
    EXPECT(SNECK_LOST, sneck_release(lock, &error));
    await_free(bed->client, "a"); /* the store is told to forget it */
    sneck_lock_free(lock);
}

typedef struct heard {
    atomic_uint lost;
    atomic_llong at_ms;
} heard;

static void listen(void *context, const sneck_event *event)
{
    heard *self = context;
    if (event->kind != SNECK_EVENT_LOST)
        return;
    atomic_store(&self->at_ms, test_now_ms());
    atomic_fetch_add(&self->lost, 1);
}

static void test_loss_is_told_in_time_while_a_renewal_hangs(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    test_faulty *faulty = test_make_faulty(bed->client);
    heard self = { 0 };
    sneck_lock_options options = leased(2000, 50);
    options.on_event = listen;
    options.event_context = &self;
    sneck_lock *lock = test_mutex(bed->client, "a", &options);
    test_set_fault(faulty, SNK_ASK_RENEW, TEST_HANGS);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    test_await_hanging(faulty, 1);
    await_count(&self.lost, 1); /* and the renewal still hangs */
    test_set_fault(faulty, SNK_ASK_RENEW, TEST_WORKS);
    test_await_hanging(faulty, 0);
    assert_false(sneck_is_held(lock)); /* no late answer revives it */
    EXPECT(SNECK_LOST, sneck_release(lock, &error));
    sneck_lock_free(lock);
    assert_int_equal(atomic_load(&self.lost), 1);
}

/* The result of a request; -1 as long as there is none. */
typedef struct outcome {
    atomic_int status;
} outcome;

static void note_done(void *context, sneck_status status, const sneck_error *error)
{
    outcome *self = context;
    atomic_store(&self->status, status == error->status ? (int)status : -2);
}

static int await_outcome(outcome *self)
{
    int64_t until_ms = test_now_ms() + TEST_PATIENCE_MS;
    while (atomic_load(&self->status) == -1) {
        assert_true(test_now_ms() < until_ms);
        (void)usleep(1000);
    }
    return atomic_load(&self->status);
}

static void test_an_asynchronous_wait_ends_on_time_while_the_store_hangs(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    test_faulty *faulty = test_make_faulty(bed->client);
    sneck_lock *lock = test_handle(bed->client, "a");
    sneck_lock *other = test_handle(bed->client, "b");
    outcome first = { -1 };
    outcome second = { -1 };
    test_set_fault(faulty, SNK_ASK_ACQUIRE, TEST_HANGS);
    EXPECT(SNECK_OK, sneck_acquire_async(lock, 1000, note_done, &first, NULL, &error));
    test_await_hanging(faulty, 1);
    EXPECT(SNECK_OK, sneck_acquire_async(other, 50, note_done, &second, NULL, &error));
    assert_int_equal(await_outcome(&first), SNECK_UNKNOWN);      /* it left, and nobody knows */
    assert_int_equal(await_outcome(&second), SNECK_UNAVAILABLE); /* it never left */
    test_set_fault(faulty, SNK_ASK_ACQUIRE, TEST_WORKS);
    await_count(&faulty->calls[SNK_ASK_RELEASE], 1);
    await_free(bed->client, "a");
    sneck_lock_free(lock);
    sneck_lock_free(other);
}

/* Waits until a lock that nobody renews has been held for so long, by its own clock. */
static void await_held_for(sneck_lock *lock, int64_t whole_ms, int64_t ms)
{
    while (sneck_remaining_ms(lock) > whole_ms - ms)
        (void)usleep(1000);
}

static void test_renewals_go_out_in_batches(void **state)
{
    test_bed *bed = *state;
    if (strstr(bed->url, "mode=row") != NULL)
        return; /* each hold has a connection of its own, and they are renewed one by one */
    sneck_error error;
    test_faulty *faulty = test_make_faulty(bed->client);
    sneck_lock_options options = leased(bed->lease_max_ms, 300);
    sneck_lock *locks[300];
    test_set_fault(faulty, SNK_ASK_RENEW, TEST_HANGS);
    for (int i = 0; i < 300; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "lock/%d", i);
        locks[i] = test_mutex(bed->client, name, &options);
        EXPECT(SNECK_OK, sneck_acquire(locks[i], 0, &error));
    }
    int64_t whole_ms = sneck_remaining_ms(locks[299]);
    test_await_hanging(faulty, 1);
    await_held_for(locks[299], whole_ms, options.renew_ms + 1); /* now all are due, and only the first could leave */
    unsigned before = atomic_load(&faulty->claims[SNK_ASK_RENEW]);
    test_set_fault(faulty, SNK_ASK_RENEW, TEST_WORKS);
    await_count(&faulty->claims[SNK_ASK_RENEW], 300);
    unsigned calls = atomic_load(&faulty->calls[SNK_ASK_RENEW]);
    assert_true(before < 300);
    assert_in_range(calls, 2, 20);
    for (int i = 0; i < 300; i++)
        sneck_lock_free(locks[i]);
}

static void test_waiters_survive_an_outage_once_they_have_been_queued(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    test_faulty *faulty = test_make_faulty(bed->client);
    sneck_lock_options options = leased(300, SNECK_NEVER);
    options.fair = bed->is_fair;
    sneck_lock *holder = test_mutex(bed->client, "a", &options);
    sneck_lock_options waits = leased(300, 50);
    waits.fair = bed->is_fair;
    sneck_lock *waiter = test_mutex(bed->client, "a", &waits);
    EXPECT(SNECK_OK, sneck_acquire(holder, 0, &error));
    outcome done = { -1 };
    EXPECT(SNECK_OK, sneck_acquire_async(waiter, SNECK_FOREVER, note_done, &done, NULL, &error));
    test_await_waiting(bed->client, "a", 1);
    await_count(&faulty->calls[SNK_ASK_ACQUIRE], 2);
    test_set_fault(faulty, SNK_ASK_RENEW, TEST_FAILS);
    test_set_fault(faulty, SNK_ASK_ACQUIRE, TEST_FAILS);
    unsigned before = atomic_load(&faulty->calls[SNK_ASK_RENEW]);
    await_count(&faulty->calls[SNK_ASK_RENEW], before + 3);
    assert_int_equal(atomic_load(&done.status), -1);
    test_set_fault(faulty, SNK_ASK_RENEW, TEST_WORKS);
    test_set_fault(faulty, SNK_ASK_ACQUIRE, TEST_WORKS);
    assert_int_equal(await_outcome(&done), SNECK_OK);
    sneck_lock_free(holder);
    sneck_lock_free(waiter);
}

static void *wait_for_it(void *argument)
{
    return sneck_acquire(argument, SNECK_FOREVER, NULL) == SNECK_OK ? argument : NULL;
}

static void test_a_lock_that_came_to_a_cancelled_thread_is_released(void **state)
{
    test_bed *bed = *state;
    test_needs_order(bed); /* only fair waiters stand in the store each for itself */
    sneck_error error;
    test_faulty *faulty = test_make_faulty(bed->client);
    sneck_lock_options options = leased(300, 50);
    options.fair = true;
    sneck_lock *holder = test_mutex(bed->client, "a", &options);
    sneck_lock *waiter = test_mutex(bed->client, "a", &options);
    EXPECT(SNECK_OK, sneck_acquire(holder, 0, &error));
    atomic_store(&faulty->is_deaf, true);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, wait_for_it, waiter), 0);
    test_await_waiting(bed->client, "a", 1);
    await_count(&faulty->deaf_waits, 1);
    EXPECT(SNECK_OK, sneck_release(holder, &error));
    test_await_waiting(bed->client, "a", 0); /* a look has brought the lock, and the thread does not know */
    assert_true(sneck_is_held(waiter));
    assert_int_equal(pthread_cancel(thread), 0);
    void *result = NULL;
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, PTHREAD_CANCELED);
    assert_false(sneck_is_held(waiter));
    assert_false(test_is_held_in_store(bed->client, "a"));
    atomic_store(&faulty->is_deaf, false);
    sneck_lock_free(holder);
    sneck_lock_free(waiter);
}

static void test_closing_does_not_wait_long_for_a_store_that_is_gone(void **state)
{
    test_bed *bed = *state;
    if (bed->directory[0] != '\0')
        return; /* it takes seconds, and once is enough */
    sneck_error error;
    sneck_client *client = test_open(bed, NULL);
    test_faulty *faulty = test_make_faulty(client);
    sneck_lock *lock = test_mutex(client, "a", NULL);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    test_set_fault(faulty, SNK_ASK_RELEASE, TEST_FAILS);
    int64_t began_ms = test_now_ms();
    sneck_close(client);
    assert_in_range(test_now_ms() - began_ms, 0, 10000);
    sneck_lock_free(lock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_store_that_cannot_be_reached_is_told_at_once),
        cmocka_unit_test(test_an_acquire_without_an_answer_is_chased),
        cmocka_unit_test(test_a_release_without_an_answer_is_repeated),
        cmocka_unit_test(test_what_was_taken_stays_taken_though_the_store_was_told_late),
        cmocka_unit_test(test_what_was_taken_comes_back_once_though_the_store_was_not_told),
        cmocka_unit_test(test_failed_renewals_end_in_loss_at_the_deadline_and_not_before),
        cmocka_unit_test(test_loss_is_told_in_time_while_a_renewal_hangs),
        cmocka_unit_test(test_an_asynchronous_wait_ends_on_time_while_the_store_hangs),
        cmocka_unit_test(test_renewals_go_out_in_batches),
        cmocka_unit_test(test_waiters_survive_an_outage_once_they_have_been_queued),
        cmocka_unit_test(test_a_lock_that_came_to_a_cancelled_thread_is_released),
        cmocka_unit_test(test_closing_does_not_wait_long_for_a_store_that_is_gone),
    };
    return test_run_on_stores(tests, sizeof tests / sizeof tests[0]);
}
