/* The watchdog on a quorum: it matters whether a majority of the nodes answers. */
#include "test.h"

#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "bed.h"
#include "client/client.h"
#include "quorum_bed.h"
#include "watched_link.h"

#define WATCHDOG_MS 150
#define LEASE_MS 8000 /* long enough for a second of silence, and for making connections, on a slow machine */

static quorum_bed nodes;

static sneck_client *open_watched(const char *keys)
{
    sneck_error error;
    sneck_client *client = NULL;
    sneck_client_options options = SNECK_CLIENT_OPTIONS_INIT;
    options.lease_ms = LEASE_MS;
    options.watchdog_ms = WATCHDOG_MS;
    EXPECT(SNECK_OK, sneck_open(quorum_bed_url(&nodes, keys), &options, &client, &error));
    assert_true(sneck_event_fd(client) >= 0);
    return client;
}

/* Only who holds is watched. */
static sneck_lock *hold(sneck_client *client, const char *name)
{
    sneck_error error;
    sneck_lock *lock = test_mutex(client, name, NULL);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    return lock;
}

/* The probe of a quorum that is well is as long as a round trip, and shows the clock of the nodes, which is ours here. */
static void test_a_majority_that_answers_is_well(void **state)
{
    (void)state;
    sneck_error error;
    sneck_client *client = open_watched(NULL);
    EXPECT(SNECK_OK, sneck_check(client, &error));
    sneck_health_report report = test_health(client);
    assert_true(report.checks[SNECK_CHECK_CONNECTION].runs >= 1);
    assert_in_range(report.round_trip_us, 1, 5000000);
    snk_probe probe;
    EXPECT(SNECK_OK, client->store->ops->probe(client->store, SNK_NS_PER_S, &probe, &error));
    assert_true(probe.has_clock);
    assert_in_range(probe.clock_offset_ns + SNK_NS_PER_S, 1, 2 * SNK_NS_PER_S);
    proxy_harm(&nodes.proxies[1], PROXY_STALL_REPLIES, "");
    proxy_harm(&nodes.proxies[3], PROXY_STALL_REPLIES, "");
    EXPECT(SNECK_OK, sneck_check(client, &error)); /* three of five */
    assert_int_equal(test_health(client).checks[SNECK_CHECK_CONNECTION].findings, 0);
    proxy_harm(&nodes.proxies[1], PROXY_PASS, "");
    proxy_harm(&nodes.proxies[3], PROXY_PASS, "");
    sneck_close(client);
}

/* Three connections carry nothing any more, and neither end knows. */
static void test_half_open_connections_to_a_majority_are_made_anew(void **state)
{
    (void)state;
    sneck_error error;
    /* Left to themselves the connections would be given up after a minute. */
    sneck_client *client = open_watched("timeout=60000");
    sneck_lock *lock = hold(client, "a");
    quorum_bed_await_votes(&nodes, "a", QUORUM_NODES); /* so it is connected to all of them */
    uint64_t connects = test_health(client).connects;
    for (uint32_t i = 0; i < 3; i++)
        proxy_kill_silently(&nodes.proxies[i]);
    (void)test_await_event(client, SNECK_EVENT_CONNECTION_DOWN);
    (void)test_await_event(client, SNECK_EVENT_CONNECTION_UP);
    (void)test_await_event(client, SNECK_EVENT_RENEWED);
    assert_true(sneck_is_held(lock));
    test_await_findings(client, SNECK_CHECK_CONNECTION, 1);
    int64_t until_ms = test_now_ms() + TEST_PATIENCE_MS;
    while ((test_health(client).recoveries < 1 || test_health(client).connects < connects + 3) &&
           test_now_ms() < until_ms)
        (void)usleep(1000);
    sneck_health_report report = test_health(client);
    assert_true(report.recoveries >= 1);
    assert_true(report.connected);
    assert_true(report.connects == connects + 3); /* those that answer are left alone */
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    sneck_lock_free(lock);
    sneck_close(client);
}

static void test_a_majority_that_is_away_is_found_and_found_again(void **state)
{
    (void)state;
    sneck_error error;
    sneck_client *client = open_watched(NULL);
    sneck_lock *lock = hold(client, "a");
    for (uint32_t i = 0; i < 2; i++)
        quorum_bed_kill(&nodes, i);
    EXPECT(SNECK_OK, sneck_check(client, &error));
    assert_true(test_health(client).connected);
    quorum_bed_kill(&nodes, 2);
    (void)test_await_event(client, SNECK_EVENT_CONNECTION_DOWN);
    test_expect_away(client);
    for (uint32_t i = 0; i < 3; i++)
        quorum_bed_revive(&nodes, i);
    (void)test_await_event(client, SNECK_EVENT_CONNECTION_UP);
    sneck_status status = sneck_check(client, &error);
    assert_true(status == SNECK_OK ||
                strstr(error.message, "connection") == NULL); /* what became of the lock is another */
    assert_int_equal(test_health(client).checks[SNECK_CHECK_CONNECTION].in_a_row, 0);
    sneck_lock_free(lock);
    sneck_close(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_majority_that_answers_is_well),
        cmocka_unit_test(test_half_open_connections_to_a_majority_are_made_anew),
        cmocka_unit_test(test_a_majority_that_is_away_is_found_and_found_again),
    };
    quorum_bed_choose(&nodes, LEASE_MS, true);
    return cmocka_run_group_tests(tests, quorum_bed_set_up, quorum_bed_tear_down);
}
