/*
 * A quorum whose connections are cut, stall and lose answers in the middle of what a client does. No node stays locked
 * for longer than one lease by something that nobody has.
 */
#include "test.h"

#include <string.h>

#include "base/clock.h"
#include "bed.h"
#include "quorum_bed.h"
#include "store/quorum/run.h"

#define LEASE_MS QUORUM_LEASE_MAX_MS

static quorum_bed nodes;

static int clear(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < QUORUM_NODES; i++)
        proxy_harm(&nodes.proxies[i], PROXY_PASS, "");
    quorum_bed_clear(&nodes);
    return 0;
}

static void harm(uint32_t from, uint32_t count, proxy_mode mode, const char *match)
{
    for (uint32_t i = from; i < from + count; i++)
        proxy_harm(&nodes.proxies[i], mode, match);
}

static const char *vote_command(void)
{
    return snk_node_scripts[SNK_NODE_VOTE].sha;
}

/* Makes the client known to all nodes, scripts and all. */
static void warm_up(sneck_client *client)
{
    sneck_error error;
    sneck_lock *lock = test_mutex(client, "warm", NULL);
    for (int i = 0; i < 2; i++) {
        EXPECT(SNECK_OK, sneck_acquire(lock, TEST_PATIENCE_MS, &error));
        EXPECT(SNECK_OK, sneck_release(lock, &error));
    }
    quorum_bed_await_votes(&nodes, "warm", 0);
    sneck_lock_free(lock);
}

/* Somebody else can have the lock, soon, and no node has a vote that is older than a lease. */
static int64_t await_free(const char *name, int64_t since_ms)
{
    sneck_error error;
    sneck_client *other = quorum_bed_open(&nodes, NULL);
    sneck_lock *lock = test_mutex(other, name, NULL);
    while (quorum_bed_votes(&nodes, name) > 0) {
        assert_true(test_now_ms() - since_ms < LEASE_MS + 1000);
        redis_bed_pause(2);
    }
    int64_t took_ms = test_now_ms() - since_ms;
    EXPECT(SNECK_OK, sneck_acquire(lock, TEST_PATIENCE_MS, &error));
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    quorum_bed_await_votes(&nodes, name, 0);
    sneck_lock_free(lock);
    sneck_close(other);
    return took_ms;
}

/* ---- In the middle of an acquire ---- */

static void try_partition(uint32_t count, proxy_mode mode, const char *name)
{
    sneck_error error;
    sneck_client *client = quorum_bed_open(&nodes, NULL);
    warm_up(client);
    sneck_lock *lock = test_mutex(client, name, NULL);
    int64_t began_ms = test_now_ms();
    harm(0, count, mode, mode == PROXY_CUT_AFTER || mode == PROXY_CUT_BEFORE ? vote_command() : "");
    sneck_status status = sneck_acquire(lock, 0, &error);
    int64_t took_ms = test_now_ms() - began_ms;
    if (count < QUORUM_MAJORITY)
        assert_int_equal(status, SNECK_OK);
    else
        assert_true(status == SNECK_UNKNOWN || status == SNECK_UNAVAILABLE);
    assert_true(took_ms < LEASE_MS);
    if (status == SNECK_OK)
        EXPECT(SNECK_OK, sneck_release(lock, &error));
    int64_t gave_up_ms = test_now_ms();
    redis_bed_pause(50);
    harm(0, count, PROXY_PASS, "");
    printf("# figure: quorum: %u nodes cut off during an acquire (%s): free again %lld ms after it ended\n", count,
           name, (long long)await_free(name, gave_up_ms));
    sneck_lock_free(lock);
    sneck_close(client);
}

static void test_answers_of_votes_are_lost(void **state)
{
    (void)state;
    try_partition(3, PROXY_CUT_AFTER, "answers-lost-3");
    try_partition(2, PROXY_CUT_AFTER, "answers-lost-2");
}

static void test_votes_are_lost(void **state)
{
    (void)state;
    try_partition(3, PROXY_CUT_BEFORE, "votes-lost-3");
    try_partition(2, PROXY_CUT_BEFORE, "votes-lost-2");
}

static void test_answers_stall(void **state)
{
    (void)state;
    try_partition(3, PROXY_STALL_REPLIES, "answers-stall-3");
    try_partition(2, PROXY_STALL_REPLIES, "answers-stall-2");
}

static void test_votes_stall_and_arrive_late(void **state)
{
    (void)state;
    try_partition(3, PROXY_STALL_REQUESTS, "votes-stall-3");
    try_partition(2, PROXY_STALL_REQUESTS, "votes-stall-2");
}

static void test_a_grant_that_came_too_late_for_a_node_is_spread_to_it(void **state)
{
    (void)state;
    sneck_error error;
    sneck_client *client = quorum_bed_open(&nodes, NULL);
    warm_up(client);
    sneck_lock_options options = SNECK_LOCK_OPTIONS_INIT;
    options.lease_ms = LEASE_MS;
    options.renew_ms = SNECK_NEVER; /* so it is not a renewal that does it */
    sneck_lock *lock = test_mutex(client, "spread", &options);
    harm(0, 2, PROXY_STALL_REQUESTS, "");
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    redis_bed_pause(100); /* until the clocks have passed the token */
    assert_int_equal(quorum_bed_votes(&nodes, "spread"), 3);
    harm(0, 2, PROXY_PASS, "");
    quorum_bed_await_votes(&nodes, "spread", QUORUM_NODES);
    assert_true(sneck_is_held(lock));
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    quorum_bed_await_votes(&nodes, "spread", 0);
    sneck_lock_free(lock);
    sneck_close(client);
}

static void test_a_partition_that_never_ends_locks_nothing_for_longer_than_a_lease(void **state)
{
    (void)state;
    sneck_error error;
    sneck_client *client = quorum_bed_open(&nodes, NULL);
    warm_up(client);
    sneck_lock *lock = test_mutex(client, "forever", NULL);
    /* Three vote, and neither the answers nor anything after them gets through. */
    harm(0, 3, PROXY_STALL_REPLIES, "");
    int64_t began_ms = test_now_ms();
    sneck_status status = sneck_acquire(lock, 0, &error);
    assert_true(status == SNECK_UNKNOWN || status == SNECK_UNAVAILABLE);
    harm(0, 3, PROXY_STALL_REQUESTS, "");
    while (quorum_bed_votes(&nodes, "forever") > 0) {
        assert_true(test_now_ms() - began_ms < LEASE_MS + 1000);
        redis_bed_pause(5);
    }
    sneck_lock_free(lock);
    sneck_close(client);
    harm(0, 3, PROXY_PASS, "");
    (void)await_free("forever", test_now_ms());
}

/* ---- Releases and renewals ---- */

static void test_a_release_is_repeated_on_nodes_that_did_not_hear_it(void **state)
{
    (void)state;
    sneck_error error;
    sneck_client *client = quorum_bed_open(&nodes, NULL);
    warm_up(client);
    sneck_lock *lock = test_mutex(client, "released", NULL);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    quorum_bed_await_votes(&nodes, "released", QUORUM_NODES);
    harm(0, 2, PROXY_CUT_BEFORE, snk_node_scripts[SNK_NODE_RELEASE].sha);
    int64_t began_ms = test_now_ms();
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    quorum_bed_await_votes(&nodes, "released", 2);
    harm(0, 2, PROXY_PASS, "");
    quorum_bed_await_votes(&nodes, "released", 0);
    int64_t took_ms = test_now_ms() - began_ms;
    printf("# figure: quorum: a release that two nodes did not hear is made good after %lld ms\n", (long long)took_ms);
    assert_true(took_ms < LEASE_MS - 500); /* not by the lease */
    sneck_lock_free(lock);
    sneck_close(client);
}

static void test_a_release_without_a_majority_says_so_and_is_made_good(void **state)
{
    (void)state;
    sneck_error error;
    sneck_client *client = quorum_bed_open(&nodes, NULL);
    warm_up(client);
    sneck_lock *lock = test_mutex(client, "unreleased", NULL);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    harm(0, 3, PROXY_CUT_BEFORE, snk_node_scripts[SNK_NODE_RELEASE].sha);
    sneck_status status = sneck_release(lock, &error);
    assert_true(status == SNECK_UNKNOWN || status == SNECK_UNAVAILABLE);
    harm(0, 3, PROXY_PASS, "");
    (void)await_free("unreleased", test_now_ms());
    sneck_lock_free(lock);
    sneck_close(client);
}

static void test_a_hold_outlives_a_partition_from_two_nodes_and_not_from_three(void **state)
{
    (void)state;
    sneck_error error;
    sneck_client *client = quorum_bed_open(&nodes, NULL);
    warm_up(client);
    sneck_lock *lock = test_mutex(client, "kept", NULL);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    harm(0, 2, PROXY_STALL_REPLIES, "");
    int64_t until_ms = test_now_ms() + INT64_C(2) * LEASE_MS;
    while (test_now_ms() < until_ms) {
        assert_true(sneck_is_held(lock));
        redis_bed_pause(10);
    }
    int64_t remaining_ms = sneck_remaining_ms(lock);
    harm(2, 1, PROXY_STALL_REPLIES, "");
    int64_t cut_ms = test_now_ms();
    while (sneck_is_held(lock)) {
        assert_true(test_now_ms() - cut_ms < remaining_ms + LEASE_MS);
        redis_bed_pause(2);
    }
    assert_true(quorum_bed_votes(&nodes, "kept") >= QUORUM_MAJORITY); /* it knows before anybody else can have it */
    EXPECT(SNECK_LOST, sneck_release(lock, &error));
    harm(0, 3, PROXY_PASS, "");
    (void)await_free("kept", test_now_ms());
    sneck_lock_free(lock);
    sneck_close(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_answers_of_votes_are_lost, clear),
        cmocka_unit_test_setup(test_votes_are_lost, clear),
        cmocka_unit_test_setup(test_answers_stall, clear),
        cmocka_unit_test_setup(test_votes_stall_and_arrive_late, clear),
        cmocka_unit_test_setup(test_a_grant_that_came_too_late_for_a_node_is_spread_to_it, clear),
        cmocka_unit_test_setup(test_a_partition_that_never_ends_locks_nothing_for_longer_than_a_lease, clear),
        cmocka_unit_test_setup(test_a_release_is_repeated_on_nodes_that_did_not_hear_it, clear),
        cmocka_unit_test_setup(test_a_release_without_a_majority_says_so_and_is_made_good, clear),
        cmocka_unit_test_setup(test_a_hold_outlives_a_partition_from_two_nodes_and_not_from_three, clear),
    };
    quorum_bed_choose(&nodes, QUORUM_LEASE_MAX_MS, true);
    return cmocka_run_group_tests(tests, quorum_bed_set_up, quorum_bed_tear_down);
}
