/* Servers that crash, freeze and refuse, and sessions that are ended: the same for each SQL server. */
#include "test.h"

#include "base/clock.h"
#include "bed.h"
#include "claims.h"
#include "proxy.h"
#include "sql_bed.h"
#include "waiter.h"

static const char queue[] = "SELECT count(*) FROM sneck_queue";
static const char holds[] = "SELECT count(*) FROM sneck_hold";

/* A holder and a rival, each a client of its own. */
typedef struct pair {
    sneck_client *clients[2];
    sneck_lock *lock;
    sneck_lock *rival;
} pair;

static pair open_pair(const sql_bed *bed, const char *keys, int64_t lease_ms)
{
    pair made = { .clients = { sql_bed_open(bed, keys, lease_ms), sql_bed_open(bed, NULL, 20000) } };
    sneck_error error;
    made.lock = test_mutex(made.clients[0], "a", NULL);
    made.rival = test_mutex(made.clients[1], "a", NULL);
    EXPECT(SNECK_OK, sneck_acquire(made.lock, 0, &error));
    return made;
}

static void close_pair(pair *made)
{
    sneck_lock_free(made->lock);
    sneck_lock_free(made->rival);
    sneck_close(made->clients[0]);
    sneck_close(made->clients[1]);
}

static void start_waiting(test_waiter *self, sql_bed *bed, sneck_lock *lock)
{
    test_waiter_start(self, lock, TEST_PATIENCE_MS);
    sql_bed_await(bed, queue, 1);
}

static void await_extend(sneck_lock *lock)
{
    sneck_error error;
    int64_t limit_ms = test_now_ms() + TEST_PATIENCE_MS;
    while (sneck_extend(lock, 20000, &error) != SNECK_OK)
        if (test_now_ms() > limit_ms)
            fail_msg("%s", error.message);
}

static void crash(sql_bed *bed)
{
    bed->server->crash(bed->bed);
}

static void restart(sql_bed *bed)
{
    bed->server->restart(bed->bed);
}

/* ---- The server ---- */

static void test_a_hold_survives_a_crash_of_the_server_within_its_lease(void **state)
{
    sql_bed *bed = *state;
    sneck_error error;
    pair made = open_pair(bed, NULL, 20000);
    uint64_t token = sneck_token(made.lock);
    crash(bed);
    assert_int_not_equal(sneck_extend(made.lock, 20000, &error), SNECK_OK);
    sneck_status refused = sneck_acquire(made.rival, 0, &error);
    assert_true(refused == SNECK_UNAVAILABLE || refused == SNECK_UNKNOWN);
    restart(bed);
    await_extend(made.lock);
    EXPECT(SNECK_BUSY, sneck_acquire(made.rival, 0, &error));
    assert_true(sneck_is_held(made.lock) && sneck_token(made.lock) == token);
    EXPECT(SNECK_OK, sneck_release(made.lock, &error));
    EXPECT(SNECK_OK, sneck_acquire(made.rival, 0, &error));
    assert_true(sneck_token(made.rival) > token);
    close_pair(&made);
}

static void test_waiters_wait_out_a_crash(void **state)
{
    sql_bed *bed = *state;
    sneck_error error;
    pair made = open_pair(bed, NULL, 20000);
    test_waiter self;
    start_waiting(&self, bed, made.rival);
    crash(bed);
    restart(bed);
    await_extend(made.lock);
    EXPECT(SNECK_OK, sneck_release(made.lock, &error));
    test_waiter_join(&self);
    close_pair(&made);
}

static void test_a_server_frozen_past_the_lease_is_loss_in_time_and_nothing_stays(void **state)
{
    sql_bed *bed = *state;
    sneck_error error;
    pair made = open_pair(bed, "timeout=300", 1000);
    uint64_t token = sneck_token(made.lock);
    int fd = sneck_lost_fd(made.lock);
    bed->server->freeze(bed->bed);
    bool told = test_readable(fd, 1000); /* the lease is not over yet, wherever it is counted */
    bool held = sneck_is_held(made.lock);
    sql_bed_pause(300);
    bed->server->thaw(bed->bed);
    assert_true(told && !held);
    EXPECT(SNECK_OK, sneck_acquire(made.rival, TEST_PATIENCE_MS, &error));
    assert_true(sneck_token(made.rival) > token);
    EXPECT(SNECK_LOST, sneck_release(made.lock, &error));
    assert_true(sneck_is_held(made.rival)); /* what was on its way from the frozen times changes nothing */
    EXPECT(SNECK_OK, sneck_release(made.rival, &error));
    sql_bed_await(bed, holds, 0);
    close_pair(&made);
}

/* ---- Several servers ---- */

/* A client that knows two: a proxy first, and the server itself. */
static sneck_client *open_both(const sql_bed *bed, const fault_proxy *proxy, int64_t lease_ms)
{
    char url[256];
    sneck_error error;
    sneck_client *client = NULL;
    sneck_client_options options = SNECK_CLIENT_OPTIONS_INIT;
    options.lease_ms = lease_ms;
    (void)snprintf(url, sizeof url, "%s://sneck:secret@127.0.0.1:%d,127.0.0.1:%d/locks?%s&timeout=2000",
                   bed->server->scheme, proxy->port, bed->server->port(bed->bed), bed->mode);
    test_expect(SNECK_OK, sneck_open(url, &options, &client, &error), &error, "sneck_open");
    return client;
}

/* Nothing is refused and nothing is cut: a machine that is frozen, or whose answers get lost. */
static void test_a_first_server_that_is_silent_is_given_up_for_the_next(void **state)
{
    sql_bed *bed = *state;
    sneck_error error;
    static fault_proxy proxy;
    assert_true(proxy_start(&proxy, bed->server->port(bed->bed)));
    proxy_harm(&proxy, PROXY_STALL_REQUESTS, "");
    sneck_client *client = open_both(bed, &proxy, 20000);
    sneck_client *other = sql_bed_open(bed, NULL, 20000);
    sneck_lock *lock = test_mutex(other, "a", NULL);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    test_waiter self;
    start_waiting(&self, bed, test_mutex(client, "a", NULL));
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    test_waiter_join(&self);
    sneck_lock_free(lock);
    sneck_lock_free(self.lock);
    sneck_close(client);
    sneck_close(other);
    proxy_stop(&proxy);
}

static void test_a_hold_outlives_a_server_that_falls_silent_and_is_replaced(void **state)
{
    sql_bed *bed = *state;
    sneck_error error;
    static fault_proxy proxy;
    assert_true(proxy_start(&proxy, bed->server->port(bed->bed)));
    sneck_client *client = open_both(bed, &proxy, 20000);
    sneck_lock *lock = test_mutex(client, "a", NULL);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    assert_true(proxy.connections > 0);
    proxy_harm(&proxy, PROXY_STALL_REQUESTS, "");
    await_extend(lock);
    assert_true(sneck_is_held(lock));
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    sneck_lock_free(lock);
    sneck_close(client);
    proxy_stop(&proxy);
}

/* ---- Sessions ---- */

static void test_holders_and_waiters_outlive_their_sessions(void **state)
{
    sql_bed *bed = *state;
    sneck_error error;
    pair made = open_pair(bed, NULL, 20000);
    test_waiter self;
    start_waiting(&self, bed, made.rival);
    bed->server->run(bed->bed, bed->server->end_all_sessions);
    assert_true(sneck_is_held(made.lock));
    /* A session that was idle is seen to be gone, and replaced. */
    EXPECT(SNECK_OK, sneck_extend(made.lock, 20000, &error));
    int64_t released_ms = test_now_ms();
    EXPECT(SNECK_OK, sneck_release(made.lock, &error));
    test_waiter_join(&self);
    assert_true(self.served_at_ms - released_ms < 5000); /* long before its next look, a third of the lease */
    close_pair(&made);
}

static void test_a_message_that_was_lost_with_its_session_is_made_good(void **state)
{
    sql_bed *bed = *state;
    sneck_error error;
    for (int i = 0; i < 3; i++) {
        pair made = open_pair(bed, NULL, 60000);
        test_waiter self;
        start_waiting(&self, bed, made.rival);
        sql_bed_await(bed, bed->server->listeners, 1);
        /* The message has nobody to go to. */
        bed->server->run(bed->bed, bed->server->end_listeners);
        int64_t released_ms = test_now_ms();
        EXPECT(SNECK_OK, sneck_release(made.lock, &error));
        test_waiter_join(&self);
        assert_true(self.served_at_ms - released_ms < 2000);
        close_pair(&made);
    }
}

/* Waiting costs the server next to nothing, however many wait. */
static void test_those_who_wait_do_not_ask_all_the_time(void **state)
{
    sql_bed *bed = *state;
    sneck_error error;
    pair made = open_pair(bed, NULL, 20000);
    test_waiter self;
    start_waiting(&self, bed, made.rival);
    sql_bed_await(bed, bed->server->listeners, 1);
    sql_bed_pause(100); /* the look that follows the first word with the listener */
    long long before = sql_bed_number(bed, bed->server->work);
    sql_bed_pause(1000);
    long long asked = sql_bed_number(bed, bed->server->work) - before;
    assert_in_range(asked, 0, 3); /* our own question among them; polling would be ten and more */
    EXPECT(SNECK_OK, sneck_release(made.lock, &error));
    test_waiter_join(&self);
    close_pair(&made);
}

int main(void)
{
#define TEST(function)                                                                                                 \
    {                                                                                                                  \
#function, function, SQL_LEASE                                                                                 \
    }
    const sql_test tests[] = {
        TEST(test_a_hold_survives_a_crash_of_the_server_within_its_lease),
        TEST(test_waiters_wait_out_a_crash),
        TEST(test_a_server_frozen_past_the_lease_is_loss_in_time_and_nothing_stays),
        TEST(test_a_first_server_that_is_silent_is_given_up_for_the_next),
        TEST(test_a_hold_outlives_a_server_that_falls_silent_and_is_replaced),
        TEST(test_holders_and_waiters_outlive_their_sessions),
        TEST(test_a_message_that_was_lost_with_its_session_is_made_good),
        TEST(test_those_who_wait_do_not_ask_all_the_time),
    };
    return sql_bed_run("faults", tests, sizeof tests / sizeof tests[0], NULL, NULL);
}
