/*
 * A quorum that is met with mishaps which are no failure of a node: wrong clients, scripts that were forgotten, answers
 * that are errors, nodes that are one server, messages that are not sent.
 */
#include "test.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "bed.h"
#include "quorum_bed.h"
#include "store/quorum/run.h"
#include "waiter.h"

#define LEASE_MS QUORUM_LEASE_MAX_MS
#define MARKER "{lock:}:quorum"

static quorum_bed nodes;

static int start(void **state)
{
    (void)state;
    quorum_bed_start(&nodes, QUORUM_LEASE_MAX_MS);
    quorum_bed_start_proxies(&nodes);
    quorum_bed_await_ripe(&nodes);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    quorum_bed_stop(&nodes);
    return 0;
}

static int clear(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < QUORUM_NODES; i++) {
        proxy_harm(&nodes.proxies[i], PROXY_PASS, "");
        nodes.proxies[i].request_delay_ms = 0;
    }
    quorum_bed_await_ripe(&nodes);
    quorum_bed_clear(&nodes);
    return 0;
}

static sneck_status open_url(const char *url, sneck_error *error)
{
    sneck_client *client = NULL;
    sneck_status status = sneck_open(url, NULL, &client, error);
    sneck_close(client);
    return status;
}

/* ---- Clients that do not agree ---- */

static sneck_status open_with(int64_t lease_max_ms, sneck_error *error)
{
    quorum_bed other = nodes;
    other.lease_max_ms = lease_max_ms;
    return open_url(quorum_bed_url(&other, "lease=1s"), error);
}

static void test_a_refused_client_leaves_no_mark(void **state)
{
    (void)state;
    sneck_error error;
    /* Of so many nodes nothing says what the longest lease is. */
    for (uint32_t emptied = 1; emptied <= 4; emptied++) {
        for (uint32_t i = 0; i < emptied; i++)
            redis_bed_do(&nodes.nodes[i], "DEL " MARKER);
        for (int i = 0; i < 3; i++)
            EXPECT(SNECK_INVALID, open_with(LEASE_MS + 2000, &error));
        assert_non_null(strstr(error.message, "lease_max=3000ms"));
        for (uint32_t i = 0; i < emptied; i++)
            assert_int_equal(redis_bed_number(&nodes.nodes[i], "EXISTS " MARKER), 0);
        for (int i = 0; i < 3; i++)
            EXPECT(SNECK_OK, open_with(LEASE_MS, &error));
        quorum_bed_await_ripe(&nodes);
    }
}

static void test_a_node_that_disagrees_is_done_without(void **state)
{
    (void)state;
    sneck_error error;
    sneck_info *info = NULL;
    redis_bed_do(&nodes.nodes[1], "SET " MARKER " %s PX 100000", "5000 1000");
    redis_bed_do(&nodes.nodes[3], "SET " MARKER " %s PX 100000", "5000 1000");
    for (int i = 0; i < 10; i++)
        EXPECT(SNECK_OK, open_with(LEASE_MS, &error));
    EXPECT(SNECK_INVALID, open_with(5000, &error));
    sneck_client *client = quorum_bed_open(&nodes, NULL);
    sneck_lock *lock = test_mutex(client, "agreed", NULL);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    quorum_bed_await_votes(&nodes, "agreed", 3);
    do {
        sneck_info_free(info);
        EXPECT(SNECK_OK, sneck_inspect(client, "agreed", &info, &error));
    } while (strcmp(info->nodes[1].state, "refuses") != 0 || strcmp(info->nodes[3].state, "refuses") != 0);
    assert_non_null(strstr(info->nodes[3].trouble, "lease_max"));
    assert_string_equal(info->nodes[0].state, "counts");
    sneck_info_free(info);
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    /* It is mended, and found to be. */
    quorum_bed_await_ripe(&nodes);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    quorum_bed_await_votes(&nodes, "agreed", QUORUM_NODES);
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    sneck_lock_free(lock);
    sneck_close(client);
}

static void test_the_first_client_says_what_the_longest_lease_is(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < QUORUM_NODES; i++)
        redis_bed_do(&nodes.nodes[i], "DEL " MARKER);
    sneck_client *client = quorum_bed_open(&nodes, NULL);
    for (uint32_t i = 0; i < QUORUM_NODES; i++) {
        redis_bed_await(&nodes.nodes[i], "EXISTS " MARKER, 1);
        assert_true(strncmp(redis_bed_text(&nodes.nodes[i], "GET " MARKER), "3000 ", 5) == 0);
        redis_bed_expect_limits(&nodes.nodes[i]);
    }
    sneck_close(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_a_refused_client_leaves_no_mark, clear),
        cmocka_unit_test_setup(test_a_node_that_disagrees_is_done_without, clear),
        cmocka_unit_test_setup(test_the_first_client_says_what_the_longest_lease_is, clear),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
