/* Calls on one connection to a real server: what comes of them. */
#include "test.h"

#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "redis_ask.h"
#include "redis_server.h"

static redis_server server;

static int set_up(void **state)
{
    (void)state;
    return redis_server_start(&server, NULL) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    redis_server_stop(&server);
    return 0;
}

static snk_redis_config plain(void)
{
    return (snk_redis_config){ .host = "127.0.0.1", .port = server.port };
}

static snk_redis *open_plain(void)
{
    snk_redis_config config = plain();
    return redis_open(&config);
}

static void test_a_call_is_answered_with_times_and_the_run_of_the_server(void **state)
{
    (void)state;
    snk_redis *redis = open_plain();
    snk_redis_call call;
    int64_t before = snk_now_ns();
    assert_int_equal(redis_ask(redis, &call, "ECHO hello"), SNK_REDIS_REPLY);
    assert_string_equal(call.reply->str, "hello");
    assert_int_equal(call.error.status, SNECK_OK);
    assert_true(before <= call.sent_at_ns && call.sent_at_ns <= call.reply_at_ns);
    assert_true(call.run != 0);
    snk_redis_server known;
    snk_redis_describe(redis, &known);
    assert_true(known.connected && known.run == call.run && known.version >= 60000 && known.connects == 1);
    snk_redis_call_deinit(&call);
    snk_redis_close(redis);
}

static void test_arguments_may_contain_any_byte(void **state)
{
    (void)state;
    snk_redis *redis = open_plain();
    snk_redis_call call;
    snk_redis_call_init(&call);
    const char *words[] = { "ECHO", "a\0\r\n$" };
    const size_t lengths[] = { 4, 5 };
    assert_int_equal(snk_redis_call_format(&call, 2, words, lengths, NULL), SNECK_OK);
    snk_redis_drive(redis, &(snk_redis_call *){ &call }, 1);
    assert_int_equal(call.reply->len, 5);
    assert_memory_equal(call.reply->str, "a\0\r\n$", 5);
    snk_redis_call_deinit(&call);
    snk_redis_close(redis);
}

static void test_many_calls_are_driven_in_order_on_one_connection(void **state)
{
    (void)state;
    enum {
        COUNT = 1000
    };
    snk_redis *redis = open_plain();
    static snk_redis_call calls[COUNT];
    static snk_redis_call *pointers[COUNT];
    redis_do(redis, "SET n 0");
    for (size_t i = 0; i < COUNT; i++) {
        snk_redis_call_init(&calls[i]);
        redis_format(&calls[i], "INCR n");
        pointers[i] = &calls[i];
    }
    snk_redis_drive(redis, pointers, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(calls[i].outcome, SNK_REDIS_REPLY);
        assert_int_equal(calls[i].reply->integer, i + 1);
        snk_redis_call_deinit(&calls[i]);
    }
    snk_redis_close(redis);
}

static void count_down(snk_redis_call *call)
{
    atomic_fetch_add((_Atomic int *)call->context, 1);
}

static void test_a_submitted_call_is_done_without_a_driver(void **state)
{
    (void)state;
    snk_redis *redis = open_plain();
    _Atomic int done = 0;
    for (int i = 1; i <= 3; i++) {
        snk_redis_call call;
        snk_redis_call_init(&call);
        call.done = count_down;
        call.context = &done;
        redis_format(&call, "PING");
        int64_t start = snk_now_ns();
        snk_redis_submit(redis, &(snk_redis_call *){ &call }, 1);
        assert_true(wait_for_number(&done, i));
        assert_int_equal(call.outcome, SNK_REDIS_REPLY);
        /* Nobody had to time out first for somebody to read. */
        assert_true(snk_now_ns() - start < SNK_REDIS_COMMAND_NS / 2);
        snk_redis_call_deinit(&call);
    }
    snk_redis_close(redis);
}

static void test_a_driven_call_is_called_back_before_drive_returns(void **state)
{
    (void)state;
    snk_redis *redis = open_plain();
    _Atomic int done = 0;
    snk_redis_call call;
    snk_redis_call_init(&call);
    call.done = count_down;
    call.context = &done;
    redis_format(&call, "PING");
    snk_redis_drive(redis, &(snk_redis_call *){ &call }, 1);
    assert_int_equal(done, 1);
    snk_redis_call_deinit(&call);
    snk_redis_close(redis);
}

static void test_a_server_that_is_not_there_means_not_sent(void **state)
{
    (void)state;
    snk_redis_config config = { .host = "127.0.0.1", .port = redis_server_free_port() };
    snk_redis *redis = redis_open(&config);
    snk_redis_call call;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(redis_ask(redis, &call, "INCR n"), SNK_REDIS_NOT_SENT);
        assert_int_equal(call.error.status, SNECK_UNAVAILABLE);
        assert_non_null(strstr(call.error.message, "cannot connect"));
        snk_redis_call_deinit(&call);
    }
    snk_redis_close(redis);
}

static void test_a_name_that_does_not_exist_means_not_sent(void **state)
{
    (void)state;
    snk_redis_config config = { .host = "no-such-host.invalid" };
    snk_redis *redis = redis_open(&config);
    snk_redis_call call;
    assert_int_equal(redis_ask(redis, &call, "PING"), SNK_REDIS_NOT_SENT);
    assert_non_null(strstr(call.error.message, "no-such-host.invalid"));
    snk_redis_call_deinit(&call);
    snk_redis_close(redis);
}

static void test_a_server_that_sleeps_means_uncertain_and_a_new_connection(void **state)
{
    (void)state;
    snk_redis_config config = plain();
    config.command_timeout_ns = 200 * SNK_NS_PER_MS;
    snk_redis *redis = redis_open(&config);
    redis_do(redis, "SET n 0");
    siginfo_t stopped;
    assert_int_equal(kill(server.pid, SIGSTOP), 0);
    assert_int_equal(waitid(P_PID, (id_t)server.pid, &stopped, WSTOPPED), 0);
    snk_redis_call call;
    int64_t start = snk_now_ns();
    snk_redis_outcome outcome = redis_ask(redis, &call, "INCR n");
    int64_t took_ms = (snk_now_ns() - start) / SNK_NS_PER_MS;
    assert_int_equal(kill(server.pid, SIGCONT), 0);
    assert_int_equal(outcome, SNK_REDIS_UNCERTAIN);
    assert_true(took_ms >= 200);
    assert_int_equal(call.error.status, SNECK_UNKNOWN);
    snk_redis_call_deinit(&call);
    redis_do(redis, "PING");
    snk_redis_server known;
    snk_redis_describe(redis, &known);
    assert_true(known.connects >= 2);
    snk_redis_close(redis);
}

static void test_a_short_timeout_gives_up_one_call_and_keeps_the_connection(void **state)
{
    (void)state;
    snk_redis *redis = open_plain();
    redis_do(redis, "SET n 0");
    snk_redis_call call;
    snk_redis_call_init(&call);
    call.timeout_ns = 50 * SNK_NS_PER_MS;
    redis_format(&call, "DEBUG SLEEP 0.3");
    snk_redis_drive(redis, &(snk_redis_call *){ &call }, 1);
    assert_int_equal(call.outcome, SNK_REDIS_UNCERTAIN);
    snk_redis_call_deinit(&call);
    /* The late answer is not taken for that of the next call. */
    assert_int_equal(redis_integer(redis, "INCR n"), 1);
    snk_redis_server known;
    snk_redis_describe(redis, &known);
    assert_int_equal(known.connects, 1);
    snk_redis_close(redis);
}

static void test_a_late_answer_that_nobody_awaits_is_no_silence(void **state)
{
    (void)state;
    snk_redis_config config = plain();
    config.command_timeout_ns = 400 * SNK_NS_PER_MS;
    snk_redis *redis = redis_open(&config);
    redis_do(redis, "PING");
    snk_redis_call call;
    snk_redis_call_init(&call);
    call.timeout_ns = 20 * SNK_NS_PER_MS;
    redis_format(&call, "DEBUG SLEEP 0.1");
    snk_redis_drive(redis, &(snk_redis_call *){ &call }, 1);
    assert_int_equal(call.outcome, SNK_REDIS_UNCERTAIN);
    snk_redis_call_deinit(&call);
    /* Until after the time at which a silent server is given up: the answer has long been there. */
    sleep_ms(700);
    snk_redis_server known;
    snk_redis_describe(redis, &known);
    assert_true(known.connected);
    assert_int_equal(known.failures, 0);
    assert_int_equal(known.in_flight, 0);
    snk_redis_close(redis);
}

static void test_a_call_that_blocks_does_not_hold_up_the_shared_lane(void **state)
{
    (void)state;
    snk_redis *redis = open_plain();
    redis_do(redis, "PING");
    snk_redis_call waiting;
    _Atomic int done = 0;
    snk_redis_call_init(&waiting);
    waiting.lane = SNK_REDIS_BLOCKING;
    waiting.timeout_ns = 5 * SNK_NS_PER_S;
    waiting.done = count_down;
    waiting.context = &done;
    redis_format(&waiting, "WAIT 1 600");
    snk_redis_submit(redis, &(snk_redis_call *){ &waiting }, 1);
    sleep_ms(100);
    int64_t start = snk_now_ns();
    redis_do(redis, "PING");
    assert_true(snk_now_ns() - start < 300 * SNK_NS_PER_MS);
    assert_int_equal(done, 0);
    assert_true(wait_for_number(&done, 1));
    assert_int_equal(waiting.reply->integer, 0);
    snk_redis_call_deinit(&waiting);
    snk_redis_close(redis);
}

static void test_a_blocking_call_may_outlast_the_command_timeout(void **state)
{
    (void)state;
    snk_redis_config config = plain();
    config.command_timeout_ns = 100 * SNK_NS_PER_MS;
    snk_redis *redis = redis_open(&config);
    snk_redis_call waiting;
    snk_redis_call_init(&waiting);
    waiting.lane = SNK_REDIS_BLOCKING;
    waiting.timeout_ns = 5 * SNK_NS_PER_S;
    redis_format(&waiting, "WAIT 1 400");
    snk_redis_drive(redis, &(snk_redis_call *){ &waiting }, 1);
    assert_int_equal(waiting.outcome, SNK_REDIS_REPLY);
    snk_redis_call_deinit(&waiting);
    snk_redis_close(redis);
}

static void test_a_connection_killed_while_idle_costs_nothing(void **state)
{
    (void)state;
    snk_redis *redis = open_plain();
    snk_redis *killer = open_plain();
    redis_do(redis, "SET n 0");
    for (int i = 1; i <= 3; i++) {
        redis_do(killer, "CLIENT KILL SKIPME yes TYPE normal");
        sleep_ms(20);
        assert_int_equal(redis_integer(redis, "INCR n"), i);
    }
    snk_redis_close(redis);
    snk_redis_close(killer);
}

static void test_after_a_restart_the_run_is_another(void **state)
{
    (void)state;
    snk_redis *redis = open_plain();
    snk_redis_call call;
    assert_int_equal(redis_ask(redis, &call, "PING"), SNK_REDIS_REPLY);
    snk_redis_run run = call.run;
    snk_redis_call_deinit(&call);
    assert_true(redis_server_restart(&server));
    sleep_ms(20);
    assert_int_equal(redis_ask(redis, &call, "PING"), SNK_REDIS_REPLY);
    assert_true(call.run != 0 && call.run != run);
    snk_redis_call_deinit(&call);
    snk_redis_close(redis);
}

static void test_calls_wait_for_a_server_that_comes_back(void **state)
{
    (void)state;
    snk_redis *redis = open_plain();
    redis_do(redis, "PING");
    redis_server_kill(&server);
    sleep_ms(20);
    snk_redis_call call;
    assert_int_equal(redis_ask(redis, &call, "PING"), SNK_REDIS_NOT_SENT);
    snk_redis_call_deinit(&call);
    assert_true(redis_server_restart(&server));
    /* The next attempt is at most a backoff away. */
    assert_int_equal(redis_ask(redis, &call, "PING"), SNK_REDIS_REPLY);
    snk_redis_call_deinit(&call);
    snk_redis_close(redis);
}

static void test_a_reply_that_is_too_large_ends_the_connection(void **state)
{
    (void)state;
    snk_redis *redis = open_plain();
    redis_do(redis, "SETRANGE big 17000000 x");
    snk_redis_call call;
    assert_int_equal(redis_ask(redis, &call, "GET big"), SNK_REDIS_UNCERTAIN);
    assert_non_null(strstr(call.error.message, "too long"));
    snk_redis_call_deinit(&call);
    redis_do(redis, "DEL big");
    snk_redis_close(redis);
}

static void test_a_command_that_is_too_long_is_refused(void **state)
{
    (void)state;
    snk_redis_call call;
    snk_redis_call_init(&call);
    const char *words[] = { "ECHO", "x" };
    const size_t lengths[] = { 4, (size_t)SNK_REDIS_COMMAND_BYTES_MAX + 1 };
    assert_int_equal(snk_redis_call_format(&call, 2, words, lengths, NULL), SNECK_LIMIT);
    /* Its result says so too, also to somebody who sees only that. */
    assert_int_equal(call.outcome, SNK_REDIS_NOT_SENT);
    assert_int_equal(call.error.status, SNECK_LIMIT);
    snk_redis_call_deinit(&call);
}

static void test_large_commands_and_replies_pass_a_socket_that_clogs(void **state)
{
    (void)state;
    enum {
        COUNT = 16,
        SIZE = 4 * 1024 * 1024
    };
    snk_redis *redis = open_plain();
    static snk_redis_call calls[COUNT];
    static snk_redis_call *pointers[COUNT];
    char *text = malloc(SIZE);
    assert_non_null(text);
    memset(text, 'x', SIZE);
    for (size_t i = 0; i < COUNT; i++) {
        snk_redis_call_init(&calls[i]);
        const char *words[] = { "ECHO", text };
        const size_t lengths[] = { 4, SIZE };
        calls[i].timeout_ns = 20 * SNK_NS_PER_S;
        assert_int_equal(snk_redis_call_format(&calls[i], 2, words, lengths, NULL), SNECK_OK);
        pointers[i] = &calls[i];
    }
    snk_redis_drive(redis, pointers, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(calls[i].outcome, SNK_REDIS_REPLY);
        assert_int_equal(calls[i].reply->len, SIZE);
        snk_redis_call_deinit(&calls[i]);
    }
    free(text);
    snk_redis_close(redis);
}

static void test_closing_ends_calls_in_flight(void **state)
{
    (void)state;
    snk_redis *redis = open_plain();
    redis_do(redis, "PING");
    _Atomic int done = 0;
    snk_redis_call calls[3];
    for (size_t i = 0; i < 3; i++) {
        snk_redis_call_init(&calls[i]);
        calls[i].done = count_down;
        calls[i].context = &done;
        redis_format(&calls[i], i == 0 ? "DEBUG SLEEP 0.4" : "PING");
    }
    snk_redis_submit(redis, (snk_redis_call *[]){ &calls[0], &calls[1] }, 2);
    snk_redis_begin_close(redis);
    assert_true(wait_for_number(&done, 2));
    snk_redis_submit(redis, (snk_redis_call *[]){ &calls[2] }, 1);
    assert_int_equal(done, 3);
    assert_int_equal(calls[0].outcome, SNK_REDIS_UNCERTAIN);
    assert_int_equal(calls[1].outcome, SNK_REDIS_UNCERTAIN);
    assert_int_equal(calls[2].outcome, SNK_REDIS_NOT_SENT);
    for (size_t i = 0; i < 3; i++)
        snk_redis_call_deinit(&calls[i]);
    snk_redis_close(redis);
}

static void test_a_child_of_fork_abandons_without_ending_the_parents_connection(void **state)
{
    (void)state;
    snk_redis *redis = open_plain();
    redis_do(redis, "SET n 0");
    pid_t child = fork();
    if (child == 0) {
        snk_redis_abandon(redis);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(redis_integer(redis, "INCR n"), 1);
    snk_redis_server known;
    snk_redis_describe(redis, &known);
    assert_int_equal(known.connects, 1);
    snk_redis_close(redis);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_call_is_answered_with_times_and_the_run_of_the_server),
        cmocka_unit_test(test_arguments_may_contain_any_byte),
        cmocka_unit_test(test_many_calls_are_driven_in_order_on_one_connection),
        cmocka_unit_test(test_a_submitted_call_is_done_without_a_driver),
        cmocka_unit_test(test_a_driven_call_is_called_back_before_drive_returns),
        cmocka_unit_test(test_a_server_that_is_not_there_means_not_sent),
        cmocka_unit_test(test_a_name_that_does_not_exist_means_not_sent),
        cmocka_unit_test(test_a_server_that_sleeps_means_uncertain_and_a_new_connection),
        cmocka_unit_test(test_a_short_timeout_gives_up_one_call_and_keeps_the_connection),
        cmocka_unit_test(test_a_late_answer_that_nobody_awaits_is_no_silence),
        cmocka_unit_test(test_a_call_that_blocks_does_not_hold_up_the_shared_lane),
        cmocka_unit_test(test_a_blocking_call_may_outlast_the_command_timeout),
        cmocka_unit_test(test_a_connection_killed_while_idle_costs_nothing),
        cmocka_unit_test(test_after_a_restart_the_run_is_another),
        cmocka_unit_test(test_calls_wait_for_a_server_that_comes_back),
        cmocka_unit_test(test_a_reply_that_is_too_large_ends_the_connection),
        cmocka_unit_test(test_a_command_that_is_too_long_is_refused),
        cmocka_unit_test(test_large_commands_and_replies_pass_a_socket_that_clogs),
        cmocka_unit_test(test_closing_ends_calls_in_flight),
        cmocka_unit_test(test_a_child_of_fork_abandons_without_ending_the_parents_connection),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
