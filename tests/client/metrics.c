/* What a program exports: each thing that happens is in the series that it belongs to, and counted once. */
#include "bed.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "faulty.h"

#define PAGE_SIZE_MAX (1 << 20)

typedef struct page {
    size_t length;
    char text[PAGE_SIZE_MAX];
} page;

static void append_text(void *context, const char *text, size_t length)
{
    page *self = context;
    assert_true(self->length + length < sizeof self->text);
    memcpy(self->text + self->length, text, length);
    self->length += length;
    self->text[self->length] = '\0';
}

static page *export_page(sneck_client *client)
{
    page *self = calloc(1, sizeof *self);
    assert_non_null(self);
    assert_int_equal(sneck_metrics_write(client, append_text, self), SNECK_OK);
    return self;
}

/* The value of one series, which must be there. */
static double value_in(const page *self, const char *series)
{
    size_t length = strlen(series);
    for (const char *line = self->text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, series, length) == 0 && line[length] == ' ')
            return strtod(line + length + 1, NULL);
    }
    fail_msg("there is no %s", series);
    return -1;
}

static double value_of(sneck_client *client, const char *series)
{
    page *self = export_page(client);
    double value = value_in(self, series);
    free(self);
    return value;
}

static void expect_series(sneck_client *client, const char *series, double expected)
{
    double value = value_of(client, series);
    if (value < expected || value > expected)
        fail_msg("%s is %g instead of %g", series, value, expected);
}

static void await_value(sneck_client *client, const char *series, double least)
{
    int64_t until_ms = test_now_ms() + TEST_PATIENCE_MS;
    while (value_of(client, series) < least) {
        if (test_now_ms() > until_ms)
            fail_msg("%s does not come to %g", series, least);
        (void)usleep(1000);
    }
}

static sneck_client *open_client(const test_bed *bed)
{
    sneck_client_options options = SNECK_CLIENT_OPTIONS_INIT;
    options.watchdog_ms = 600000;
    return test_open(bed, &options);
}

static void test_acquires_releases_and_losses_are_counted(void **state)
{
    test_bed *bed = *state;
    test_needs_findings(bed);
    sneck_error error;
    sneck_client *client = open_client(bed);
    sneck_lock *a = test_handle(client, "job/a");
    sneck_lock *same = test_handle(client, "job/a");
    sneck_lock *b = test_handle(client, "door");
    for (int i = 0; i < 3; i++) {
        EXPECT(SNECK_OK, sneck_acquire(a, 0, &error));
        EXPECT(SNECK_OK, sneck_acquire(a, 0, &error)); /* a level is none of it */
        EXPECT(SNECK_BUSY, sneck_acquire(same, 0, &error));
        EXPECT(SNECK_OK, sneck_release(a, &error));
        EXPECT(SNECK_OK, sneck_release(a, &error));
    }
    EXPECT(SNECK_OK, sneck_acquire(a, 0, &error));
    EXPECT(SNECK_TIMEOUT, sneck_acquire(same, 50, &error));
    EXPECT(SNECK_OK, sneck_acquire(b, 0, &error));
    expect_series(client, "sneck_acquire_total{lock=\"job\",result=\"acquired\"}", 4);
    expect_series(client, "sneck_acquire_total{lock=\"job\",result=\"busy\"}", 3);
    expect_series(client, "sneck_acquire_total{lock=\"job\",result=\"timeout\"}", 1);
    expect_series(client, "sneck_acquire_total{lock=\"door\",result=\"acquired\"}", 1);
    expect_series(client, "sneck_acquire_total{lock=\"other\",result=\"acquired\"}", 0);
    expect_series(client, "sneck_wait_seconds_count{lock=\"job\"}", 4);
    expect_series(client, "sneck_hold_seconds_count{lock=\"job\"}", 3);
    expect_series(client, "sneck_held{lock=\"job\"}", 1);
    expect_series(client, "sneck_held{lock=\"door\"}", 1);
    expect_series(client, "sneck_locks", 2);
    expect_series(client, "sneck_events_total{kind=\"acquired\"}", 5);
    expect_series(client, "sneck_events_total{kind=\"released\"}", 3);
    expect_series(client, "sneck_backend_request_seconds_count{op=\"release\"}", 3);
    test_break(client, "job/a");
    EXPECT(SNECK_LOST, sneck_check(client, &error));
    test_break(client, "door");
    EXPECT(SNECK_LOST, sneck_release(b, &error)); /* found by the release alone */
    expect_series(client, "sneck_lost_total{lock=\"job\",cause=\"gone\"}", 1);
    expect_series(client, "sneck_lost_total{lock=\"door\",cause=\"gone\"}", 1);
    expect_series(client, "sneck_hold_seconds_count{lock=\"job\"}", 4);
    expect_series(client, "sneck_hold_seconds_count{lock=\"door\"}", 1);
    expect_series(client, "sneck_watchdog_findings_total{finding=\"claim-lost\"}", 1);
    expect_series(client, "sneck_watchdog_checks_total{check=\"state\"}", 1);
    expect_series(client, "sneck_held{lock=\"job\"}", 0);
    EXPECT(SNECK_LOST, sneck_release(a, &error));
    sneck_lock_free(a);
    sneck_lock_free(same);
    sneck_lock_free(b);
    sneck_close(client);
}

static void *take_and_give_back(void *argument)
{
    sneck_error error;
    EXPECT(SNECK_OK, sneck_acquire(argument, TEST_PATIENCE_MS, &error));
    EXPECT(SNECK_OK, sneck_release(argument, &error));
    return NULL;
}

static void test_who_waits_the_oldest_hold_and_the_wait_are_seen(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    sneck_client *client = open_client(bed);
    sneck_lock *held = test_handle(client, "job/a");
    sneck_lock *wanted = test_handle(client, "job/a");
    EXPECT(SNECK_OK, sneck_acquire(held, 0, &error));
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, take_and_give_back, wanted), 0);
    await_value(client, "sneck_waiting{lock=\"job\"}", 1);
    await_value(client, "sneck_oldest_hold_seconds{lock=\"job\"}", 0.15);
    EXPECT(SNECK_OK, sneck_release(held, &error));
    assert_int_equal(pthread_join(thread, NULL), 0);
    expect_series(client, "sneck_waiting{lock=\"job\"}", 0);
    expect_series(client, "sneck_oldest_hold_seconds{lock=\"job\"}", 0);
    assert_true(value_of(client, "sneck_hold_seconds_sum{lock=\"job\"}") >= 0.15);
    expect_series(client, "sneck_wait_seconds_bucket{lock=\"job\",le=\"+Inf\"}", 2);
    /* Whether it passed inside the process depends on the store's tokens and on the time; it is counted if it did. */
    assert_true(value_of(client, "sneck_hand_off_seconds_count{lock=\"job\"}") <= 1);
    sneck_lock_free(held);
    sneck_lock_free(wanted);
    sneck_close(client);
}

static void test_renewals_and_their_failures_are_counted_and_told(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    sneck_client *client = open_client(bed);
    assert_true(sneck_event_fd(client) >= 0);
    test_faulty *faulty = test_make_faulty(client);
    sneck_lock_options options = SNECK_LOCK_OPTIONS_INIT;
    options.lease_ms = bed->lease_max_ms < 30000 ? bed->lease_max_ms : 30000;
    options.renew_ms = 50;
    sneck_lock *lock = test_mutex(client, "a", &options);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    await_value(client, "sneck_renewals_total{result=\"ok\"}", 2);
    assert_true(value_of(client, "sneck_renewal_margin_seconds_count") >= 2);
    assert_true(value_of(client, "sneck_renewal_lateness_seconds_count") >= 2);
    test_set_fault(faulty, SNK_ASK_RENEW, TEST_FAILS);
    sneck_event failed = test_await_event(client, SNECK_EVENT_RENEWAL_FAILED);
    assert_int_equal(failed.status, SNECK_UNAVAILABLE);
    assert_string_equal(failed.name, "a");
    assert_true(failed.token == sneck_token(lock) && failed.remaining_ms > 0);
    sneck_event at_risk = test_await_event(client, SNECK_EVENT_AT_RISK); /* after three in a row */
    assert_string_equal(at_risk.name, "a");
    assert_true(value_of(client, "sneck_renewals_total{result=\"failed\"}") >= 3);
    assert_true(value_of(client, "sneck_backend_errors_total{kind=\"unavailable\"}") >= 3);
    assert_true(sneck_is_held(lock)); /* its lease lasts */
    test_set_fault(faulty, SNK_ASK_RENEW, TEST_WORKS);
    (void)test_await_event(client, SNECK_EVENT_RENEWED);
    /* Renewing has ended when a release returns. */
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    unsigned renewals = atomic_load(&faulty->calls[SNK_ASK_RENEW]);
    (void)usleep(300000);
    assert_int_equal(atomic_load(&faulty->calls[SNK_ASK_RENEW]), renewals);
    sneck_lock_free(lock);
    sneck_close(client);
}

static void test_a_circle_is_an_event_and_a_result(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    sneck_client *client = open_client(bed);
    assert_true(sneck_event_fd(client) >= 0);
    sneck_lock_options options = SNECK_LOCK_OPTIONS_INIT;
    options.reentrant = false;
    sneck_lock *lock = test_mutex(client, "a", &options);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    EXPECT(SNECK_DEADLOCK, sneck_acquire(lock, TEST_PATIENCE_MS, &error));
    sneck_event event = test_await_event(client, SNECK_EVENT_DEADLOCK);
    assert_string_equal(event.name, "a");
    assert_int_equal(event.status, SNECK_DEADLOCK);
    expect_series(client, "sneck_acquire_total{lock=\"a\",result=\"deadlock\"}", 1);
    expect_series(client, "sneck_events_total{kind=\"deadlock\"}", 1);
    sneck_lock_free(lock);
    sneck_close(client);
}

/* However many names there are, there are at most 100 classes beside `other`. */
static void test_classes_beyond_a_hundred_are_counted_together(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    sneck_client *client = open_client(bed);
    for (int i = 0; i < 103; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "class%d/a", i);
        sneck_lock *lock = test_mutex(client, name, NULL);
        EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
        EXPECT(SNECK_OK, sneck_release(lock, &error));
        sneck_lock_free(lock);
    }
    page *self = export_page(client);
    assert_true(value_in(self, "sneck_acquire_total{lock=\"class99\",result=\"acquired\"}") > 0);
    assert_int_equal((int)value_in(self, "sneck_acquire_total{lock=\"other\",result=\"acquired\"}"), 3);
    assert_null(strstr(self->text, "lock=\"class100\""));
    free(self);
    sneck_close(client);
}

/* A watchdog that hangs in its first round must be seen by its age. */
static void test_the_age_of_the_round_counts_from_the_start(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    sneck_client *client = open_client(bed);
    expect_series(client, "sneck_watchdog_round_age_seconds", 0); /* it does not run yet */
    sneck_lock *lock = test_mutex(client, "a", NULL);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    await_value(client, "sneck_watchdog_round_age_seconds", 0.05);
    expect_series(client, "sneck_watchdog_checks_total{check=\"recovery\"}", 0);
    expect_series(client, "sneck_watchdog_period_seconds", 600);
    sneck_lock_free(lock);
    sneck_close(client);
}

/* A check that finds something three times in a row raises one alert. */
static void test_alerts_and_dropped_events_are_in_the_report(void **state)
{
    test_bed *bed = *state;
    test_needs_findings(bed);
    sneck_error error;
    sneck_client *client = open_client(bed);
    assert_true(sneck_event_fd(client) >= 0);
    for (int i = 0; i < 4; i++) {
        sneck_lock *lock = test_mutex(client, "a", NULL);
        EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
        test_break(client, "a");
        EXPECT(SNECK_LOST, sneck_check(client, &error));
        EXPECT(SNECK_LOST, sneck_release(lock, &error));
        sneck_lock_free(lock);
    }
    sneck_health_report report = test_health(client);
    assert_int_equal(report.alerts, 1);
    assert_int_equal(report.checks[SNECK_CHECK_STATE].in_a_row, 4);
    expect_series(client, "sneck_watchdog_alerts_total{check=\"state\"}", 1);
    assert_true(report.events_waiting >= 8); /* nobody has fetched any */
    assert_int_equal(report.events_dropped, 0);
    sneck_close(client);
}

static void test_events_that_nobody_fetches_are_dropped_and_counted_but_no_loss(void **state)
{
    (void)state;
    sneck_error error;
    sneck_client *client = NULL;
    EXPECT(SNECK_OK, sneck_open("memory:", NULL, &client, &error));
    assert_true(sneck_event_fd(client) >= 0);
    sneck_lock *lock = test_mutex(client, "a", NULL);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    test_break(client, "a");
    EXPECT(SNECK_LOST, sneck_check(client, &error));
    EXPECT(SNECK_LOST, sneck_release(lock, &error));
    uint64_t events = 0;
    while (test_health(client).events_dropped < 10 && events < 1000000) {
        EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
        EXPECT(SNECK_OK, sneck_release(lock, &error));
        events += 2;
    }
    sneck_health_report report = test_health(client);
    assert_true(report.events_dropped >= 10);
    /* That it was broken may be told just now, and cost one more. */
    uint64_t dropped = (uint64_t)value_of(client, "sneck_events_dropped_total");
    assert_in_range(dropped, report.events_dropped, test_health(client).events_dropped);
    assert_true((uint64_t)value_of(client, "sneck_events_waiting") == report.events_waiting);
    (void)test_await_event(client, SNECK_EVENT_LOST); /* the oldest of all is still there */
    sneck_lock_free(lock);
    sneck_close(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_acquires_releases_and_losses_are_counted),
        cmocka_unit_test(test_who_waits_the_oldest_hold_and_the_wait_are_seen),
        cmocka_unit_test(test_renewals_and_their_failures_are_counted_and_told),
        cmocka_unit_test(test_a_circle_is_an_event_and_a_result),
        cmocka_unit_test(test_classes_beyond_a_hundred_are_counted_together),
        cmocka_unit_test(test_the_age_of_the_round_counts_from_the_start),
        cmocka_unit_test(test_alerts_and_dropped_events_are_in_the_report),
        cmocka_unit_test(test_events_that_nobody_fetches_are_dropped_and_counted_but_no_loss),
    };
    return test_run_on_stores(tests, sizeof tests / sizeof tests[0]);
}
