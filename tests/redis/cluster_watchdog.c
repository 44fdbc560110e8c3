/* The watchdog on a cluster: any one of the servers may be silent. */
#include "test.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "bed.h"
#include "redis_bed.h"
#include "redis_fleet.h"

#define SERVERS 5

static redis_fleet fleet;

static int start(void **state)
{
    (void)state;
    fleet_start_masters(&fleet, SERVERS);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    fleet_stop(&fleet);
    return 0;
}

static sneck_client *open_client(int64_t watchdog_ms, const char *keys)
{
    sneck_error error;
    sneck_client *client = NULL;
    sneck_client_options options = SNECK_CLIENT_OPTIONS_INIT;
    options.watchdog_ms = watchdog_ms;
    EXPECT(SNECK_OK, sneck_open(fleet_cluster_url(&fleet, keys), &options, &client, &error));
    assert_true(sneck_event_fd(client) >= 0);
    return client;
}

/* Renewed so seldom that only the watchdog can find what happens. */
static void hold_on_each(sneck_client *client, sneck_lock *locks[SERVERS])
{
    sneck_error error;
    sneck_lock_options options = SNECK_LOCK_OPTIONS_INIT;
    options.lease_ms = 600000;
    for (size_t i = 0; i < SERVERS; i++) {
        char name[32];
        locks[i] = test_mutex(client, fleet_name_on(&fleet, i, 0, name), &options);
        EXPECT(SNECK_OK, sneck_acquire(locks[i], 0, &error));
    }
}

static void free_all(sneck_lock *locks[SERVERS])
{
    for (size_t i = 0; i < SERVERS; i++)
        sneck_lock_free(locks[i]);
}

typedef struct text {
    char bytes[65536];
    size_t length;
} text;

static void append(void *context, const char *data, size_t length)
{
    text *to = context;
    assert_true(to->length + length < sizeof to->bytes);
    memcpy(to->bytes + to->length, data, length);
    to->length += length;
}

static double metric(sneck_client *client, const char *name)
{
    static text all;
    all = (text){ .length = 0 };
    assert_int_equal(sneck_metrics_write(client, append, &all), SNECK_OK);
    char line[96];
    (void)snprintf(line, sizeof line, "\n%s ", name);
    const char *found = strstr(all.bytes, line);
    assert_non_null(found);
    return strtod(found + strlen(line), NULL);
}

/* Connections to further servers are made when these are needed: that is neither flapping nor connecting again. */
static void test_first_connections_are_no_reconnects(void **state)
{
    (void)state;
    sneck_error error;
    sneck_client *client = open_client(SNECK_NEVER, NULL);
    EXPECT(SNECK_OK, sneck_check(client, &error));
    uint64_t connects = test_health(client).connects;
    sneck_lock *locks[SERVERS];
    hold_on_each(client, locks);
    assert_true(test_health(client).connects > connects);
    EXPECT(SNECK_OK, sneck_check(client, &error));
    assert_int_equal(test_health(client).checks[SNECK_CHECK_CONNECTION].findings, 0);
    assert_true(metric(client, "sneck_backend_up") == 1);
    assert_true(metric(client, "sneck_backend_reconnects_total") == 0);
    free_all(locks);
    sneck_close(client);
}

/* It is found at once, and in each round, and a connection that was not made anew is no recovery. */
static void test_a_server_that_is_silent_is_found_and_its_connection_made_anew(void **state)
{
    (void)state;
    sneck_error error;
    sneck_client *client = open_client(SNECK_NEVER, "timeout=1000");
    sneck_lock *locks[SERVERS];
    hold_on_each(client, locks);
    EXPECT(SNECK_OK, sneck_check(client, &error));
    uint64_t connects = test_health(client).connects;
    assert_int_equal(kill(fleet.servers[2].pid, SIGSTOP), 0);
    EXPECT(SNECK_UNAVAILABLE, sneck_check(client, &error));
    assert_non_null(strstr(error.message, "half-open"));
    for (unsigned i = 0; i < 3; i++)
        EXPECT(SNECK_UNAVAILABLE, sneck_check(client, &error));
    sneck_health_report report = test_health(client);
    assert_int_equal(report.checks[SNECK_CHECK_CONNECTION].findings, 4);
    assert_int_equal(report.recoveries, 0);
    assert_false(report.connected);
    assert_true(metric(client, "sneck_backend_up") == 0);
    assert_int_equal(kill(fleet.servers[2].pid, SIGCONT), 0);
    int64_t until_ms = test_now_ms() + TEST_PATIENCE_MS;
    while (sneck_check(client, &error) != SNECK_OK)
        assert_true(test_now_ms() < until_ms);
    report = test_health(client);
    assert_true(report.connects > connects);
    assert_true(report.connected);
    assert_true(metric(client, "sneck_backend_reconnects_total") >= 1);
    free_all(locks);
    sneck_close(client);
}

/* Nor does it wait for that server for as long as calls to it may take. */
static void test_what_is_lost_on_another_server_is_found_while_one_is_silent(void **state)
{
    (void)state;
    sneck_error error;
    sneck_client *client = open_client(200, "timeout=20000");
    sneck_lock *locks[SERVERS];
    hold_on_each(client, locks);
    EXPECT(SNECK_OK, sneck_check(client, &error));
    assert_int_equal(kill(fleet.servers[2].pid, SIGSTOP), 0);
    test_await_findings(client, SNECK_CHECK_CONNECTION, 1);
    char name[32];
    fleet_do(&fleet.servers[4], "DEL lock:%s", fleet_name_on(&fleet, 4, 0, name));
    int64_t began_ms = test_now_ms();
    sneck_event lost = test_await_event(client, SNECK_EVENT_LOST);
    assert_string_equal(lost.name, name);
    assert_true(test_now_ms() - began_ms < 10000);
    assert_int_equal(kill(fleet.servers[2].pid, SIGCONT), 0);
    free_all(locks);
    sneck_close(client);
}

#define ON_CLUSTER(test) cmocka_unit_test_setup_teardown(test, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_CLUSTER(test_first_connections_are_no_reconnects),
        ON_CLUSTER(test_a_server_that_is_silent_is_found_and_its_connection_made_anew),
        ON_CLUSTER(test_what_is_lost_on_another_server_is_found_while_one_is_silent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
