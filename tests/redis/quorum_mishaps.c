/*
 * A quorum that is met with mishaps which are no failure of a node: wrong clients, scripts that were forgotten, answers
 * that are errors, nodes that are one server, messages that are not sent.
 */
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "bed.h"
#include "quorum_bed.h"
#include "store/quorum/run.h"
#include "waiter.h"

#define LEASE_MS QUORUM_LEASE_MAX_MS
/* What is taken back is gone long before its lease is over. */
#define SOON_MS (LEASE_MS / 2)
#define MARKER "{lock:}:quorum"

static quorum_bed nodes;

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

/* Makes the client known to all nodes, scripts and all. */
static void warm_up(sneck_client *client)
{
    sneck_error error;
    sneck_lock *lock = test_mutex(client, "warm", NULL);
    for (int i = 0; i < 2; i++) {
        EXPECT(SNECK_OK, sneck_acquire(lock, TEST_PATIENCE_MS, &error));
        quorum_bed_await_votes(&nodes, "warm", QUORUM_NODES);
        EXPECT(SNECK_OK, sneck_release(lock, &error));
        quorum_bed_await_votes(&nodes, "warm", 0);
    }
    sneck_lock_free(lock);
}

/* No node has a vote any more, long before the lease that began then is over. */
static void expect_free_soon(const char *name, int64_t since_ms)
{
    quorum_bed_await_votes(&nodes, name, 0);
    int64_t took_ms = test_now_ms() - since_ms;
    printf("# %s: free after %lld ms\n", name, (long long)took_ms);
    assert_true(took_ms < SOON_MS);
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
    nodes.lease_max_ms = lease_max_ms;
    const char *url = quorum_bed_url(&nodes, "lease=1s");
    nodes.lease_max_ms = LEASE_MS;
    return open_url(url, error);
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

/* ---- Answers that are errors ---- */

/*
 * The release overtakes the vote of a node that is a bit behind: it does not know the script of the one, and knows that of
 * the other.
 */
static void test_a_vote_that_was_overtaken_by_its_release_is_taken_back(void **state)
{
    (void)state;
    sneck_error error;
    sneck_client *client = quorum_bed_open(&nodes, NULL);
    warm_up(client);
    sneck_lock *lock = test_mutex(client, "overtaken", NULL);
    for (int i = 0; i < 5; i++) {
        redis_bed_do(&nodes.nodes[4], "SCRIPT FLUSH");
        redis_bed_do(&nodes.nodes[4], "SCRIPT LOAD %s", snk_node_scripts[SNK_NODE_RELEASE].text);
        redis_bed_do(&nodes.nodes[4], "DEL {lock:overtaken}:token");
        nodes.proxies[4].request_delay_ms = 4;
        EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
        EXPECT(SNECK_OK, sneck_release(lock, &error));
        int64_t released_ms = test_now_ms();
        /* It votes soon; or on a slow machine not at all, because it comes too late for the token. */
        while (redis_bed_number(&nodes.nodes[4], "EXISTS {lock:overtaken}:token") == 0 &&
               test_now_ms() - released_ms < SOON_MS / 4)
            redis_bed_pause(1);
        expect_free_soon("overtaken", released_ms);
    }
    sneck_lock_free(lock);
    sneck_close(client);
}

/* Its script is ended only after several repetitions would have been over if there were no pauses between them. */
static void test_a_release_that_a_busy_node_refused_is_repeated(void **state)
{
    (void)state;
    sneck_error error;
    sneck_client *client = quorum_bed_open(&nodes, NULL);
    warm_up(client);
    sneck_lock *lock = test_mutex(client, "refused", NULL);
    redis_bed_do(&nodes.nodes[4], "CONFIG SET lua-time-limit 20");
    EXPECT(SNECK_OK, sneck_acquire_for(lock, 0, LEASE_MS, &error));
    int64_t began_ms = test_now_ms();
    quorum_bed_await_votes(&nodes, "refused", QUORUM_NODES);
    redisContext *aside = redis_bed_send_aside(&nodes.nodes[4], "EVAL %s 0", "while true do end");
    redisReply *reply = NULL;
    do { /* until it says that it is busy */
        freeReplyObject(reply);
        reply = redisCommand(nodes.nodes[4].admin, "PING");
        assert_non_null(reply);
    } while (reply->type != REDIS_REPLY_ERROR);
    freeReplyObject(reply);
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    redis_bed_pause(100);
    redis_bed_do(&nodes.nodes[4], "SCRIPT KILL");
    expect_free_soon("refused", began_ms);
    redisFree(aside);
    sneck_lock_free(lock);
    sneck_close(client);
}

/* ---- Messages ---- */

static void test_without_announcements_waiters_look_each_retry(void **state)
{
    (void)state;
    sneck_error error;
    sneck_client *client = quorum_bed_open(&nodes, "announce=off");
    sneck_client *other = quorum_bed_open(&nodes, "announce=off&retry=50ms");
    warm_up(client);
    warm_up(other);
    sneck_lock *lock = test_mutex(client, "silent", NULL);
    sneck_lock *wanted = test_mutex(other, "silent", NULL);
    EXPECT(SNECK_OK, sneck_acquire(lock, TEST_PATIENCE_MS, &error));
    test_waiter waiter;
    test_waiter_start(&waiter, wanted, TEST_PATIENCE_MS);
    test_await_waiting(other, "silent", 1);
    redis_bed_pause(LEASE_MS / 15); /* it has been refused: it would look again after a third of its lease */
    assert_string_equal(redis_bed_text(&nodes.nodes[0], "PUBSUB CHANNELS lock:release:*"), "");
    int64_t released_ms = test_now_ms();
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    test_waiter_join(&waiter);
    printf("# served after %lld ms\n", (long long)(waiter.served_at_ms - released_ms));
    assert_true(waiter.served_at_ms - released_ms < LEASE_MS / 5);
    sneck_lock_free(wanted);
    sneck_lock_free(lock);
    sneck_close(other);
    sneck_close(client);
}

/* ---- Breaking ---- */

static void test_a_break_is_repeated_on_nodes_that_did_not_hear_it(void **state)
{
    (void)state;
    sneck_error error;
    sneck_client *client = quorum_bed_open(&nodes, NULL);
    sneck_client *other = quorum_bed_open(&nodes, NULL);
    warm_up(client);
    warm_up(other);
    sneck_lock *lock = test_mutex(client, "broken", NULL);
    /* Its holder does not ask about it, as one that hangs: so it takes nothing back itself. */
    EXPECT(SNECK_OK, sneck_acquire_for(lock, 0, LEASE_MS, &error));
    int64_t began_ms = test_now_ms();
    quorum_bed_await_votes(&nodes, "broken", QUORUM_NODES);
    for (uint32_t i = 3; i < QUORUM_NODES; i++)
        proxy_harm(&nodes.proxies[i], PROXY_CUT_BEFORE, snk_node_scripts[SNK_NODE_RELEASE].sha);
    EXPECT(SNECK_OK, sneck_break(other, "broken", sneck_token(lock), "a test", &error));
    quorum_bed_await_votes(&nodes, "broken", 2);
    for (uint32_t i = 3; i < QUORUM_NODES; i++)
        proxy_harm(&nodes.proxies[i], PROXY_PASS, "");
    expect_free_soon("broken", began_ms);
    EXPECT(SNECK_LOST, sneck_release(lock, &error));
    sneck_lock_free(lock);
    sneck_close(other);
    sneck_close(client);
}

/* ---- Two names of one server ---- */

static void make_url(char url[512], const int ports[QUORUM_NODES], const char *last_host)
{
    (void)snprintf(url, 512,
                   "redlock://sneck:secret@127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d,%s:%d?lease_max=%dms&"
                   "lease=1s",
                   ports[0], ports[1], ports[2], ports[3], last_host, ports[4], LEASE_MS);
}

static void test_two_names_of_one_server_are_refused_whichever_they_are(void **state)
{
    (void)state;
    sneck_error error;
    char url[512];
    for (uint32_t i = 0; i < 20; i++) {
        int ports[QUORUM_NODES];
        for (uint32_t j = 0; j < QUORUM_NODES; j++)
            ports[j] = nodes.nodes[j].server.port;
        ports[4] = ports[i % 4];
        make_url(url, ports, "localhost");
        EXPECT(SNECK_INVALID, open_url(url, &error));
        assert_non_null(strstr(error.message, "same server"));
    }
}

static void test_a_second_name_that_comes_later_is_shown(void **state)
{
    (void)state;
    sneck_error error;
    char url[512];
    int ports[QUORUM_NODES];
    fault_proxy second;
    assert_true(proxy_start(&second, nodes.nodes[3].server.port));
    proxy_harm(&second, PROXY_CUT_BEFORE, "");
    for (uint32_t j = 0; j < QUORUM_NODES; j++)
        ports[j] = j == 4 ? second.port : nodes.nodes[j].server.port;
    make_url(url, ports, "127.0.0.1");
    sneck_client *client = NULL;
    EXPECT(SNECK_OK, sneck_open(url, NULL, &client, &error));
    proxy_harm(&second, PROXY_PASS, "");
    sneck_info *info = NULL;
    int64_t limit_ms = test_now_ms() + TEST_PATIENCE_MS;
    do {
        sneck_info_free(info);
        assert_true(test_now_ms() < limit_ms);
        EXPECT(SNECK_OK, sneck_inspect(client, "twins", &info, &error));
    } while (strstr(info->nodes[4].trouble, "same server") == NULL);
    assert_string_equal(info->nodes[3].trouble, "");
    sneck_info_free(info);
    /* It votes for one claim at a time, by whichever name. */
    sneck_lock *lock = test_mutex(client, "twins", NULL);
    EXPECT(SNECK_OK, sneck_acquire(lock, TEST_PATIENCE_MS, &error));
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    quorum_bed_await_votes(&nodes, "twins", 0);
    sneck_lock_free(lock);
    sneck_close(client);
    proxy_stop(&second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_a_refused_client_leaves_no_mark, clear),
        cmocka_unit_test_setup(test_a_node_that_disagrees_is_done_without, clear),
        cmocka_unit_test_setup(test_the_first_client_says_what_the_longest_lease_is, clear),
        cmocka_unit_test_setup(test_a_vote_that_was_overtaken_by_its_release_is_taken_back, clear),
        cmocka_unit_test_setup(test_a_release_that_a_busy_node_refused_is_repeated, clear),
        cmocka_unit_test_setup(test_without_announcements_waiters_look_each_retry, clear),
        cmocka_unit_test_setup(test_a_break_is_repeated_on_nodes_that_did_not_hear_it, clear),
        cmocka_unit_test_setup(test_two_names_of_one_server_are_refused_whichever_they_are, clear),
        cmocka_unit_test_setup(test_a_second_name_that_comes_later_is_shown, clear),
    };
    quorum_bed_choose(&nodes, QUORUM_LEASE_MAX_MS, true);
    return cmocka_run_group_tests(tests, quorum_bed_set_up, quorum_bed_tear_down);
}
