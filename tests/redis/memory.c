/*
 * Out of memory: each use of the Redis client is tried with its first allocation failing, on whatever thread it is made,
 * then its second, and so on until none fails. Whatever was asked ends in time, as done or with a status that says that
 * it was not, or that nobody knows; and the next attempt works.
 */
#include "test.h"

#include <stdatomic.h>

#include "allocations.h"
#include "bed.h"
#include "redis_ask.h"
#include "redis_server.h"
#include "tls_files.h"

#define ALLOCATIONS_MAX 10000

static char files[64];
static redis_server server;
static snk_redis *direct; /* nothing of it fails */

static int set_up(void **state)
{
    (void)state;
    if (!tls_files_make(files, "DNS:localhost") || !redis_server_start_tls(&server, files, false))
        return -1;
    snk_redis_config config = { .host = "127.0.0.1", .port = server.port };
    direct = redis_open(&config);
    redis_do(direct, "PING");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    snk_redis_close(direct);
    redis_server_stop(&server);
    tls_files_remove(files);
    return 0;
}

/* ---- What a failure may look like ---- */

static bool is_fair(const sneck_error *error)
{
    return error->status == SNECK_NO_MEMORY || error->status == SNECK_UNAVAILABLE || error->status == SNECK_UNKNOWN;
}

static void expect_fair(const sneck_error *error)
{
    if (!is_fair(error) || error->message[0] == '\0')
        fail_msg("%s: %s", sneck_status_name(error->status), error->message);
}

static void expect_done_or_fair(const snk_redis_call *call)
{
    if (call->outcome == SNK_REDIS_REPLY)
        assert_non_null(call->reply);
    else
        expect_fair(&call->error);
}

static bool one_has_failed;

static void begin(int allowed)
{
    allocations_fail_one(allowed);
}

static void end(void)
{
    one_has_failed = allocations_fail_none();
}

/* Runs `attempt` with one allocation failing, each `step`th in turn, until it makes so many that none does. */
static void sweep_by(int step, void (*attempt)(int allowed), const char *what)
{
    if (!allocations_can_fail()) {
        test_skip("sanitizers have an allocator of their own");
        return;
    }
    int failures = 0;
    for (int allowed = 0; allowed < ALLOCATIONS_MAX; allowed += step) {
        attempt(allowed);
        if (!one_has_failed) {
            assert_true(failures > 0); /* it does allocate, or this shows nothing */
            printf("# figure: %s: %d of about %d allocations failed, one at a time\n", what, failures, allowed);
            return;
        }
        failures++;
    }
    fail_msg("it never succeeds");
}

static void sweep(void (*attempt)(int allowed), const char *what)
{
    sweep_by(1, attempt, what);
}

/* ---- Locks ---- */

/* The server has forgotten the scripts, so each is sent again with its text. Nobody has what the store did not give. */
static void lock_with_flushed_scripts(int allowed, bool extends)
{
    char url[64];
    (void)snprintf(url, sizeof url, "redis://127.0.0.1:%d", server.port);
    sneck_error error;
    sneck_client *client = NULL;
    EXPECT(SNECK_OK, sneck_open(url, NULL, &client, &error));
    sneck_lock *lock = test_mutex(client, "a", NULL);
    EXPECT(SNECK_OK, sneck_acquire(lock, 10000, &error));
    if (!extends) {
        EXPECT(SNECK_OK, sneck_release(lock, &error));
    }
    redis_do(direct, "SCRIPT FLUSH");
    begin(allowed);
    sneck_status status = extends ? sneck_extend(lock, 90000, &error) : sneck_acquire(lock, 0, &error);
    end();
    if (status != SNECK_OK)
        expect_fair(&error);
    else
        assert_true(sneck_token(lock) > 0 && redis_integer(direct, "PTTL lock:a") > (extends ? 80000 : 20000));
    sneck_lock_free(lock);
    sneck_close(client);
}

static void acquire_with_flushed_scripts(int allowed)
{
    lock_with_flushed_scripts(allowed, false);
}

static void extend_with_flushed_scripts(int allowed)
{
    lock_with_flushed_scripts(allowed, true);
}

static void test_sending_scripts_again_fails_cleanly(void **state)
{
    (void)state;
    sweep(acquire_with_flushed_scripts, "acquiring when scripts are gone");
    sweep(extend_with_flushed_scripts, "extending when scripts are gone");
}

/* ---- Opening, calling, closing ---- */

static snk_redis_config by_name(void)
{
    return (snk_redis_config){ .host = "localhost", .port = server.port, .client_name = "test", .database = 1 };
}

static void open_call_close(int allowed)
{
    snk_redis_config config = by_name();
    snk_redis *redis = NULL;
    sneck_error error;
    begin(allowed);
    if (snk_redis_open(&config, &redis, &error) != SNECK_OK) {
        end();
        assert_null(redis);
        expect_fair(&error);
        return;
    }
    snk_redis_call call;
    snk_redis_call_init(&call);
    const char *words[] = { "PING" };
    sneck_status status = snk_redis_call_format(&call, 1, words, NULL, &error);
    if (status == SNECK_OK)
        snk_redis_drive(redis, &(snk_redis_call *){ &call }, 1);
    end();
    if (status == SNECK_OK)
        expect_done_or_fair(&call);
    else
        expect_fair(&error);
    snk_redis_call_deinit(&call);
    redis_do(redis, "PING");
    snk_redis_close(redis);
}

static void test_open_fails_cleanly(void **state)
{
    (void)state;
    sweep(open_call_close, "open, call, close");
}

/* ---- Many calls on one connection ---- */

enum {
    CALLS = 70 /* more than the ring has slots at first */
};

static snk_redis *shared;

static void note_done(snk_redis_call *call)
{
    atomic_fetch_add((_Atomic int *)call->context, 1);
}

static void format_all(snk_redis_call calls[CALLS], snk_redis_call *pointers[CALLS], _Atomic int *done)
{
    for (size_t i = 0; i < CALLS; i++) {
        pointers[i] = &calls[i];
        snk_redis_call_init(&calls[i]);
        redis_format(&calls[i], i % 2 == 0 ? "INCR n" : "LRANGE list 0 -1");
        calls[i].done = done != NULL ? note_done : NULL;
        calls[i].context = done;
    }
}

static void expect_all(snk_redis_call calls[CALLS])
{
    for (size_t i = 0; i < CALLS; i++) {
        expect_done_or_fair(&calls[i]);
        snk_redis_call_deinit(&calls[i]);
    }
    redis_do(shared, "PING");
}

static void drive_many(int allowed)
{
    snk_redis_call calls[CALLS];
    snk_redis_call *pointers[CALLS];
    snk_redis_config config = by_name();
    shared = redis_open(&config);
    redis_do(shared, "RPUSH list a b c");
    redis_do(shared, "LTRIM list -3 -1");
    format_all(calls, pointers, NULL);
    begin(allowed);
    snk_redis_drive(shared, pointers, CALLS);
    end();
    expect_all(calls);
    snk_redis_close(shared);
}

static void test_driving_fails_cleanly(void **state)
{
    (void)state;
    sweep(drive_many, "driving many calls");
}

static void submit_many(int allowed)
{
    snk_redis_call calls[CALLS];
    snk_redis_call *pointers[CALLS];
    _Atomic int done = 0;
    snk_redis_config config = by_name();
    shared = redis_open(&config);
    redis_do(shared, "PING");
    format_all(calls, pointers, &done);
    begin(allowed);
    snk_redis_submit(shared, pointers, CALLS);
    bool all_done = wait_for_number(&done, CALLS);
    end();
    assert_true(all_done);
    expect_all(calls);
    snk_redis_close(shared);
}

static void test_submitting_fails_cleanly(void **state)
{
    (void)state;
    sweep(submit_many, "submitting many calls");
}

/* ---- Reconnecting ---- */

static void reconnect_with(const snk_redis_config *config, int allowed)
{
    shared = redis_open(config);
    redis_do(shared, "PING");
    snk_redis_call call;
    snk_redis_call_init(&call);
    redis_format(&call, "PING");
    redis_do(direct, "CLIENT KILL TYPE normal SKIPME yes");
    sleep_ms(15); /* after so long a silence the client looks before it sends */
    begin(allowed);
    snk_redis_drive(shared, &(snk_redis_call *){ &call }, 1);
    end();
    expect_done_or_fair(&call);
    snk_redis_call_deinit(&call);
    redis_do(shared, "PING");
    snk_redis_close(shared);
}

static void reconnect(int allowed)
{
    snk_redis_config config = by_name();
    reconnect_with(&config, allowed);
}

static void test_reconnecting_fails_cleanly(void **state)
{
    (void)state;
    sweep(reconnect, "reconnecting");
}

/* What fails while OpenSSL makes a context it may hide, and give out a useless one: so only what comes after that. */
static void reconnect_by_tls(int allowed)
{
    snk_redis_config config = by_name();
    config.port = server.tls_port;
    config.tls = (snk_redis_tls){ .on = true, .verify_none = true };
    reconnect_with(&config, allowed);
}

static void test_reconnecting_by_tls_fails_cleanly(void **state)
{
    (void)state;
    sweep_by(4000 / (int)test_scaled(1000), reconnect_by_tls, "reconnecting by TLS");
}

/* ---- Subscribing ---- */

static _Atomic int heard;

static void on_message(void *context, const snk_redis_message *message)
{
    (void)context;
    (void)message;
    heard++;
}

/* One failure is made good by the next attempt to connect: the channel is confirmed in the end, and heard. */
static void subscribe(int allowed)
{
    snk_redis_config config = by_name();
    config.listener.message = on_message;
    snk_redis *redis = redis_open(&config);
    sneck_error error;
    heard = 0;
    begin(allowed);
    sneck_status status = snk_redis_subscribe(redis, "channel", 7, &error);
    bool confirmed =
        status == SNECK_OK && snk_redis_await_subscribed(redis, "channel", 7, snk_now_ns() + 10 * SNK_NS_PER_S, &error);
    end();
    if (status != SNECK_OK) {
        expect_fair(&error);
        assert_int_equal(snk_redis_subscribe(redis, "channel", 7, &error), SNECK_OK);
        confirmed = snk_redis_await_subscribed(redis, "channel", 7, snk_now_ns() + 10 * SNK_NS_PER_S, &error);
    }
    if (!confirmed)
        fail_msg("%s", error.message);
    redis_do(direct, "PUBLISH channel x");
    assert_true(wait_for_number(&heard, 1));
    snk_redis_close(redis);
}

static void test_subscribing_fails_cleanly(void **state)
{
    (void)state;
    sweep(subscribe, "subscribing");
}

/* A message for which there is no memory cuts the connection, and whoever listens is told that it may have missed one. */
static _Atomic int confirmations;

static void on_subscribed(void *context, const char *channel, size_t length, snk_redis_run run)
{
    (void)context;
    (void)channel;
    (void)length;
    (void)run;
    confirmations++;
}

static void hear(int allowed)
{
    snk_redis_config config = by_name();
    config.listener.message = on_message;
    config.listener.subscribed = on_subscribed;
    snk_redis *redis = redis_open(&config);
    sneck_error error;
    heard = 0;
    confirmations = 0;
    assert_int_equal(snk_redis_subscribe(redis, "channel", 7, &error), SNECK_OK);
    assert_true(wait_for_number(&confirmations, 1));
    snk_redis_call call;
    snk_redis_call_init(&call);
    redis_format(&call, "PUBLISH channel x");
    begin(allowed);
    snk_redis_drive(direct, &(snk_redis_call *){ &call }, 1);
    bool published = call.outcome == SNK_REDIS_REPLY;
    for (int i = 0; i < 5000 && published && heard == 0 && confirmations == 1; i++)
        sleep_ms(2);
    end();
    expect_done_or_fair(&call);
    snk_redis_call_deinit(&call);
    assert_true(heard == 1 || confirmations >= 2 || !published);
    snk_redis_close(redis);
}

static void test_hearing_fails_cleanly(void **state)
{
    (void)state;
    sweep(hear, "hearing a message");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open_fails_cleanly),
        cmocka_unit_test(test_driving_fails_cleanly),
        cmocka_unit_test(test_submitting_fails_cleanly),
        cmocka_unit_test(test_reconnecting_fails_cleanly),
        cmocka_unit_test(test_reconnecting_by_tls_fails_cleanly),
        cmocka_unit_test(test_subscribing_fails_cleanly),
        cmocka_unit_test(test_hearing_fails_cleanly),
        cmocka_unit_test(test_sending_scripts_again_fails_cleanly),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
