/* The watchdog on a real Redis server: keys that are deleted or taken over, connections that are dead or flap. */
#include "test.h"

#include <string.h>
#include <unistd.h>

#include "bed.h"
#include "proxy.h"
#include "redis_bed.h"

#define WATCHDOG_MS 150

static sneck_client_options watched(void)
{
    sneck_client_options options = SNECK_CLIENT_OPTIONS_INIT;
    options.watchdog_ms = WATCHDOG_MS;
    return options;
}

/* Renewed so seldom that only the watchdog can find what happens. */
static sneck_lock *hold(sneck_client *client, const char *name)
{
    sneck_error error;
    sneck_lock_options options = SNECK_LOCK_OPTIONS_INIT;
    options.lease_ms = 600000;
    assert_true(sneck_event_fd(client) >= 0);
    sneck_lock *lock = test_mutex(client, name, &options);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    return lock;
}

static void expect_lost(sneck_client *client, sneck_lock *lock, sneck_cause cause)
{
    sneck_error error;
    sneck_event lost = test_await_event(client, SNECK_EVENT_LOST);
    assert_string_equal(lost.name, "a");
    if (lost.cause != cause)
        fail_msg("lost because of %s instead of %s", sneck_cause_name(lost.cause), sneck_cause_name(cause));
    assert_false(sneck_is_held(lock));
    assert_true(sneck_token(lock) == 0);
    EXPECT(SNECK_LOST, sneck_release(lock, &error));
    test_await_findings(client, SNECK_CHECK_STATE, 1);
    sneck_lock_free(lock);
}

static void test_a_deleted_key_is_loss_now(void **state)
{
    redis_bed *bed = *state;
    const char *const layouts[] = { "layout=hash", "layout=string" };
    for (size_t i = 0; i < 2; i++) {
        sneck_client_options options = watched();
        sneck_client *client = redis_bed_open(bed, layouts[i], &options);
        sneck_lock *lock = hold(client, "a");
        redis_bed_do(bed, "DEL lock:a");
        expect_lost(client, lock, SNECK_CAUSE_GONE);
        assert_int_equal(redis_bed_number(bed, "EXISTS lock:a"), 0);
        sneck_close(client);
    }
}

/* What other programs may put in the place of our lock. */
static void test_a_key_that_was_taken_over_is_loss_now(void **state)
{
    redis_bed *bed = *state;
    static const struct {
        const char *layout;
        const char *takes_over;
    } rows[] = {
        { "layout=hash", "HSET lock:a other-client:7 1" },
        { "layout=hash", "HSET lock:a ~claim 00112233445566778899aabbccddeeff other:1 1 ~token 5" },
        { "layout=hash", "SET lock:a other-client:7" },
        { "layout=string", "SET lock:a other-client:7:00112233445566778899aabbccddeeff" },
        { "layout=string", "HSET lock:a other-client:7 1" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        sneck_client_options options = watched();
        sneck_client *client = redis_bed_open(bed, rows[i].layout, &options);
        sneck_lock *lock = hold(client, "a");
        redis_bed_do(bed, "MULTI");
        redis_bed_do(bed, "DEL lock:a");
        redis_bed_do(bed, rows[i].takes_over);
        redis_bed_do(bed, "EXEC");
        expect_lost(client, lock, SNECK_CAUSE_TAKEN);
        /* It is the other one's, and stays so. */
        assert_int_equal(redis_bed_number(bed, "EXISTS lock:a"), 1);
        redis_bed_do(bed, "DEL lock:a");
        sneck_close(client);
    }
}

static void test_a_flushed_server_costs_every_hold_now(void **state)
{
    redis_bed *bed = *state;
    sneck_client_options options = watched();
    sneck_client *client = redis_bed_open(bed, NULL, &options);
    enum {
        LOCKS = 600 /* several batches */
    };
    sneck_lock *locks[LOCKS];
    for (int i = 0; i < LOCKS; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "many/%d", i);
        locks[i] = hold(client, name);
    }
    redis_bed_do(bed, "FLUSHALL");
    int64_t until_ms = test_now_ms() + TEST_PATIENCE_MS;
    while (test_health(client).lost < LOCKS && test_now_ms() < until_ms)
        (void)usleep(1000);
    assert_int_equal(test_health(client).lost, LOCKS);
    for (int i = 0; i < LOCKS; i++)
        sneck_lock_free(locks[i]);
    sneck_close(client);
}

/* ---- The connection ---- */

static void test_a_half_open_connection_is_made_anew(void **state)
{
    redis_bed *bed = *state;
    sneck_error error;
    fault_proxy proxy;
    assert_true(proxy_start(&proxy, bed->server.port));
    sneck_client_options options = watched();
    sneck_client *client = NULL;
    /* Left to itself the connection would be given up after a minute. */
    EXPECT(SNECK_OK, sneck_open(redis_bed_url_at(proxy.port, "timeout=60000"), &options, &client, &error));
    sneck_lock_options lock_options = SNECK_LOCK_OPTIONS_INIT;
    lock_options.lease_ms = 10000;
    lock_options.renew_ms = 200;
    sneck_lock *lock = test_mutex(client, "a", &lock_options);
    assert_true(sneck_event_fd(client) >= 0);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    proxy_kill_silently(&proxy);
    sneck_event down = test_await_event(client, SNECK_EVENT_CONNECTION_DOWN);
    assert_string_equal(down.name, "");
    (void)test_await_event(client, SNECK_EVENT_CONNECTION_UP);
    (void)test_await_event(client, SNECK_EVENT_RENEWED);
    int64_t until_ms = test_now_ms() + TEST_PATIENCE_MS;
    while (test_health(client).recoveries < 1 && test_now_ms() < until_ms)
        (void)usleep(1000);
    sneck_health_report report = test_health(client);
    assert_true(report.checks[SNECK_CHECK_CONNECTION].findings >= 1);
    assert_true(report.recoveries >= 1);
    assert_true(report.connects == 2);
    assert_true(report.connected);
    assert_true(report.round_trip_us >= 0);
    assert_true(sneck_is_held(lock));
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    sneck_lock_free(lock);
    sneck_close(client);
    proxy_stop(&proxy);
}

static void test_a_server_that_is_away_is_found_and_found_again(void **state)
{
    redis_bed *bed = *state;
    sneck_error error;
    sneck_client_options options = watched();
    sneck_client *client = redis_bed_open(bed, NULL, &options);
    sneck_lock *lock = hold(client, "a");
    assert_true(sneck_event_fd(client) >= 0);
    redis_bed_crash(bed, true);
    (void)test_await_event(client, SNECK_EVENT_CONNECTION_DOWN);
    assert_true(sneck_check(client, &error) != SNECK_OK);
    assert_int_equal(error.status, SNECK_UNAVAILABLE);
    sneck_health_report report = test_health(client);
    assert_false(report.healthy);
    assert_string_equal(report.checks[SNECK_CHECK_CONNECTION].message, "disconnected");
    redis_bed_restart(bed);
    (void)test_await_event(client, SNECK_EVENT_CONNECTION_UP);
    EXPECT(SNECK_OK, sneck_check(client, &error));
    assert_true(sneck_is_held(lock));
    sneck_lock_free(lock);
    sneck_close(client);
}

static void test_a_connection_that_flaps_is_found(void **state)
{
    redis_bed *bed = *state;
    sneck_error error;
    sneck_client_options options = SNECK_CLIENT_OPTIONS_INIT;
    options.watchdog_ms = SNECK_NEVER;
    sneck_client *client = redis_bed_open(bed, NULL, &options);
    EXPECT(SNECK_OK, sneck_check(client, &error));
    uint64_t connects = test_health(client).connects;
    for (uint64_t i = 1; i <= 4; i++) {
        redis_bed_do(bed, "CLIENT KILL TYPE normal SKIPME yes");
        while (test_health(client).connects < connects + i)
            if (sneck_check(client, &error) != SNECK_OK)
                (void)usleep(1000);
    }
    EXPECT(SNECK_UNAVAILABLE, sneck_check(client, &error));
    assert_non_null(strstr(error.message, "flapping"));
    sneck_close(client);
}

static void test_the_clock_of_the_server_is_known(void **state)
{
    redis_bed *bed = *state;
    sneck_error error;
    sneck_client *client = redis_bed_open(bed, NULL, NULL);
    EXPECT(SNECK_OK, sneck_check(client, &error));
    sneck_health_report report = test_health(client);
    assert_in_range(report.round_trip_us, 1, 5000000);
    sneck_close(client);
}

#define ON_SERVER(name) cmocka_unit_test_setup_teardown(name, redis_bed_set_up, redis_bed_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_SERVER(test_a_deleted_key_is_loss_now),
        ON_SERVER(test_a_key_that_was_taken_over_is_loss_now),
        ON_SERVER(test_a_flushed_server_costs_every_hold_now),
        ON_SERVER(test_a_half_open_connection_is_made_anew),
        ON_SERVER(test_a_server_that_is_away_is_found_and_found_again),
        ON_SERVER(test_a_connection_that_flaps_is_found),
        ON_SERVER(test_the_clock_of_the_server_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
