/* The watchdog on each store: everything that it looks at is broken once, and it must find it, act, and say so. */
#include "bed.h"

#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "faulty.h"
#include "freezer.h"

#define LOOKS_OFTEN_MS 100
#define IN_HAND 8

static sneck_client_options watched(int64_t watchdog_ms)
{
    sneck_client_options options = SNECK_CLIENT_OPTIONS_INIT;
    options.watchdog_ms = watchdog_ms;
    return options;
}

static sneck_client *open_watched(const test_bed *bed, int64_t watchdog_ms)
{
    sneck_client_options options = watched(watchdog_ms);
    sneck_client *client = test_open(bed, &options);
    assert_true(sneck_event_fd(client) >= 0);
    return client;
}

/* A long lease that is not renewed while the test lasts: only the watchdog can find something. */
static sneck_lock_options quiet(void)
{
    sneck_lock_options options = SNECK_LOCK_OPTIONS_INIT;
    options.lease_ms = 600000;
    return options;
}

static void acquire(sneck_lock *lock)
{
    sneck_error error;
    EXPECT(SNECK_OK, sneck_acquire(lock, TEST_PATIENCE_MS, &error));
}

static void await_free_in_store(sneck_client *client, const char *name)
{
    int64_t until_ms = test_now_ms() + TEST_PATIENCE_MS;
    while (test_is_held_in_store(client, name)) {
        if (test_now_ms() > until_ms)
            fail_msg("%s is still held in the store", name);
        (void)usleep(1000);
    }
}

/* ---- Renewal ---- */

static void expect_replaced(sneck_client *client)
{
    sneck_event stuck = test_await_event(client, SNECK_EVENT_STUCK);
    assert_string_equal(stuck.name, "");
    sneck_event recovered = test_await_event(client, SNECK_EVENT_RECOVERED);
    assert_string_equal(recovered.message, "another renewal thread has taken over");
    sneck_health_report report = test_health(client);
    assert_true(report.renewal_threads_replaced >= 1);
    assert_true(report.checks[SNECK_CHECK_RENEWAL].findings >= 1);
    assert_true(report.recoveries >= 1);
}

/* Holds a lock whose first renewal hangs in the store, until the renewal thread was replaced. */
static sneck_lock *hold_until_replaced(sneck_client *client, test_faulty *faulty)
{
    sneck_lock_options options = SNECK_LOCK_OPTIONS_INIT;
    options.lease_ms = 5000;
    options.renew_ms = 100;
    sneck_lock *lock = test_mutex(client, "a", &options);
    acquire(lock);
    test_set_fault(faulty, SNK_ASK_RENEW, TEST_HANGS);
    test_await_hanging(faulty, 1);
    test_hang_no_more(faulty, SNK_ASK_RENEW); /* those that hang go on hanging, later ones do not */
    expect_replaced(client);
    return lock;
}

static void test_a_renewal_thread_that_hangs_in_the_store_is_replaced(void **state)
{
    test_bed *bed = *state;
    sneck_client *client = open_watched(bed, LOOKS_OFTEN_MS);
    test_faulty *faulty = test_make_faulty(client);
    sneck_lock *lock = hold_until_replaced(client, faulty);
    (void)test_await_event(client, SNECK_EVENT_RENEWED);
    assert_false(test_readable(sneck_lost_fd(lock), 5500)); /* longer than its lease: it is renewed */
    test_set_fault(faulty, SNK_ASK_RENEW, TEST_WORKS);
    sneck_lock_free(lock);
    sneck_close(client);
}

static void await_calls(const test_faulty *faulty, unsigned count)
{
    int64_t until_ms = test_now_ms() + TEST_PATIENCE_MS;
    while (atomic_load(&faulty->calls[SNK_ASK_RENEW]) < count) {
        assert_true(test_now_ms() < until_ms);
        (void)usleep(1000);
    }
}

/* Renewals that the thread has in hand and has not sent when it hangs, because each part of the store has its own. */
static void test_what_a_renewal_thread_that_hangs_has_not_sent_is_renewed_all_the_same(void **state)
{
    test_bed *bed = *state;
    sneck_client *client = open_watched(bed, 500);
    test_faulty *faulty = test_make_faulty(client);
    test_split_by_letter(faulty);
    sneck_lock_options options = SNECK_LOCK_OPTIONS_INIT;
    options.lease_ms = 4000;
    options.renew_ms = 200;
    sneck_lock *locks[IN_HAND];
    for (size_t i = 0; i < IN_HAND; i++) {
        locks[i] = test_mutex(client, (const char[]){ (char)('a' + (char)i), '\0' }, &options);
        acquire(locks[i]);
    }
    /* While the thread hangs with one of them all others fall due, so that it takes them all in hand after that. */
    test_set_fault(faulty, SNK_ASK_RENEW, TEST_HANGS);
    test_await_hanging(faulty, 1);
    (void)usleep(250000);
    unsigned calls = atomic_load(&faulty->calls[SNK_ASK_RENEW]);
    test_set_fault(faulty, SNK_ASK_RENEW, TEST_HANGS);
    await_calls(faulty, calls + 1);
    test_hang_no_more(faulty, SNK_ASK_RENEW);
    expect_replaced(client);
    assert_false(test_readable(sneck_lost_fd(locks[0]), 4500)); /* longer than the lease */
    for (size_t i = 0; i < IN_HAND; i++)
        assert_true(sneck_is_held(locks[i]));
    test_set_fault(faulty, SNK_ASK_RENEW, TEST_WORKS);
    for (size_t i = 0; i < IN_HAND; i++)
        sneck_lock_free(locks[i]);
    sneck_close(client);
}

/* Nothing calls it any more, and no timer fires: it must look for itself whether it is still wanted. */
static void test_a_renewal_thread_that_was_replaced_ends_when_it_comes_back(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    unsigned others = test_threads_named("sneck-renewer"); /* of the bed's own client */
    sneck_client *client = open_watched(bed, LOOKS_OFTEN_MS);
    test_faulty *faulty = test_make_faulty(client);
    sneck_lock *lock = hold_until_replaced(client, faulty);
    assert_true(test_threads_named("sneck-renewer") >= others + 2);
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    (void)usleep(200000); /* its timer has fired for the last time */
    test_set_fault(faulty, SNK_ASK_RENEW, TEST_WORKS);
    int64_t until_ms = test_now_ms() + TEST_PATIENCE_MS;
    while (test_threads_named("sneck-renewer") != others + 1) {
        assert_true(test_now_ms() < until_ms);
        (void)usleep(1000);
    }
    sneck_lock_free(lock);
    sneck_close(client);
}

static void test_a_frozen_renewal_thread_is_replaced(void **state)
{
    test_bed *bed = *state;
    sneck_client *client = open_watched(bed, LOOKS_OFTEN_MS);
    sneck_lock_options options = SNECK_LOCK_OPTIONS_INIT;
    options.lease_ms = 4000;
    options.renew_ms = 100;
    sneck_lock *lock = test_mutex(client, "a", &options);
    acquire(lock);
    (void)test_await_event(client, SNECK_EVENT_RENEWED);
    test_freezer freezer;
    pid_t thread = test_thread_named("sneck-renewer");
    assert_true(thread > 0);
    if (!test_freeze(&freezer, thread)) {
        sneck_lock_free(lock);
        sneck_close(client);
        test_skip("one process may not trace another here");
    }
    expect_replaced(client);
    (void)test_await_event(client, SNECK_EVENT_RENEWED);
    assert_false(test_readable(sneck_lost_fd(lock), 4500));
    test_thaw(&freezer);
    sneck_lock_free(lock);
    sneck_close(client);
}

/* Releases as soon as somebody waits for it in the store. */
static void *release_when_wanted(void *argument)
{
    const test_bed *bed = argument;
    sneck_error error;
    sneck_lock *lock = test_handle(bed->client, "a");
    acquire(lock);
    while (test_queue_in_store(bed->client, "a") == 0)
        (void)usleep(1000);
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    sneck_lock_free(lock);
    return NULL;
}

/* What the store has only offered ends soon, until the first renewal: that is as it should be. */
static void test_a_lock_that_was_waited_for_is_neither_late_nor_at_risk(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    if (strcmp(bed->url, "memory:") == 0)
        test_skip("two clients share no memory store");
    sneck_client *client = open_watched(bed, 600000);
    sneck_lock_options options = SNECK_LOCK_OPTIONS_INIT;
    options.renew_ms = 1000;
    sneck_lock *lock = test_mutex(client, "a", &options);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, release_when_wanted, bed), 0);
    while (!test_is_held_in_store(client, "a"))
        (void)usleep(1000);
    acquire(lock);
    EXPECT(SNECK_OK, sneck_check(client, &error)); /* before that renewal */
    assert_int_equal(pthread_join(thread, NULL), 0);
    (void)test_await_event(client, SNECK_EVENT_ACQUIRED);
    sneck_event event = { .kind = SNECK_EVENT_LOST };
    assert_true(test_readable(sneck_event_fd(client), TEST_PATIENCE_MS) && sneck_event_next(client, &event));
    if (event.kind != SNECK_EVENT_RENEWED)
        fail_msg("%s: %s", sneck_event_kind_name(event.kind), event.message);
    EXPECT(SNECK_OK, sneck_check(client, &error));
    assert_in_range(test_health(client).renewal_late_ms, 0, 5000);
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    sneck_lock_free(lock);
    sneck_close(client);
}

/* ---- State ---- */

static void test_a_hold_that_the_store_has_ended_is_lost_now(void **state)
{
    test_bed *bed = *state;
    test_needs_findings(bed);
    sneck_client *client = open_watched(bed, LOOKS_OFTEN_MS);
    sneck_lock_options options = quiet();
    sneck_lock *lock = test_mutex(client, "a", &options);
    sneck_lock *other = test_mutex(client, "b", &options);
    acquire(lock);
    acquire(other);
    uint64_t token = sneck_token(lock);
    test_break(client, "a");
    sneck_event lost = test_await_event(client, SNECK_EVENT_LOST);
    assert_string_equal(lost.name, "a");
    assert_int_equal(lost.cause, SNECK_CAUSE_GONE);
    assert_true(lost.token == token);
    sneck_event broken = test_await_event(client, SNECK_EVENT_BROKEN);
    assert_true(broken.token == token);
    assert_non_null(strstr(broken.message, "a test")); /* some stores add who did it */
    assert_false(sneck_is_held(lock));
    assert_true(sneck_is_held(other));
    test_await_findings(client, SNECK_CHECK_STATE, 1);
    sneck_health_report report = test_health(client);
    assert_int_equal(report.checks[SNECK_CHECK_STATE].findings, 1);
    assert_int_equal(report.lost, 1);
    assert_int_equal(report.held, 1);
    sneck_lock_free(lock);
    sneck_lock_free(other);
    sneck_close(client);
}

static void test_what_a_renewal_confirmed_is_not_asked_again(void **state)
{
    test_bed *bed = *state;
    sneck_client *client = open_watched(bed, 500);
    test_faulty *faulty = test_make_faulty(client);
    sneck_lock_options renewed = SNECK_LOCK_OPTIONS_INIT;
    renewed.renew_ms = 50;
    sneck_lock_options left_alone = quiet();
    left_alone.watchdog_ms = SNECK_NEVER;
    sneck_lock_options looked_at = quiet();
    sneck_lock *locks[] = {
        test_mutex(client, "renewed", &renewed),
        test_mutex(client, "left alone", &left_alone),
        test_mutex(client, "looked at", &looked_at),
    };
    for (size_t i = 0; i < 3; i++)
        acquire(locks[i]);
    test_await_runs(client, SNECK_CHECK_STATE, 4);
    assert_true(atomic_load(&faulty->checks) >= 2);
    /* Never more than one a round: only "looked at". */
    assert_true(atomic_load(&faulty->checks) <= test_health(client).checks[SNECK_CHECK_STATE].runs);
    for (size_t i = 0; i < 3; i++)
        sneck_lock_free(locks[i]);
    sneck_close(client);
}

/* ---- Owners ---- */

static void leave_with_lock(void *argument)
{
    acquire(argument);
    acquire(argument);
}

static void test_what_a_thread_leaves_behind_is_found_at_once_and_given_back(void **state)
{
    test_bed *bed = *state;
    sneck_client *client = open_watched(bed, 600000);
    sneck_lock_options options = quiet();
    sneck_lock *lock = test_mutex(client, "a", &options);
    test_on_thread(leave_with_lock, lock);
    sneck_event died = test_await_event(client, SNECK_EVENT_OWNER_DIED);
    assert_string_equal(died.name, "a");
    sneck_event released = test_await_event(client, SNECK_EVENT_RELEASED);
    assert_int_equal(released.cause, SNECK_CAUSE_OWNER_DIED);
    await_free_in_store(client, "a");
    acquire(lock);
    sneck_lock_free(lock);
    sneck_close(client);
}

static void test_what_a_thread_leaves_behind_is_only_reported_if_asked_to(void **state)
{
    test_bed *bed = *state;
    sneck_client *client = open_watched(bed, LOOKS_OFTEN_MS);
    sneck_lock_options options = quiet();
    options.recovery = SNECK_RECOVER_NOTIFY;
    sneck_lock *lock = test_mutex(client, "a", &options);
    test_on_thread(leave_with_lock, lock);
    (void)test_await_event(client, SNECK_EVENT_OWNER_DIED);
    uint64_t runs = test_health(client).checks[SNECK_CHECK_OWNER].runs;
    test_await_runs(client, SNECK_CHECK_OWNER, runs + 3);
    sneck_event event;
    assert_false(sneck_event_next(client, &event)); /* it is said once */
    assert_true(test_is_held_in_store(client, "a"));
    sneck_lock_free(lock);
    sneck_close(client);
}

/* A thread that takes a lock, and then stands still or spins until it is told to end. */
typedef struct owner {
    sneck_lock *lock;
    bool spins;
    int wake_fd[2];
    atomic_bool ends;
    sneck_status release;
} owner;

static void *own(void *argument)
{
    owner *self = argument;
    char byte = 0;
    acquire(self->lock);
    while (self->spins && !atomic_load(&self->ends))
        ;
    ssize_t rc = read(self->wake_fd[0], &byte, 1);
    (void)rc;
    self->release = sneck_release(self->lock, NULL);
    return NULL;
}

static pthread_t begin_owner(owner *self)
{
    pthread_t thread;
    assert_int_equal(pipe(self->wake_fd), 0);
    assert_int_equal(pthread_create(&thread, NULL, own, self), 0);
    return thread;
}

static void end_owner(owner *self, pthread_t thread)
{
    atomic_store(&self->ends, true);
    (void)close(self->wake_fd[1]);
    assert_int_equal(pthread_join(thread, NULL), 0);
    (void)close(self->wake_fd[0]);
}

static void test_the_lock_of_a_thread_that_is_stuck_is_taken_away(void **state)
{
    test_bed *bed = *state;
    sneck_client *client = open_watched(bed, LOOKS_OFTEN_MS);
    sneck_lock_options options = quiet();
    options.stuck_ms = 300;
    owner self = { .lock = test_mutex(client, "a", &options) };
    int64_t began_ms = test_now_ms();
    pthread_t thread = begin_owner(&self);
    sneck_event stuck = test_await_event(client, SNECK_EVENT_STUCK);
    assert_true(test_now_ms() - began_ms >= 300);
    assert_string_equal(stuck.name, "a");
    sneck_event lost = test_await_event(client, SNECK_EVENT_LOST);
    assert_int_equal(lost.cause, SNECK_CAUSE_STUCK);
    await_free_in_store(client, "a");
    end_owner(&self, thread);
    assert_int_equal(self.release, SNECK_LOST);
    test_await_findings(client, SNECK_CHECK_OWNER, 1);
    sneck_lock_free(self.lock);
    sneck_close(client);
}

static void test_a_thread_that_works_is_not_stuck(void **state)
{
    test_bed *bed = *state;
    sneck_client *client = open_watched(bed, LOOKS_OFTEN_MS);
    sneck_lock_options options = quiet();
    options.stuck_ms = 200;
    owner self = { .lock = test_mutex(client, "a", &options), .spins = true };
    pthread_t thread = begin_owner(&self);
    (void)test_await_event(client, SNECK_EVENT_ACQUIRED);
    uint64_t runs = test_health(client).checks[SNECK_CHECK_OWNER].runs;
    test_await_runs(client, SNECK_CHECK_OWNER, runs + 6);
    assert_int_equal(test_health(client).checks[SNECK_CHECK_OWNER].findings, 0);
    end_owner(&self, thread);
    assert_int_equal(self.release, SNECK_OK);
    sneck_lock_free(self.lock);
    sneck_close(client);
}

static void test_a_hold_that_lasts_too_long_is_ended_or_reported(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    sneck_client *client = open_watched(bed, LOOKS_OFTEN_MS);
    sneck_lock_options options = quiet();
    options.max_hold_ms = 200;
    options.owner = SNECK_OWNER_HANDLE;
    sneck_lock *ended = test_mutex(client, "ended", &options);
    options.recovery = SNECK_RECOVER_NOTIFY;
    sneck_lock *reported = test_mutex(client, "reported", &options);
    acquire(ended);
    sneck_event lost = test_await_event(client, SNECK_EVENT_LOST);
    assert_int_equal(lost.cause, SNECK_CAUSE_OVERDUE);
    await_free_in_store(client, "ended");
    acquire(reported);
    sneck_event stuck = test_await_event(client, SNECK_EVENT_STUCK);
    assert_string_equal(stuck.name, "reported");
    assert_true(sneck_is_held(reported));
    EXPECT(SNECK_LOST, sneck_release(ended, &error));
    EXPECT(SNECK_OK, sneck_release(reported, &error));
    sneck_lock_free(ended);
    sneck_lock_free(reported);
    sneck_close(client);
}

/* ---- Recovery ---- */

static void await_failed_recoveries(sneck_client *client, uint64_t failed)
{
    int64_t until_ms = test_now_ms() + TEST_PATIENCE_MS;
    while (test_health(client).recoveries_failed < failed && test_now_ms() < until_ms)
        (void)usleep(1000);
    assert_int_equal(test_health(client).recoveries_failed, failed);
}

/* Whether a remedy worked is what the store says. */
static void test_a_release_for_an_owner_that_fails_is_no_recovery(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    sneck_client *client = open_watched(bed, LOOKS_OFTEN_MS);
    test_faulty *faulty = test_make_faulty(client);
    sneck_lock_options options = quiet();
    sneck_lock *left = test_mutex(client, "left", &options);
    options.max_hold_ms = 100;
    options.owner = SNECK_OWNER_HANDLE;
    sneck_lock *overdue = test_mutex(client, "overdue", &options);
    test_set_fault(faulty, SNK_ASK_RELEASE, TEST_FAILS);
    test_on_thread(leave_with_lock, left);
    await_failed_recoveries(client, 1);
    acquire(overdue);
    await_failed_recoveries(client, 2);
    test_await_findings(client, SNECK_CHECK_RECOVERY, 1);
    assert_int_equal(test_health(client).recoveries, 0);
    test_set_fault(faulty, SNK_ASK_RELEASE, TEST_WORKS);
    await_free_in_store(client, "left");
    await_free_in_store(client, "overdue");
    EXPECT(SNECK_LOST, sneck_release(overdue, &error));
    acquire(overdue);
    int64_t until_ms = test_now_ms() + TEST_PATIENCE_MS;
    while (test_health(client).recoveries < 1 && test_now_ms() < until_ms)
        (void)usleep(1000);
    assert_int_equal(test_health(client).recoveries, 1);
    assert_int_equal(test_health(client).recoveries_failed, 2);
    sneck_lock_free(left);
    sneck_lock_free(overdue);
    sneck_close(client);
}

static void test_a_lost_lock_is_acquired_again_for_its_owner(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    sneck_client *client = open_watched(bed, LOOKS_OFTEN_MS);
    sneck_lock_options options = quiet();
    options.recovery = SNECK_RECOVER_REACQUIRE;
    options.owner = SNECK_OWNER_HANDLE;
    sneck_lock *lock = test_mutex(client, "a", &options);
    sneck_lock *stranger = test_mutex(client, "a", &options);
    acquire(lock);
    acquire(lock);
    uint64_t token = sneck_token(lock);
    test_break(client, "a");
    (void)test_await_event(client, SNECK_EVENT_LOST);
    sneck_event recovered = test_await_event(client, SNECK_EVENT_RECOVERED);
    assert_string_equal(recovered.name, "a");
    assert_true(recovered.token > token);
    assert_true(test_is_held_in_store(client, "a"));
    EXPECT(SNECK_BUSY, sneck_acquire(stranger, 0, &error));
    for (int i = 0; i < 2; i++) {
        assert_false(sneck_is_held(lock));
        EXPECT(SNECK_LOST, sneck_acquire(lock, 0, &error));
        EXPECT(SNECK_LOST, sneck_release(lock, &error));
    }
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    assert_true(sneck_token(lock) == recovered.token);
    assert_int_equal(sneck_hold_count(lock), 1);
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    assert_false(test_is_held_in_store(client, "a"));
    sneck_lock_free(lock);
    sneck_lock_free(stranger);
    sneck_close(client);
}

static void test_a_lock_acquired_again_goes_with_its_handle(void **state)
{
    test_bed *bed = *state;
    sneck_client *client = open_watched(bed, LOOKS_OFTEN_MS);
    sneck_lock_options options = quiet();
    options.recovery = SNECK_RECOVER_REACQUIRE;
    options.owner = SNECK_OWNER_HANDLE;
    sneck_lock *lock = test_mutex(client, "a", &options);
    acquire(lock);
    test_break(client, "a");
    (void)test_await_event(client, SNECK_EVENT_RECOVERED);
    sneck_lock_free(lock);
    assert_false(test_is_held_in_store(client, "a"));
    sneck_close(client);
}

static void test_acquiring_again_is_tried_until_the_store_answers(void **state)
{
    test_bed *bed = *state;
    sneck_client *client = open_watched(bed, LOOKS_OFTEN_MS);
    test_faulty *faulty = test_make_faulty(client);
    sneck_lock_options options = quiet();
    options.recovery = SNECK_RECOVER_REACQUIRE;
    sneck_lock *lock = test_mutex(client, "a", &options);
    acquire(lock);
    test_set_fault(faulty, SNK_ASK_ACQUIRE, TEST_FAILS);
    test_break(client, "a");
    (void)test_await_event(client, SNECK_EVENT_LOST);
    int64_t until_ms = test_now_ms() + TEST_PATIENCE_MS;
    while (test_health(client).recoveries_failed < 2 && test_now_ms() < until_ms)
        (void)usleep(1000);
    sneck_health_report report = test_health(client);
    assert_true(report.recoveries_failed >= 2);
    assert_true(report.checks[SNECK_CHECK_RECOVERY].findings >= 1);
    test_set_fault(faulty, SNK_ASK_ACQUIRE, TEST_WORKS);
    (void)test_await_event(client, SNECK_EVENT_RECOVERED);
    sneck_lock_free(lock);
    sneck_close(client);
}

static void ignore_done(void *context, sneck_status status, const sneck_error *error)
{
    (void)context;
    (void)status;
    (void)error;
}

static void test_closing_ends_what_is_being_acquired_again(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    sneck_client *client = open_watched(bed, LOOKS_OFTEN_MS);
    sneck_lock_options options = quiet();
    options.recovery = SNECK_RECOVER_REACQUIRE;
    sneck_lock_options fair = quiet();
    fair.owner = SNECK_OWNER_HANDLE;
    fair.fair = true;
    sneck_lock *lock = test_mutex(client, "a", &options);
    sneck_lock *next = test_mutex(client, "a", &fair);
    acquire(lock);
    /* Somebody else has it when it is lost, so that the rescue must wait. */
    sneck_request *request = NULL;
    EXPECT(SNECK_OK, sneck_acquire_async(next, SNECK_FOREVER, ignore_done, NULL, &request, &error));
    test_await_waiting(client, "a", 1);
    test_break(client, "a");
    (void)test_await_event(client, SNECK_EVENT_LOST);
    (void)test_await_event(client, SNECK_EVENT_ACQUIRED);
    test_await_waiting(client, "a", 1); /* the rescue: the other one has the lock */
    sneck_close(client);
    sneck_request_free(request);
    sneck_lock_free(lock);
    sneck_lock_free(next);
}

/* ---- Health ---- */

static void test_checks_can_be_run_at_any_time(void **state)
{
    test_bed *bed = *state;
    test_needs_findings(bed);
    sneck_error error;
    sneck_client *client = open_watched(bed, SNECK_NEVER);
    sneck_lock_options options = quiet();
    sneck_lock *lock = test_mutex(client, "a", &options);
    acquire(lock);
    assert_false(test_health(client).watched);
    EXPECT(SNECK_OK, sneck_check(client, &error));
    sneck_health_report report = test_health(client);
    assert_true(report.healthy);
    for (int i = 0; i < SNECK_CHECK_COUNT; i++) {
        assert_int_equal(report.checks[i].runs, 1);
        assert_in_range(report.checks[i].last_run_ms, 0, TEST_PATIENCE_MS);
        assert_true(report.checks[i].last_finding_ms == -1);
        assert_string_equal(report.checks[i].message, "");
    }
    assert_int_equal(report.held, 1);
    assert_int_equal(report.locks, 1);
    assert_true(report.connected);
    test_break(client, "a");
    EXPECT(SNECK_LOST, sneck_check(client, &error));
    assert_false(sneck_is_held(lock));
    report = test_health(client);
    assert_false(report.healthy);
    assert_string_equal(report.checks[SNECK_CHECK_STATE].message, "claim-lost");
    EXPECT(SNECK_OK, sneck_check(client, &error));
    assert_true(test_health(client).healthy);
    sneck_lock_free(lock);
    sneck_close(client);
}

static void test_a_lock_may_have_a_watchdog_in_a_client_without(void **state)
{
    test_bed *bed = *state;
    test_needs_findings(bed);
    sneck_client *client = open_watched(bed, SNECK_NEVER);
    sneck_lock_options options = quiet();
    sneck_lock *without = test_mutex(client, "without", &options);
    acquire(without);
    assert_false(test_health(client).watched);
    options.watchdog_ms = LOOKS_OFTEN_MS;
    sneck_lock *with = test_mutex(client, "with", &options);
    acquire(with);
    assert_true(test_health(client).watched);
    test_break(client, "without");
    test_break(client, "with");
    assert_string_equal(test_await_event(client, SNECK_EVENT_LOST).name, "with");
    assert_true(sneck_is_held(without)); /* as far as it knows */
    sneck_lock_free(with);
    sneck_lock_free(without);
    sneck_close(client);
}

static void test_health_wants_a_report_with_a_size(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    sneck_health_report report = { .size = 0 };
    EXPECT(SNECK_INVALID, sneck_health(bed->client, &report, &error));
    EXPECT(SNECK_INVALID, sneck_health(bed->client, NULL, &error));
    /* One of an older version is filled as far as it goes. */
    memset(&report, 0x55, sizeof report);
    report.size = offsetof(sneck_health_report, locks);
    EXPECT(SNECK_OK, sneck_health(bed->client, &report, &error));
    assert_true(report.healthy);
    assert_true(report.locks == UINT64_C(0x5555555555555555));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_renewal_thread_that_hangs_in_the_store_is_replaced),
        cmocka_unit_test(test_what_a_renewal_thread_that_hangs_has_not_sent_is_renewed_all_the_same),
        cmocka_unit_test(test_a_renewal_thread_that_was_replaced_ends_when_it_comes_back),
        cmocka_unit_test(test_a_frozen_renewal_thread_is_replaced),
        cmocka_unit_test(test_a_lock_that_was_waited_for_is_neither_late_nor_at_risk),
        cmocka_unit_test(test_a_hold_that_the_store_has_ended_is_lost_now),
        cmocka_unit_test(test_what_a_renewal_confirmed_is_not_asked_again),
        cmocka_unit_test(test_what_a_thread_leaves_behind_is_found_at_once_and_given_back),
        cmocka_unit_test(test_what_a_thread_leaves_behind_is_only_reported_if_asked_to),
        cmocka_unit_test(test_the_lock_of_a_thread_that_is_stuck_is_taken_away),
        cmocka_unit_test(test_a_thread_that_works_is_not_stuck),
        cmocka_unit_test(test_a_hold_that_lasts_too_long_is_ended_or_reported),
        cmocka_unit_test(test_a_release_for_an_owner_that_fails_is_no_recovery),
        cmocka_unit_test(test_a_lost_lock_is_acquired_again_for_its_owner),
        cmocka_unit_test(test_a_lock_acquired_again_goes_with_its_handle),
        cmocka_unit_test(test_acquiring_again_is_tried_until_the_store_answers),
        cmocka_unit_test(test_closing_ends_what_is_being_acquired_again),
        cmocka_unit_test(test_checks_can_be_run_at_any_time),
        cmocka_unit_test(test_a_lock_may_have_a_watchdog_in_a_client_without),
        cmocka_unit_test(test_health_wants_a_report_with_a_size),
    };
    /* Not on a quorum: its longest lease is shorter than what these tests need. */
    return test_run_long_leases_on_stores(tests, sizeof tests / sizeof tests[0]);
}
