/* A network that does harm: what a call is told, and what the server sees. */
#include "test.h"

#include <sys/socket.h>

#include "proxy.h"
#include "redis_ask.h"
#include "redis_server.h"

static redis_server server;
static fault_proxy proxy;
static snk_redis *direct; /* past the proxy */
static snk_redis *redis;  /* through it */

static int set_up_server(void **state)
{
    (void)state;
    return redis_server_start(&server, NULL) ? 0 : -1;
}

static int tear_down_server(void **state)
{
    (void)state;
    redis_server_stop(&server);
    return 0;
}

static int set_up(void **state)
{
    (void)state;
    if (!proxy_start(&proxy, server.port))
        return -1;
    snk_redis_config config = { .host = "127.0.0.1", .port = server.port };
    direct = redis_open(&config);
    config.port = proxy.port;
    config.command_timeout_ns = 300 * SNK_NS_PER_MS;
    config.connect_timeout_ns = 300 * SNK_NS_PER_MS;
    redis = redis_open(&config);
    redis_do(direct, "FLUSHALL");
    redis_do(redis, "PING");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    snk_redis_close(redis);
    snk_redis_close(direct);
    proxy_stop(&proxy);
    return 0;
}

static void expect_uncertain(const char *line)
{
    snk_redis_call call;
    assert_int_equal(redis_ask(redis, &call, line), SNK_REDIS_UNCERTAIN);
    assert_int_equal(call.error.status, SNECK_UNKNOWN);
    if (strstr(call.error.message, snk_redis_where(redis)) == NULL)
        fail_msg("which server? %s", call.error.message);
    assert_null(call.reply);
    snk_redis_call_deinit(&call);
}

static void test_cut_before_the_request_arrives_is_uncertain_and_did_not_happen(void **state)
{
    (void)state;
    proxy_harm(&proxy, PROXY_CUT_BEFORE, "INCR");
    expect_uncertain("INCR n");
    proxy_harm(&proxy, PROXY_PASS, "");
    assert_int_equal(redis_integer(direct, "EXISTS n"), 0);
    assert_int_equal(redis_integer(redis, "INCR n"), 1);
}

static void test_cut_after_the_request_is_uncertain_and_did_happen(void **state)
{
    (void)state;
    proxy_harm(&proxy, PROXY_CUT_AFTER, "INCR");
    expect_uncertain("INCR n");
    proxy_harm(&proxy, PROXY_PASS, "");
    assert_int_equal(redis_integer(direct, "GET n"), 1);
    /* Nothing was sent twice. */
    assert_int_equal(redis_integer(redis, "INCR n"), 2);
}

static void test_replies_that_stall_are_uncertain_after_the_timeout(void **state)
{
    (void)state;
    proxy_harm(&proxy, PROXY_STALL_REPLIES, "");
    snk_redis_call call;
    int64_t start = snk_now_ns();
    assert_int_equal(redis_ask(redis, &call, "INCR n"), SNK_REDIS_UNCERTAIN);
    int64_t took_ms = (snk_now_ns() - start) / SNK_NS_PER_MS;
    assert_true(took_ms >= 300 && took_ms < 3000);
    snk_redis_call_deinit(&call);
    /* While it stalls no greeting is answered either: nothing of a new call leaves. */
    assert_int_equal(redis_ask(redis, &call, "INCR n"), SNK_REDIS_NOT_SENT);
    snk_redis_call_deinit(&call);
    proxy_harm(&proxy, PROXY_PASS, "");
    sleep_ms(50);
    assert_int_equal(redis_integer(direct, "GET n"), 1);
    assert_int_equal(redis_integer(redis, "INCR n"), 2);
}

/*
 * S4: a connection that is given up is reset. The request waits in the proxy's receive buffer, as it could in that of
 * any box on the way; because of the reset the proxy finds an error instead of an orderly end.
 */
static void test_a_connection_that_is_given_up_is_reset(void **state)
{
    (void)state;
    proxy_harm(&proxy, PROXY_STALL_REQUESTS, "");
    snk_redis_call call;
    assert_int_equal(redis_ask(redis, &call, "INCR n"), SNK_REDIS_UNCERTAIN);
    snk_redis_call_deinit(&call);
    assert_true(wait_for_number(&proxy.resets, 1));
    assert_int_equal(proxy.ends, 0);
    proxy_harm(&proxy, PROXY_PASS, "");
}

static void test_a_reset_while_closing_too(void **state)
{
    (void)state;
    snk_redis_config config = { .host = "127.0.0.1", .port = proxy.port };
    snk_redis *other = redis_open(&config);
    redis_do(other, "PING");
    snk_redis_close(other);
    assert_true(wait_for_number(&proxy.resets, 1));
    assert_int_equal(proxy.ends, 0);
}

static void test_slow_answers_within_the_timeout_are_answers(void **state)
{
    (void)state;
    proxy.request_delay_ms = 60;
    proxy.reply_delay_ms = 60;
    int64_t start = snk_now_ns();
    assert_int_equal(redis_integer(redis, "INCR n"), 1);
    assert_true(snk_now_ns() - start >= 120 * SNK_NS_PER_MS);
    proxy.request_delay_ms = 0;
    proxy.reply_delay_ms = 0;
}

static void test_bytes_may_come_one_at_a_time(void **state)
{
    (void)state;
    proxy_harm(&proxy, PROXY_TRICKLE, "");
    for (int i = 1; i <= 20; i++)
        assert_int_equal(redis_integer(redis, "INCR n"), i);
    proxy_harm(&proxy, PROXY_PASS, "");
}

static void note_done(snk_redis_call *call)
{
    atomic_fetch_add((_Atomic int *)call->context, 1);
}

/* Calls that nobody drives are given up by the connection's own thread. */
static void test_a_submitted_call_times_out_too(void **state)
{
    (void)state;
    proxy_harm(&proxy, PROXY_STALL_REPLIES, "");
    _Atomic int done = 0;
    snk_redis_call call;
    snk_redis_call_init(&call);
    call.done = note_done;
    call.context = &done;
    redis_format(&call, "INCR n");
    int64_t start = snk_now_ns();
    snk_redis_submit(redis, &(snk_redis_call *){ &call }, 1);
    assert_true(wait_for_number(&done, 1));
    assert_int_equal(call.outcome, SNK_REDIS_UNCERTAIN);
    assert_true(snk_now_ns() - start >= 290 * SNK_NS_PER_MS);
    snk_redis_call_deinit(&call);
    proxy_harm(&proxy, PROXY_PASS, "");
}

/* The server goes silent after a call was given up alone: nobody waits any more, and it must be noticed all the same. */
static void test_silence_is_noticed_after_the_only_caller_left(void **state)
{
    (void)state;
    proxy_harm(&proxy, PROXY_STALL_REPLIES, "");
    snk_redis_call call;
    snk_redis_call_init(&call);
    call.timeout_ns = 20 * SNK_NS_PER_MS;
    redis_format(&call, "INCR n");
    snk_redis_drive(redis, &(snk_redis_call *){ &call }, 1);
    assert_int_equal(call.outcome, SNK_REDIS_UNCERTAIN);
    snk_redis_call_deinit(&call);
    snk_redis_server known = { .connected = true };
    for (int i = 0; i < 1000 && known.connected; i++) {
        sleep_ms(5);
        snk_redis_describe(redis, &known);
    }
    assert_false(known.connected);
    assert_true(wait_for_number(&proxy.resets, 1));
    proxy_harm(&proxy, PROXY_PASS, "");
}

static void test_attempts_to_connect_are_spaced_out(void **state)
{
    (void)state;
    redis_server_kill(&server);
    sleep_ms(50);
    /* The proxy accepts and finds no server: each attempt is one connection to it that is closed at once. */
    snk_redis_server before;
    snk_redis_server after;
    snk_redis_describe(redis, &before);
    int64_t until = snk_now_ns() + 1500 * SNK_NS_PER_MS;
    while (snk_now_ns() < until) {
        snk_redis_call call;
        assert_int_not_equal(redis_ask(redis, &call, "PING"), SNK_REDIS_REPLY);
        snk_redis_call_deinit(&call);
    }
    snk_redis_describe(redis, &after);
    /* 10, 20, 40, … ms, of which up to a half is left out: about 8 to 12 in 1.5 s. */
    assert_in_range(after.failures - before.failures, 4, 16);
    assert_true(redis_server_restart(&server));
    /* The next attempt is up to a second away, which is longer than a call waits here. */
    snk_redis_outcome outcome = SNK_REDIS_NOT_SENT;
    for (int i = 0; i < 10 && outcome != SNK_REDIS_REPLY; i++) {
        snk_redis_call call;
        outcome = redis_ask(redis, &call, "PING");
        snk_redis_call_deinit(&call);
    }
    assert_int_equal(outcome, SNK_REDIS_REPLY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_cut_before_the_request_arrives_is_uncertain_and_did_not_happen, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_cut_after_the_request_is_uncertain_and_did_happen, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_replies_that_stall_are_uncertain_after_the_timeout, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_connection_that_is_given_up_is_reset, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_reset_while_closing_too, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_slow_answers_within_the_timeout_are_answers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_bytes_may_come_one_at_a_time, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_submitted_call_times_out_too, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_silence_is_noticed_after_the_only_caller_left, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_attempts_to_connect_are_spaced_out, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, set_up_server, tear_down_server);
}
