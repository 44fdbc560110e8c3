/* replicas=: a grant counts only when replicas have it too, and is given back exactly when they have not. */
#include "test.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "bed.h"
#include "proxy.h"
#include "redis/commit.h"
#include "redis_bed.h"
#include "redis_fleet.h"
#include "store/redis/scripts.h"
#include "waiter.h"

static int set_up(void **state)
{
    redis_fleet *fleet = calloc(1, sizeof *fleet);
    if (fleet == NULL)
        return -1;
    fleet_start_replicated(fleet, 2);
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

static sneck_client *open_on_master(const redis_fleet *fleet, const char *keys, int64_t lease_ms)
{
    return open_client(redis_bed_url_at(fleet->servers[0].port, keys), lease_ms);
}

/* How often the master was asked to do that. */
static long calls_of(const redis_fleet *fleet, const char *command)
{
    char mark[64];
    (void)snprintf(mark, sizeof mark, "cmdstat_%s:calls=", command);
    const char *found = strstr(fleet_ask(&fleet->servers[0], "INFO commandstats"), mark);
    return found == NULL ? 0 : strtol(found + strlen(mark), NULL, 10);
}

/* The lock cannot be had, because of the replicas; afterwards it is as if nobody had tried. */
static void expect_given_back(const redis_fleet *fleet, sneck_client *client, const char *words)
{
    sneck_error error;
    sneck_lock *lock = test_mutex(client, "refused", NULL);
    EXPECT(SNECK_UNAVAILABLE, sneck_acquire(lock, 0, &error));
    if (strstr(error.message, words) == NULL || strstr(error.message, "given back") == NULL)
        fail_msg("it does not say %s: %s", words, error.message);
    assert_string_equal(fleet_ask(&fleet->servers[0], "EXISTS lock:refused"), "0");
    sneck_lock_free(lock);
}

static void expect_pair(sneck_client *client)
{
    sneck_error error;
    sneck_lock *lock = test_mutex(client, "pair", NULL);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    sneck_lock_free(lock);
}

static void test_how_many_are_needed(void **state)
{
    (void)state;
    snk_commitment commitment = { .rule = SNK_COMMIT_COUNT, .count = 3 };
    assert_int_equal(snk_commit_needed(&commitment, 0), 3);
    commitment.rule = SNK_COMMIT_ALL;
    assert_int_equal(snk_commit_needed(&commitment, 0), 1); /* none is not enough */
    assert_int_equal(snk_commit_needed(&commitment, 2), 2);
    commitment.rule = SNK_COMMIT_MAJORITY;
    const unsigned needed[] = { 1, 1, 1, 2, 2, 3 };
    for (unsigned i = 0; i < 6; i++)
        assert_int_equal(snk_commit_needed(&commitment, i), needed[i]);
}

static void test_a_grant_is_on_the_replicas_when_it_is_told(void **state)
{
    const redis_fleet *fleet = *state;
    sneck_error error;
    const char *const rules[] = { "replicas=2", "replicas=all" };
    for (size_t i = 0; i < 2; i++) {
        sneck_client *client = open_on_master(fleet, rules[i], 30000);
        sneck_lock *lock = test_mutex(client, "a", NULL);
        for (unsigned j = 0; j < test_scaled(500); j++) {
            EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
            assert_string_equal(fleet_ask(&fleet->servers[1], "EXISTS lock:a"), "1");
            assert_string_equal(fleet_ask(&fleet->servers[2], "EXISTS lock:a"), "1");
            EXPECT(SNECK_OK, sneck_release(lock, &error));
        }
        sneck_lock_free(lock);
        sneck_close(client);
    }
    sneck_client *client = open_on_master(fleet, NULL, 30000);
    long waits = calls_of(fleet, "wait");
    expect_pair(client);
    assert_int_equal(calls_of(fleet, "wait"), waits); /* off unless asked for */
    sneck_close(client);
}

static void test_too_few_replicas_undo_the_grant_and_say_so(void **state)
{
    redis_fleet *fleet = *state;
    sneck_client *three = open_on_master(fleet, "replicas=3&replicas_timeout=100", 30000);
    expect_given_back(fleet, three, "2 of the 3");
    sneck_close(three);
    sneck_client *all = open_client(fleet_replicated_url(fleet, "replicas=all&replicas_timeout=100"), 30000);
    sneck_client *most = open_client(fleet_replicated_url(fleet, "replicas=majority&replicas_timeout=100"), 30000);
    expect_pair(all);
    redis_server_kill(&fleet->servers[2]);
    expect_given_back(fleet, all, "1 of the 2");
    expect_pair(most);
    redis_server_kill(&fleet->servers[1]);
    expect_given_back(fleet, most, "0 of the 1");
    sneck_close(most);
    sneck_close(all);
}

/* Counts and versions cannot be taken back; so it is said that they may be forgotten. */
static void test_counts_and_versions_are_on_the_replicas_too(void **state)
{
    redis_fleet *fleet = *state;
    sneck_error error;
    uint64_t version = 0;
    sneck_latch *latch = NULL;
    sneck_client *client = open_on_master(fleet, "replicas=2&replicas_timeout=100", 30000);
    EXPECT(SNECK_OK, sneck_latch_open(client, "gate", NULL, &latch, &error));
    EXPECT(SNECK_OK, sneck_version_bump(client, "page", 0, &error));
    EXPECT(SNECK_OK, sneck_latch_set(latch, 3, &error));
    EXPECT(SNECK_OK, sneck_version_get(client, "page", &version, &error));
    long waits = calls_of(fleet, "wait"); /* the scripts are known by now */
    EXPECT(SNECK_OK, sneck_version_bump(client, "page", version, &error));
    EXPECT(SNECK_OK, sneck_latch_count_down(latch, &error));
    assert_int_equal(calls_of(fleet, "wait"), waits + 2);
    EXPECT(SNECK_CONFLICT, sneck_version_bump(client, "page", version, &error));
    EXPECT(SNECK_OK, sneck_version_get(client, "page", &version, &error));
    redis_server_kill(&fleet->servers[2]);
    EXPECT(SNECK_UNKNOWN, sneck_version_bump(client, "page", version, &error));
    assert_non_null(strstr(error.message, "1 of the 2"));
    uint64_t before = version;
    EXPECT(SNECK_OK, sneck_version_get(client, "page", &version, &error));
    assert_true(version > before);
    EXPECT(SNECK_CONFLICT, sneck_version_bump(client, "page", before, &error)); /* nothing was changed by it */
    EXPECT(SNECK_UNKNOWN, sneck_latch_count_down(latch, &error));
    assert_non_null(strstr(error.message, "1 of the 2"));
    sneck_latch_free(latch);
    sneck_close(client);
}

/* S7: whoever waits for replicas holds up nobody else. */
static void test_a_replica_that_hangs_holds_up_no_renewal(void **state)
{
    redis_fleet *fleet = *state;
    enum {
        LEASE_MS = 600
    };
    sneck_error error;
    sneck_client *client = open_on_master(fleet, "replicas=2&replicas_timeout=2000", LEASE_MS);
    sneck_lock *held = test_mutex(client, "held", NULL);
    EXPECT(SNECK_OK, sneck_acquire(held, 0, &error));
    uint64_t token = sneck_token(held);
    assert_int_equal(kill(fleet->servers[1].pid, SIGSTOP), 0);
    int64_t begin_ms = test_now_ms();
    expect_given_back(fleet, client, "1 of the 2");
    assert_true(test_now_ms() - begin_ms >= 1900);
    assert_true(sneck_token(held) == token);
    EXPECT(SNECK_OK, sneck_release(held, &error));
    assert_int_equal(kill(fleet->servers[1].pid, SIGCONT), 0);
    sneck_lock_free(held);
    sneck_close(client);
}

static void test_a_waiter_starts_only_when_replicas_have_its_grant(void **state)
{
    redis_fleet *fleet = *state;
    sneck_error error;
    sneck_client *holder = open_on_master(fleet, NULL, 30000);
    sneck_client *other = open_on_master(fleet, "replicas=2&replicas_timeout=100", 30000);
    sneck_lock *held = test_mutex(holder, "a", NULL);
    sneck_lock *wanted = test_mutex(other, "a", NULL);
    EXPECT(SNECK_OK, sneck_acquire(held, 0, &error));
    test_waiter waiting;
    test_waiter_start(&waiting, wanted, 20000);
    fleet_await(&fleet->servers[0], "lock:wake:", "PUBSUB CHANNELS");
    long waits = calls_of(fleet, "wait");
    EXPECT(SNECK_OK, sneck_release(held, &error));
    test_waiter_join(&waiting);
    assert_true(calls_of(fleet, "wait") > waits);
    /* And if they have not, it goes on waiting: nobody has the lock meanwhile. */
    EXPECT(SNECK_OK, sneck_acquire(held, 0, &error));
    redis_server_kill(&fleet->servers[2]);
    test_waiter_start(&waiting, wanted, 1500);
    fleet_await(&fleet->servers[0], "1", "ZCARD {lock:a}:queue");
    EXPECT(SNECK_OK, sneck_release(held, &error));
    assert_int_equal(pthread_join(waiting.thread, NULL), 0);
    assert_int_not_equal(waiting.status, SNECK_OK);
    fleet_await(&fleet->servers[0], "0", "EXISTS lock:a");
    sneck_lock_free(wanted);
    sneck_lock_free(held);
    sneck_close(other);
    sneck_close(holder);
}

/* Whoever asks about such a grant again must not take it for one that counts. */
static void test_a_grant_whose_giving_back_is_not_answered_is_never_used(void **state)
{
    redis_fleet *fleet = *state;
    sneck_error error;
    fault_proxy proxy;
    assert_true(proxy_start(&proxy, fleet->servers[0].port));
    sneck_client *holder = open_on_master(fleet, NULL, 30000);
    sneck_client *other =
        open_client(redis_bed_url_at(proxy.port, "replicas=2&replicas_timeout=100&timeout=500"), 30000);
    sneck_lock *held = test_mutex(holder, "a", NULL);
    sneck_lock *wanted = test_mutex(other, "a", NULL);
    EXPECT(SNECK_OK, sneck_acquire(wanted, 0, &error)); /* so the server knows the scripts */
    EXPECT(SNECK_OK, sneck_release(wanted, &error));
    EXPECT(SNECK_OK, sneck_acquire(held, 0, &error));
    test_waiter waiting;
    test_waiter_start(&waiting, wanted, 3000);
    fleet_await(&fleet->servers[0], "1", "ZCARD {lock:a}:queue");
    redis_server_kill(&fleet->servers[2]);
    proxy_harm(&proxy, PROXY_CUT_BEFORE, snk_scripts[SNK_LAYOUT_HASH][SNK_SCRIPT_RELEASE].sha);
    EXPECT(SNECK_OK, sneck_release(held, &error));
    int64_t limit_ms = test_now_ms() + TEST_PATIENCE_MS;
    while (proxy.cuts < 2 && test_now_ms() < limit_ms) /* given back twice, in vain */
        redis_bed_pause(1);
    assert_true(proxy.cuts >= 2);
    proxy_harm(&proxy, PROXY_PASS, "");
    assert_int_equal(pthread_join(waiting.thread, NULL), 0);
    assert_int_not_equal(waiting.status, SNECK_OK);
    assert_true(waiting.token == 0);
    fleet_await(&fleet->servers[0], "0", "EXISTS lock:a");
    sneck_lock_free(wanted);
    sneck_lock_free(held);
    sneck_close(other);
    sneck_close(holder);
    proxy_stop(&proxy);
}

/* ---- Many at once ---- */

enum {
    THREADS = 16
};

typedef struct crowd {
    sneck_client *client;
    unsigned number;
    unsigned pairs;
} crowd;

static void *take_own(void *argument)
{
    crowd *self = argument;
    char name[16];
    sneck_error error;
    sneck_lock *lock = NULL;
    (void)snprintf(name, sizeof name, "own%u", self->number);
    if (sneck_mutex(self->client, name, NULL, &lock, &error) != SNECK_OK)
        return NULL;
    for (int i = 0; i < 10; i++) {
        if (sneck_acquire(lock, 0, &error) == SNECK_OK && sneck_release(lock, &error) == SNECK_OK)
            self->pairs++;
    }
    sneck_lock_free(lock);
    return NULL;
}

static void test_many_grants_share_one_wait(void **state)
{
    redis_fleet *fleet = *state;
    fault_proxy proxy;
    /* A replica that is 5 ms away. */
    assert_true(proxy_start(&proxy, fleet->servers[0].port));
    proxy.request_delay_ms = 5;
    fleet_do(&fleet->servers[1], "REPLICAOF 127.0.0.1 %d", proxy.port);
    redis_server_kill(&fleet->servers[2]);
    fleet_await(&fleet->servers[1], "master_link_status:up", "INFO replication");
    sneck_client *client = open_on_master(fleet, "replicas=1", 30000);
    expect_pair(client);
    long waits = calls_of(fleet, "wait");
    pthread_t threads[THREADS];
    crowd members[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        members[i] = (crowd){ .client = client, .number = i };
        assert_int_equal(pthread_create(&threads[i], NULL, take_own, &members[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(members[i].pairs, 10);
    }
    waits = calls_of(fleet, "wait") - waits;
    printf("# figure: %d grants to %d threads shared %ld WAITs\n", THREADS * 10, THREADS, waits);
    assert_true(waits < THREADS * 10 / 2);
    sneck_close(client);
    proxy_stop(&proxy);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_how_many_are_needed),
        TEST(test_a_grant_is_on_the_replicas_when_it_is_told),
        TEST(test_too_few_replicas_undo_the_grant_and_say_so),
        TEST(test_counts_and_versions_are_on_the_replicas_too),
        TEST(test_a_replica_that_hangs_holds_up_no_renewal),
        TEST(test_a_waiter_starts_only_when_replicas_have_its_grant),
        TEST(test_a_grant_whose_giving_back_is_not_answered_is_never_used),
        TEST(test_many_grants_share_one_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
