/* Signals whose receiver cannot make use of them: they go to the next one who waits. */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "bed.h"
#include "faulty.h"

/* Somebody who waits for the condition "b/changed", with a client of its own. */
typedef struct listener {
    sneck_client *client;
    sneck_lock *lock;
    sneck_condition *condition;
    pthread_t thread;
    sneck_error result;
    bool holds; /* the lock, after the wait */
} listener;

static listener open_listener(sneck_client *client)
{
    sneck_error error;
    listener made = { .client = client, .lock = test_mutex(client, "b", NULL) };
    EXPECT(SNECK_OK, sneck_condition_open(made.lock, "changed", &made.condition, &error));
    return made;
}

static void close_listener(listener *self)
{
    sneck_condition_free(self->condition);
    sneck_lock_free(self->lock);
}

static void *wait_once(void *argument)
{
    listener *self = argument;
    if (sneck_acquire(self->lock, TEST_PATIENCE_MS, &self->result) != SNECK_OK)
        return NULL;
    sneck_status status = sneck_condition_wait(self->condition, TEST_PATIENCE_MS, &self->result);
    self->holds = sneck_is_held(self->lock);
    if (status == SNECK_OK || self->holds)
        (void)sneck_release(self->lock, NULL);
    return NULL;
}

/* Returns when it waits: it gives the lock up only then. */
static void begin_wait_by(listener *self, void *(*waits)(void *))
{
    sneck_error error;
    sneck_lock *probe = test_handle(self->client, "b");
    assert_int_equal(pthread_create(&self->thread, NULL, waits, self), 0);
    test_await_waiting(self->client, "b/changed", 1);
    EXPECT(SNECK_OK, sneck_acquire(probe, TEST_PATIENCE_MS, &error));
    EXPECT(SNECK_OK, sneck_release(probe, &error));
    sneck_lock_free(probe);
}

static void begin_wait(listener *self)
{
    begin_wait_by(self, wait_once);
}

static void end_wait(listener *self)
{
    assert_int_equal(pthread_join(self->thread, NULL), 0);
}

/* Both wait, and then the lock is held by neither; the second one's client holds it. */
static sneck_lock *begin_both_and_hold(listener *first, listener *second)
{
    sneck_error error;
    begin_wait(first);
    begin_wait(second);
    sneck_lock *holder = test_handle(second->client, "b");
    EXPECT(SNECK_OK, sneck_acquire(holder, 0, &error));
    return holder;
}

static void needs_two_clients(const test_bed *bed)
{
    if (strcmp(bed->url, "memory:") == 0)
        test_skip("two clients share no memory store");
}

static void test_a_signal_passes_on_when_the_lock_cannot_be_had_again(void **state)
{
    test_bed *bed = *state;
    needs_two_clients(bed);
    sneck_error error;
    sneck_client *other = test_open(bed, NULL);
    test_faulty *faulty = test_make_faulty(bed->client);
    listener first = open_listener(bed->client);
    listener second = open_listener(other);
    begin_wait(&first);
    begin_wait(&second);
    test_set_fault(faulty, SNK_ASK_ACQUIRE, TEST_FAILS);
    EXPECT(SNECK_OK, sneck_condition_signal(second.condition, &error));
    end_wait(&first);
    assert_int_equal(first.result.status, SNECK_UNAVAILABLE);
    assert_false(first.holds);
    end_wait(&second);
    assert_int_equal(second.result.status, SNECK_OK);
    assert_true(second.holds);
    close_listener(&first);
    close_listener(&second);
    sneck_close(other);
}

static void test_a_signal_passes_on_when_its_receiver_closes_before_it_has_the_lock(void **state)
{
    test_bed *bed = *state;
    needs_two_clients(bed);
    sneck_error error;
    sneck_client *other = test_open(bed, NULL);
    listener first = open_listener(other);
    listener second = open_listener(bed->client);
    sneck_lock *holder = begin_both_and_hold(&first, &second);
    EXPECT(SNECK_OK, sneck_condition_signal(second.condition, &error));
    test_await_waiting(other, "b", 1); /* it was signalled, and wants the lock */
    sneck_close(other);
    end_wait(&first);
    assert_true(first.result.status != SNECK_OK && !first.holds);
    EXPECT(SNECK_OK, sneck_release(holder, &error));
    end_wait(&second);
    assert_int_equal(second.result.status, SNECK_OK);
    close_listener(&first);
    close_listener(&second);
    sneck_lock_free(holder);
}

/* A signal that was received is used up: the next one waits for the next. */
static void test_a_signal_that_was_received_goes_to_nobody_else(void **state)
{
    test_bed *bed = *state;
    needs_two_clients(bed);
    sneck_error error;
    sneck_client *other = test_open(bed, NULL);
    listener first = open_listener(bed->client);
    listener second = open_listener(other);
    begin_wait(&first);
    begin_wait(&second);
    EXPECT(SNECK_OK, sneck_condition_signal(second.condition, &error));
    end_wait(&first);
    assert_int_equal(first.result.status, SNECK_OK);
    test_await_waiting(other, "b/changed", 1);
    sneck_condition_interrupt(second.condition);
    end_wait(&second);
    assert_int_equal(second.result.status, SNECK_CANCELED);
    close_listener(&first);
    close_listener(&second);
    sneck_close(other);
}

/* Whoever could not give the lock up properly is told at once: a wait would be for nothing. */
static void expect_no_wait(listener *self, sneck_status expected)
{
    sneck_error error;
    int64_t began_ms = test_now_ms();
    EXPECT(expected, sneck_condition_wait(self->condition, TEST_PATIENCE_MS, &error));
    assert_true(test_now_ms() - began_ms < TEST_PATIENCE_MS / 2);
    assert_false(sneck_is_held(self->lock));
}

static void test_who_lost_the_lock_does_not_wait(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    listener self = open_listener(bed->client);
    EXPECT(SNECK_OK, sneck_acquire(self.lock, 0, &error));
    test_break(bed->client, "b");
    expect_no_wait(&self, SNECK_LOST);
    EXPECT(SNECK_NOT_OWNER, sneck_release(self.lock, &error));
    close_listener(&self);
}

static void test_who_cannot_give_the_lock_up_does_not_wait(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    test_faulty *faulty = test_make_faulty(bed->client);
    listener self = open_listener(bed->client);
    EXPECT(SNECK_OK, sneck_acquire(self.lock, 0, &error));
    test_set_fault(faulty, SNK_ASK_RELEASE, TEST_FAILS);
    expect_no_wait(&self, SNECK_UNAVAILABLE);
    test_set_fault(faulty, SNK_ASK_RELEASE, TEST_WORKS);
    EXPECT(SNECK_NOT_OWNER, sneck_release(self.lock, &error));
    EXPECT(SNECK_OK, sneck_acquire(self.lock, TEST_PATIENCE_MS, &error));
    EXPECT(SNECK_OK, sneck_release(self.lock, &error));
    close_listener(&self);
}

static void await_acquires(test_faulty *asked, unsigned count)
{
    int64_t until_ms = test_now_ms() + TEST_PATIENCE_MS;
    while (atomic_load(&asked->calls[SNK_ASK_ACQUIRE]) < count) {
        assert_true(test_now_ms() < until_ms);
        (void)usleep(1000);
    }
}

/* As the header says of SNECK_CANCELED: the lock is held. The signal is the next one's. */
static void test_who_is_interrupted_while_it_takes_the_lock_again_has_it_all_the_same(void **state)
{
    test_bed *bed = *state;
    needs_two_clients(bed);
    sneck_error error;
    sneck_client *other = test_open(bed, NULL);
    test_faulty *asked = test_make_faulty(other);
    listener first = open_listener(other);
    listener second = open_listener(bed->client);
    sneck_lock *holder = begin_both_and_hold(&first, &second);
    unsigned before = atomic_load(&asked->calls[SNK_ASK_ACQUIRE]);
    EXPECT(SNECK_OK, sneck_condition_signal(second.condition, &error));
    await_acquires(asked, before + 1); /* it was signalled, and wants the lock */
    sneck_interrupt(first.lock);
    await_acquires(asked, before + 2); /* once more */
    EXPECT(SNECK_OK, sneck_release(holder, &error));
    end_wait(&first);
    assert_int_equal(first.result.status, SNECK_CANCELED);
    assert_true(first.holds);
    end_wait(&second);
    assert_int_equal(second.result.status, SNECK_OK);
    close_listener(&first);
    close_listener(&second);
    sneck_lock_free(holder);
    sneck_close(other);
}

static void note_and_release(void *argument)
{
    listener *self = argument;
    self->holds = sneck_is_held(self->lock);
    (void)sneck_release(self->lock, &self->result);
}

static void *wait_until_cancelled(void *argument)
{
    listener *self = argument;
    if (sneck_acquire(self->lock, TEST_PATIENCE_MS, &self->result) != SNECK_OK)
        return NULL;
    pthread_cleanup_push(note_and_release, self);
    self->result.status = sneck_condition_wait(self->condition, TEST_PATIENCE_MS, NULL);
    pthread_cleanup_pop(1);
    return NULL;
}

/* As with pthread_cond_wait. */
static void test_who_is_cancelled_has_the_lock_while_it_cleans_up(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    void *result = NULL;
    listener self = open_listener(bed->client);
    begin_wait_by(&self, wait_until_cancelled);
    assert_int_equal(pthread_cancel(self.thread), 0);
    assert_int_equal(pthread_join(self.thread, &result), 0);
    assert_true(result == PTHREAD_CANCELED);
    assert_true(self.holds);
    assert_int_equal(self.result.status, SNECK_OK);
    EXPECT(SNECK_OK, sneck_acquire(self.lock, 0, &error));
    EXPECT(SNECK_OK, sneck_release(self.lock, &error));
    assert_int_equal(test_health(bed->client).waiting, 0);
    close_listener(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_signal_passes_on_when_the_lock_cannot_be_had_again),
        cmocka_unit_test(test_a_signal_passes_on_when_its_receiver_closes_before_it_has_the_lock),
        cmocka_unit_test(test_a_signal_that_was_received_goes_to_nobody_else),
        cmocka_unit_test(test_who_lost_the_lock_does_not_wait),
        cmocka_unit_test(test_who_cannot_give_the_lock_up_does_not_wait),
        cmocka_unit_test(test_who_is_cancelled_has_the_lock_while_it_cleans_up),
        cmocka_unit_test(test_who_is_interrupted_while_it_takes_the_lock_again_has_it_all_the_same),
    };
    return test_run_kinds_on_stores(tests, sizeof tests / sizeof tests[0]);
}
