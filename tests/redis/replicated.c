/* A master with replicas and nobody who watches them: the master is found, and found again when it is another one. */
#include "test.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bed.h"
#include "claims.h"
#include "redis_bed.h"
#include "redis_fleet.h"
#include "waiter.h"

static int set_up(void **state)
{
    redis_fleet *fleet = calloc(1, sizeof *fleet);
    if (fleet == NULL)
        return -1;
    fleet_start_replicated(fleet, 1);
    *state = fleet;
    return 0;
}

static int tear_down(void **state)
{
    fleet_stop(*state);
    free(*state);
    return 0;
}

static sneck_client *open_client(const char *url, int64_t lease_ms)
{
    sneck_error error;
    sneck_client *client = NULL;
    sneck_client_options options = SNECK_CLIENT_OPTIONS_INIT;
    options.lease_ms = lease_ms;
    EXPECT(SNECK_OK, sneck_open(url, &options, &client, &error));
    return client;
}

/* The replica becomes the master, and the master its replica, while both run. */
static void swap_roles(redis_fleet *fleet)
{
    fleet_do(&fleet->servers[1], "REPLICAOF NO ONE");
    fleet_do(&fleet->servers[0], "REPLICAOF 127.0.0.1 %d", fleet->servers[1].port);
    fleet_await(&fleet->servers[0], "master_link_status:up", "INFO replication");
}

static void test_the_master_is_found_whatever_the_order(void **state)
{
    redis_fleet *fleet = *state;
    sneck_error error;
    swap_roles(fleet); /* now the first in the URL is a replica */
    sneck_client *client = open_client(fleet_replicated_url(fleet, NULL), 3000);
    sneck_lock *lock = test_mutex(client, "a", NULL);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    assert_string_equal(fleet_ask(&fleet->servers[1], "EXISTS lock:a"), "1");
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    sneck_lock_free(lock);
    sneck_close(client);
}

static void test_a_master_that_became_a_replica_is_left_and_nothing_is_lost(void **state)
{
    redis_fleet *fleet = *state;
    sneck_error error;
    sneck_client *client = open_client(fleet_replicated_url(fleet, NULL), 1500);
    sneck_lock *held = test_mutex(client, "held", NULL);
    sneck_lock *other = test_mutex(client, "other", NULL);
    EXPECT(SNECK_OK, sneck_acquire(held, 0, &error));
    uint64_t token = sneck_token(held);
    fleet_await(&fleet->servers[1], "1", "EXISTS lock:held");
    swap_roles(fleet);
    EXPECT(SNECK_OK, sneck_acquire(other, 0, &error)); /* READONLY, and again elsewhere */
    EXPECT(SNECK_OK, sneck_release(other, &error));
    redis_bed_pause(2000); /* longer than the lease: it was renewed, or it is lost */
    assert_true(sneck_token(held) == token);
    EXPECT(SNECK_OK, sneck_release(held, &error));
    sneck_lock_free(other);
    sneck_lock_free(held);
    sneck_close(client);
}

static void test_a_killed_master_is_replaced_by_the_one_that_is_promoted(void **state)
{
    redis_fleet *fleet = *state;
    sneck_error error;
    sneck_client *holder = open_client(fleet_replicated_url(fleet, NULL), 6000);
    sneck_client *waiter = open_client(fleet_replicated_url(fleet, NULL), 6000);
    sneck_lock *held = test_mutex(holder, "a", NULL);
    sneck_lock *wanted = test_mutex(waiter, "a", NULL);
    EXPECT(SNECK_OK, sneck_acquire(held, 0, &error));
    test_waiter waiting;
    test_waiter_start(&waiting, wanted, 20000);
    fleet_await(&fleet->servers[1], "1", "ZCARD {lock:a}:queue");
    redis_server_kill(&fleet->servers[0]);
    fleet_do(&fleet->servers[1], "REPLICAOF NO ONE");
    redis_bed_pause(200);
    int64_t begin_ms = test_now_ms();
    EXPECT(SNECK_OK, sneck_release(held, &error));
    test_waiter_join(&waiting);
    assert_true(waiting.served_at_ms - begin_ms < 1500); /* woken, and not by its next look */
    sneck_lock_free(wanted);
    sneck_lock_free(held);
    sneck_close(waiter);
    sneck_close(holder);
}

/*
 * What was released last is forgotten, with leases that would last for a minute: the lock is free all the same, because
 * those who had it end what came back.
 */
static void test_claims_that_came_back_are_ended(void **state)
{
    redis_fleet *fleet = *state;
    sneck_error error;
    sneck_client *clients[3];
    sneck_lock *locks[3];
    for (size_t i = 0; i < 3; i++) {
        clients[i] = open_client(fleet_replicated_url(fleet, NULL), 60000);
        locks[i] = test_mutex(clients[i], "a", NULL);
    }
    sneck_lock *kept = test_mutex(clients[0], "kept", NULL);
    EXPECT(SNECK_OK, sneck_acquire(kept, 0, &error));
    EXPECT(SNECK_OK, sneck_acquire(locks[0], 0, &error));
    test_waiter waiting;
    test_waiter_start(&waiting, locks[1], 20000);
    fleet_await(&fleet->servers[1], "1", "ZCARD {lock:a}:queue");
    fleet_cut_replication(fleet, 0);
    EXPECT(SNECK_OK, sneck_release(locks[0], &error));
    test_waiter_join(&waiting);
    redis_server_kill(&fleet->servers[0]);
    fleet_do(&fleet->servers[1], "REPLICAOF NO ONE");
    /* There the first one holds it, and the second one waits. */
    assert_string_equal(fleet_ask(&fleet->servers[1], "EXISTS lock:a {lock:a}:queue"), "2");
    redis_bed_pause(20); /* what is sent in the very moment nobody knows about */
    /* They hear of it as soon as they do anything. */
    sneck_lock *other = test_mutex(clients[1], "other", NULL);
    EXPECT(SNECK_OK, sneck_acquire(other, 0, &error));
    EXPECT(SNECK_OK, sneck_extend(kept, 60000, &error)); /* what is alive is not ended */
    int64_t begin_ms = test_now_ms();
    EXPECT(SNECK_OK, sneck_acquire(locks[2], 20000, &error));
    assert_true(test_now_ms() - begin_ms < 1500);
    assert_true(sneck_token(locks[2]) > waiting.token);
    assert_true(sneck_is_held(kept));
    EXPECT(SNECK_OK, sneck_release(kept, &error));
    sneck_lock_free(other);
    sneck_lock_free(kept);
    for (size_t i = 0; i < 3; i++) {
        sneck_lock_free(locks[i]);
        sneck_close(clients[i]);
    }
}

static void expect_unavailable(const char *url, const char *words)
{
    sneck_error error;
    sneck_client *client = NULL;
    EXPECT(SNECK_UNAVAILABLE, sneck_open(url, NULL, &client, &error));
    if (strstr(error.message, words) == NULL)
        fail_msg("it does not say %s: %s", words, error.message);
}

static void test_without_one_master_nothing_is_opened(void **state)
{
    redis_fleet *fleet = *state;
    fleet_do(&fleet->servers[0], "REPLICAOF 127.0.0.1 1");
    expect_unavailable(fleet_replicated_url(fleet, "timeout=500"), "not a master");
    fleet_do(&fleet->servers[0], "REPLICAOF NO ONE");
    fleet_do(&fleet->servers[1], "REPLICAOF NO ONE");
    expect_unavailable(fleet_replicated_url(fleet, "timeout=500"), "several servers");
}

static void test_a_wrong_password_is_said_to_be_wrong(void **state)
{
    redis_fleet *fleet = *state;
    sneck_error error;
    sneck_client *client = NULL;
    char url[128];
    (void)snprintf(url, sizeof url, "redis+replicated://sneck:wrong-word@127.0.0.1:%d,127.0.0.1:%d",
                   fleet->servers[0].port, fleet->servers[1].port);
    EXPECT(SNECK_DENIED, sneck_open(url, NULL, &client, &error));
    assert_null(strstr(error.message, "wrong-word"));
}

/* A replica that has not heard of a claim must not say that it is gone, nor of an old one that it holds. */
/* The watchdog looks by a renewal that prolongs nothing, and so must not end what has no limit. */
static void test_a_look_at_a_lock_without_time_limit_does_not_end_it(void **state)
{
    redis_fleet *fleet = *state;
    sneck_error error;
    sneck_client *client = open_client(fleet_replicated_url(fleet, NULL), 600000);
    sneck_lock *ours = test_mutex(client, "ours", NULL);
    sneck_lock *lost = test_mutex(client, "lost", NULL);
    EXPECT(SNECK_OK, sneck_acquire(ours, 0, &error));
    EXPECT(SNECK_OK, sneck_acquire(lost, 0, &error));
    fleet_do(&fleet->servers[0], "PERSIST lock:ours");
    fleet_do(&fleet->servers[0], "DEL lock:lost");
    fleet_do(&fleet->servers[0], "HSET lock:lost classic:1 1");
    EXPECT(SNECK_LOST, sneck_check(client, &error));
    (void)poll(NULL, 0, 20);
    assert_string_equal(fleet_ask(&fleet->servers[0], "EXISTS lock:ours"), "1");
    assert_true(sneck_is_held(ours));
    assert_false(sneck_is_held(lost));
    /* Somebody else's, which somebody of ours has come by. */
    assert_true(strtol(fleet_ask(&fleet->servers[0], "PTTL lock:lost"), NULL, 10) > 20000);
    EXPECT(SNECK_OK, sneck_extend(ours, 600000, &error));
    assert_true(strtol(fleet_ask(&fleet->servers[0], "PTTL lock:ours"), NULL, 10) > 500000);
    EXPECT(SNECK_OK, sneck_release(ours, &error));
    sneck_lock_free(ours);
    sneck_lock_free(lost);
    sneck_close(client);
}

static void test_a_replica_answers_nothing_from_what_it_has(void **state)
{
    redis_fleet *fleet = *state;
    snk_store *master = test_store(redis_bed_url_at(fleet->servers[0].port, NULL));
    snk_store *replica = test_store(redis_bed_url_at(fleet->servers[1].port, NULL));
    snk_id early = test_must_hold(master, "early");
    snk_answer answer = test_renew(master, "early", &early, 3 * TEST_LEASE_MS);
    test_expect_kind(&answer, SNK_ANSWER_HELD);
    fleet_await(&fleet->servers[1], "1", "EXISTS lock:early");
    fleet_cut_replication(fleet, 0);
    snk_id late = test_must_hold(master, "late");
    const struct {
        const char *name;
        const snk_id *claim;
    } cases[] = { { "early", &early }, { "late", &late } };
    for (size_t i = 0; i < 2; i++) {
        answer = test_renew(replica, cases[i].name, cases[i].claim, TEST_LEASE_MS);
        test_expect_kind(&answer, SNK_ANSWER_FAILED);
        answer = test_release(replica, cases[i].name, cases[i].claim);
        test_expect_kind(&answer, SNK_ANSWER_FAILED);
        snk_id stranger = test_id();
        answer = test_acquire(replica, cases[i].name, &stranger, TEST_TRY);
        test_expect_kind(&answer, SNK_ANSWER_FAILED);
    }
    test_store_close(replica);
    test_store_close(master);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_the_master_is_found_whatever_the_order),
        TEST(test_a_master_that_became_a_replica_is_left_and_nothing_is_lost),
        TEST(test_a_killed_master_is_replaced_by_the_one_that_is_promoted),
        TEST(test_claims_that_came_back_are_ended),
        TEST(test_without_one_master_nothing_is_opened),
        TEST(test_a_wrong_password_is_said_to_be_wrong),
        TEST(test_a_look_at_a_lock_without_time_limit_does_not_end_it),
        TEST(test_a_replica_answers_nothing_from_what_it_has),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
