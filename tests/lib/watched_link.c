#include "watched_link.h"

#include <unistd.h>

#include "bed.h"

#define LEASE_MS 20000

static sneck_client *open_watched(const char *url)
{
    sneck_error error;
    sneck_client *client = NULL;
    sneck_client_options options = SNECK_CLIENT_OPTIONS_INIT;
    options.watchdog_ms = 100;
    EXPECT(SNECK_OK, sneck_open(url, &options, &client, &error));
    assert_true(sneck_event_fd(client) >= 0);
    return client;
}

/* Renewed so seldom that nobody but the watchdog uses the connection. */
static sneck_lock *hold(sneck_client *client)
{
    sneck_error error;
    sneck_lock_options options = SNECK_LOCK_OPTIONS_INIT;
    options.lease_ms = LEASE_MS;
    options.renew_ms = LEASE_MS / 2;
    sneck_lock *lock = test_mutex(client, "a", &options);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    return lock;
}

static void await_recovery(sneck_client *client)
{
    int64_t until_ms = test_now_ms() + TEST_PATIENCE_MS;
    while (test_health(client).recoveries < 1) {
        assert_true(test_now_ms() < until_ms);
        (void)usleep(1000);
    }
}

void test_half_open_is_found(const char *url, fault_proxy *proxy)
{
    sneck_error error;
    sneck_client *client = open_watched(url);
    sneck_lock *lock = hold(client);
    sneck_health_report before = test_health(client);
    assert_true(before.connected);
    proxy_kill_silently(proxy);
    int64_t killed_ms = test_now_ms();
    sneck_event down = test_await_event(client, SNECK_EVENT_CONNECTION_DOWN);
    assert_string_equal(down.name, "");
    (void)test_await_event(client, SNECK_EVENT_CONNECTION_UP);
    print_message("# figure: a half open connection was found and made anew after %d ms\n",
                  (int)(test_now_ms() - killed_ms));
    await_recovery(client);
    sneck_health_report report = test_health(client);
    assert_true(report.checks[SNECK_CHECK_CONNECTION].findings >= 1);
    assert_int_equal(report.connects, before.connects + 1);
    assert_true(report.connected);
    assert_true(report.round_trip_us >= 0);
    EXPECT(SNECK_OK, sneck_extend(lock, LEASE_MS, &error));
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    sneck_lock_free(lock);
    sneck_close(client);
}

void test_expect_away(sneck_client *client)
{
    sneck_error error;
    assert_true(sneck_check(client, &error) != SNECK_OK);
    assert_int_equal(error.status, SNECK_UNAVAILABLE);
    sneck_health_report report = test_health(client);
    assert_false(report.healthy);
    assert_false(report.connected);
    assert_string_equal(report.checks[SNECK_CHECK_CONNECTION].message, "disconnected");
}

void test_away_is_found(const char *url, void (*crash)(void *context), void (*restart)(void *context), void *context)
{
    sneck_error error;
    sneck_client *client = open_watched(url);
    sneck_lock *lock = hold(client);
    crash(context);
    (void)test_await_event(client, SNECK_EVENT_CONNECTION_DOWN);
    test_expect_away(client);
    restart(context);
    (void)test_await_event(client, SNECK_EVENT_CONNECTION_UP);
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    sneck_lock_free(lock);
    sneck_close(client);
}
