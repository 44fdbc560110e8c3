/* A master that sentinels watch: how it is found, whom to believe, and with which credentials. */
#include "test.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "bed.h"
#include "redis_bed.h"
#include "redis_fleet.h"
#include "tls_files.h"
#include "waiter.h"

/* What docs/redis.md says that a user of the sentinels needs. */
#define SENTINEL_USER                                                                                                  \
    "user watcher on >sentinel-word resetchannels &+switch-master -@all +auth +hello +ping +info +client|setname "     \
    "+subscribe +sentinel|master +sentinel|get-master-addr-by-name +sentinel|sentinels\n"

static int set_up(void **state)
{
    redis_fleet *fleet = calloc(1, sizeof *fleet);
    if (fleet == NULL)
        return -1;
    fleet_start_sentinels(fleet, SENTINEL_USER);
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

static void expect_pair(sneck_client *client)
{
    sneck_error error;
    sneck_lock *lock = test_mutex(client, "pair", NULL);
    EXPECT(SNECK_OK, sneck_acquire(lock, 5000, &error));
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    sneck_lock_free(lock);
}

static void expect_open(sneck_status status, const char *url, const char *words)
{
    sneck_error error;
    sneck_client *client = NULL;
    EXPECT(status, sneck_open(url, NULL, &client, &error));
    if (status == SNECK_OK) {
        expect_pair(client);
        sneck_close(client);
    } else if (strstr(error.message, words) == NULL) {
        fail_msg("it does not say %s: %s", words, error.message);
    }
}

/* ---- URLs and credentials ---- */

static void test_all_ways_to_write_the_url_lead_to_the_master(void **state)
{
    const redis_fleet *fleet = *state;
    const redis_server *sentinels = fleet->sentinels;
    char url[256];
    (void)snprintf(url, sizeof url, "redis+sentinel://sneck:secret@127.0.0.1:%d,127.0.0.1:%d/" FLEET_SERVICE "/1",
                   sentinels[0].port, sentinels[1].port);
    expect_open(SNECK_OK, url, "");
    assert_string_equal(fleet_ask(&fleet->servers[0], "DBSIZE"), "0"); /* it was database 1 */
    (void)snprintf(url, sizeof url, "redis-sentinel://sneck:secret@127.0.0.1:%d/0?sentinelMasterId=" FLEET_SERVICE,
                   sentinels[0].port); /* one of three: it names the others */
    expect_open(SNECK_OK, url, "");
    assert_string_not_equal(fleet_ask(&fleet->servers[0], "DBSIZE"), "0");
    (void)snprintf(url, sizeof url, "redis+sentinel://127.0.0.1:%d/other", sentinels[0].port);
    expect_open(SNECK_INVALID, url, "\"other\"");
    (void)snprintf(url, sizeof url, "redis+sentinel://127.0.0.1:%d", sentinels[0].port);
    expect_open(SNECK_INVALID, url, "/service");
    (void)snprintf(url, sizeof url, "redis-sentinel://127.0.0.1:%d/0", sentinels[0].port);
    expect_open(SNECK_INVALID, url, "sentinelMasterId");
    (void)snprintf(url, sizeof url, "redis+sentinel://sneck:wrong-word@127.0.0.1:%d/" FLEET_SERVICE, sentinels[0].port);
    expect_open(SNECK_DENIED, url, "wrong user or password");
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    (void)fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void test_sentinels_have_credentials_of_their_own(void **state)
{
    const redis_fleet *fleet = *state;
    char path[128];
    char keys[256];
    (void)snprintf(path, sizeof path, "%s/word", fleet->servers[0].directory);
    (void)snprintf(keys, sizeof keys, "sentinel_user=watcher&sentinel_password_file=%s", path);
    expect_open(SNECK_DENIED, fleet_sentinel_url(fleet, keys), "cannot be read");
    write_file(path, "wrong-word\n");
    expect_open(SNECK_DENIED, fleet_sentinel_url(fleet, keys), "wrong user or password");
    write_file(path, "sentinel-word\n");
    expect_open(SNECK_OK, fleet_sentinel_url(fleet, keys), "");
}

/* ---- Whom to believe ---- */

static void test_a_minority_of_sentinels_is_not_believed(void **state)
{
    redis_fleet *fleet = *state;
    sneck_client *client = open_client(fleet_sentinel_url(fleet, "timeout=1000"), 3000);
    expect_pair(client);
    redis_server_kill(&fleet->sentinels[0]);
    redis_server_kill(&fleet->sentinels[1]);
    expect_open(SNECK_UNAVAILABLE, fleet_sentinel_url(fleet, "timeout=1000"), "1 of 3 sentinels");
    expect_pair(client); /* whoever has a master keeps it */
    fleet_do(&fleet->servers[0], "CLIENT KILL TYPE normal");
    redis_bed_pause(20); /* what is sent in the very moment nobody knows about */
    expect_pair(client); /* also after a cut */
    assert_true(redis_server_restart(&fleet->sentinels[0]));
    expect_open(SNECK_OK, fleet_sentinel_url(fleet, NULL), "");
    sneck_close(client);
}

/* Kills the master; returns the one that the sentinels chose. */
static size_t fail_over(redis_fleet *fleet)
{
    redis_server_kill(&fleet->servers[0]);
    size_t master = fleet_await_master(fleet, 0);
    fleet_await_agreement(fleet, master);
    return master;
}

static void test_a_sentinel_that_missed_the_failover_is_not_believed(void **state)
{
    redis_fleet *fleet = *state;
    redis_server stale;
    char config[256];
    (void)snprintf(config, sizeof config, "sentinel monitor " FLEET_SERVICE " 127.0.0.1 %d 2\n",
                   fleet->servers[0].port);
    size_t master = fail_over(fleet);
    /* The old master comes back and calls itself the master; one sentinel knows nothing else, and sees it well. */
    assert_true(redis_server_restart(&fleet->servers[0]));
    assert_true(redis_server_start_sentinel(&stale, config));
    fleet_await(&stale, "flags master", "SENTINEL MASTER " FLEET_SERVICE);
    char url[256];
    (void)snprintf(url, sizeof url,
                   "redis+sentinel://sneck:secret@127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d/" FLEET_SERVICE, stale.port,
                   fleet->sentinels[0].port, fleet->sentinels[1].port);
    sneck_error error;
    sneck_client *client = open_client(url, 3000);
    sneck_lock *lock = test_mutex(client, "a", NULL);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    assert_string_equal(fleet_ask(&fleet->servers[master], "EXISTS lock:a"), "1");
    assert_string_equal(fleet_ask(&fleet->servers[0], "EXISTS lock:a"), "0");
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    sneck_lock_free(lock);
    sneck_close(client);
    redis_server_stop(&stale);
}

static void test_a_server_that_is_no_master_is_not_used_though_all_name_it(void **state)
{
    redis_fleet *fleet = *state;
    fleet_do(&fleet->servers[0], "REPLICAOF 127.0.0.1 1");
    expect_open(SNECK_UNAVAILABLE, fleet_sentinel_url(fleet, "timeout=500"), "not a master");
    fleet_do(&fleet->servers[0], "REPLICAOF NO ONE");
    expect_open(SNECK_OK, fleet_sentinel_url(fleet, NULL), "");
}

/* ---- Following ---- */

static void test_a_planned_failover_costs_no_hold_and_wakes_who_waits(void **state)
{
    redis_fleet *fleet = *state;
    sneck_error error;
    sneck_client *holder = open_client(fleet_sentinel_url(fleet, NULL), 12000);
    sneck_client *waiter = open_client(fleet_sentinel_url(fleet, NULL), 12000);
    sneck_lock *held = test_mutex(holder, "a", NULL);
    sneck_lock *wanted = test_mutex(waiter, "a", NULL);
    EXPECT(SNECK_OK, sneck_acquire(held, 0, &error));
    uint64_t token = sneck_token(held);
    test_waiter waiting;
    test_waiter_start(&waiting, wanted, 30000);
    for (size_t i = 1; i < fleet->count; i++)
        fleet_await(&fleet->servers[i], "1", "ZCARD {lock:a}:queue");
    fleet_do(&fleet->sentinels[0], "SENTINEL FAILOVER " FLEET_SERVICE);
    size_t master = fleet_await_master(fleet, 0);
    fleet_await_agreement(fleet, master);
    EXPECT(SNECK_OK, sneck_extend(held, 12000, &error)); /* on the new master */
    assert_true(sneck_token(held) == token);
    /* The one that waits listens there before it would look by itself. */
    fleet_await(&fleet->servers[master], "lock:wake:", "PUBSUB CHANNELS");
    int64_t begin_ms = test_now_ms();
    EXPECT(SNECK_OK, sneck_release(held, &error));
    test_waiter_join(&waiting);
    assert_true(waiting.served_at_ms - begin_ms < 1000);
    assert_true(waiting.token > token);
    sneck_lock_free(wanted);
    sneck_lock_free(held);
    sneck_close(waiter);
    sneck_close(holder);
}

/* Whoever counts these events must not believe for ever that the store is away. */
static void test_a_failover_is_told_as_a_connection_that_is_down_and_up_again(void **state)
{
    redis_fleet *fleet = *state;
    sneck_client *client = open_client(fleet_sentinel_url(fleet, NULL), 12000);
    assert_true(sneck_event_fd(client) >= 0);
    expect_pair(client);
    sneck_lock *lock = test_mutex(client, "a", NULL);
    redis_server_kill(&fleet->servers[0]);
    int64_t limit_ms = test_now_ms() + TEST_PATIENCE_MS;
    sneck_error error;
    while (sneck_acquire(lock, 1000, &error) != SNECK_OK) /* somebody must ask for it to be noticed */
        assert_true(test_now_ms() < limit_ms);
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    sneck_lock_free(lock);
    (void)test_await_event(client, SNECK_EVENT_CONNECTION_DOWN);
    (void)test_await_event(client, SNECK_EVENT_CONNECTION_UP);
    expect_pair(client);
    sneck_close(client);
}

/* ---- TLS ---- */

static void test_sentinels_and_servers_are_spoken_to_by_tls(void **state)
{
    (void)state;
    char files[64];
    redis_server server = { 0 };
    redis_server sentinel;
    assert_true(tls_files_make(files, "DNS:localhost,IP:127.0.0.1"));
    assert_true(redis_server_start_tls(&server, files, false));
    int tls_port = redis_server_free_port();
    char config[1024];
    (void)snprintf(config, sizeof config,
                   "tls-port %d\ntls-cert-file %s/server.crt\ntls-key-file %s/server.key\ntls-ca-cert-file %s/ca.crt\n"
                   "tls-auth-clients no\ntls-replication yes\nsentinel monitor " FLEET_SERVICE " 127.0.0.1 %d 1\n",
                   tls_port, files, files, files, server.tls_port);
    assert_true(redis_server_start_sentinel(&sentinel, config));
    fleet_await(&sentinel, "flags master", "SENTINEL MASTER " FLEET_SERVICE);
    char url[512];
    (void)snprintf(url, sizeof url, "rediss+sentinel://127.0.0.1:%d/" FLEET_SERVICE "?ca=%s/ca.crt", tls_port, files);
    expect_open(SNECK_OK, url, "");
    (void)snprintf(url, sizeof url, "rediss+sentinel://127.0.0.1:%d/" FLEET_SERVICE "?ca=%s/stranger.crt", tls_port,
                   files);
    expect_open(SNECK_DENIED, url, "certificate");
    redis_server_stop(&sentinel);
    redis_server_stop(&server);
    tls_files_remove(files);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_all_ways_to_write_the_url_lead_to_the_master),
        TEST(test_sentinels_have_credentials_of_their_own),
        TEST(test_a_minority_of_sentinels_is_not_believed),
        TEST(test_a_sentinel_that_missed_the_failover_is_not_believed),
        TEST(test_a_server_that_is_no_master_is_not_used_though_all_name_it),
        TEST(test_a_planned_failover_costs_no_hold_and_wakes_who_waits),
        TEST(test_a_failover_is_told_as_a_connection_that_is_down_and_up_again),
        cmocka_unit_test(test_sentinels_and_servers_are_spoken_to_by_tls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
