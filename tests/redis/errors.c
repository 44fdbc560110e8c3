/* Error replies of a real server: each is provoked, classified, and says what to do. */
#include "test.h"

#include <sys/stat.h>

#include "redis_ask.h"
#include "redis_server.h"

static redis_server server;

static int set_up(void **state)
{
    (void)state;
    static const char *const options[] = {
        "--busy-reply-threshold", "50", "--maxclients", "64", "--enable-protected-configs", "yes", NULL
    };
    return redis_server_start(&server, options) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    redis_server_stop(&server);
    return 0;
}

static snk_redis *open_as(const char *user, const char *password)
{
    snk_redis_config config = { .host = "127.0.0.1", .port = server.port, .user = user, .password = password };
    return redis_open(&config);
}

typedef struct expectation {
    snk_redis_error_kind kind;
    sneck_status status;
    const char *advice; /* part of the message */
} expectation;

static void expect_error(const snk_redis_call *call, expectation expected)
{
    if (call->outcome != SNK_REDIS_REPLY)
        fail_msg("%s", call->error.message);
    snk_redis_error_kind kind = snk_redis_error_of(call->reply);
    if (kind != expected.kind)
        fail_msg("kind %d, not %d: %s", (int)kind, (int)expected.kind, call->reply->str);
    assert_int_equal(snk_redis_error_is_harmless(kind), kind != SNK_REDIS_SCRIPT_DENIED);
    sneck_error error;
    assert_int_equal(snk_redis_error_explain(call->reply, "redis here", &error), expected.status);
    assert_int_equal(error.status, expected.status);
    if (strstr(error.message, expected.advice) == NULL || strstr(error.message, "redis here") == NULL)
        fail_msg("'%s' is not in: %s", expected.advice, error.message);
}

static void ask_and_expect(snk_redis *redis, const char *line, expectation expected)
{
    snk_redis_call call;
    redis_ask(redis, &call, line);
    expect_error(&call, expected);
    snk_redis_call_deinit(&call);
}

/* Runs a script with one key. */
static void run_script(snk_redis *redis, snk_redis_call *call, const char *script)
{
    const char *words[] = { "EVAL", script, "1", "k" };
    snk_redis_call_init(call);
    assert_int_equal(snk_redis_call_format(call, 4, words, NULL, NULL), SNECK_OK);
    snk_redis_drive(redis, &(snk_redis_call *){ call }, 1);
}

static void script_and_expect(snk_redis *redis, const char *script, expectation expected)
{
    snk_redis_call call;
    run_script(redis, &call, script);
    expect_error(&call, expected);
    snk_redis_call_deinit(&call);
}

static const char writing[] = "return redis.call('hset', KEYS[1], 'f', 1)";

static void test_noscript(void **state)
{
    (void)state;
    snk_redis *redis = open_as(NULL, NULL);
    ask_and_expect(redis, "EVALSHA ffffffffffffffffffffffffffffffffffffffff 0",
                   (expectation){ SNK_REDIS_NOSCRIPT, SNECK_UNAVAILABLE, "not loaded" });
    snk_redis_close(redis);
}

static void test_wrongtype_of_a_command_and_in_a_script(void **state)
{
    (void)state;
    snk_redis *redis = open_as(NULL, NULL);
    expectation expected = { SNK_REDIS_WRONGTYPE, SNECK_INVALID, "other data" };
    redis_do(redis, "SET k text");
    ask_and_expect(redis, "HSET k f 1", expected);
    script_and_expect(redis, writing, expected);
    redis_do(redis, "DEL k");
    snk_redis_close(redis);
}

static void test_readonly_on_a_replica(void **state)
{
    (void)state;
    redis_server replica;
    char port[16];
    snprintf(port, sizeof port, "%d", server.port);
    const char *options[] = { "--replicaof", "127.0.0.1", port, NULL };
    assert_true(redis_server_start(&replica, options));
    snk_redis_config config = { .host = "127.0.0.1", .port = replica.port };
    snk_redis *redis = redis_open(&config);
    expectation expected = { SNK_REDIS_READONLY, SNECK_UNAVAILABLE, "master" };
    ask_and_expect(redis, "SET k v", expected);
    script_and_expect(redis, writing, expected);
    snk_redis_close(redis);
    redis_server_stop(&replica);
}

static void test_masterdown_on_a_replica_without_master(void **state)
{
    (void)state;
    redis_server replica;
    char port[16];
    snprintf(port, sizeof port, "%d", redis_server_free_port());
    const char *options[] = { "--replicaof", "127.0.0.1", port, "--replica-serve-stale-data", "no", NULL };
    assert_true(redis_server_start(&replica, options));
    snk_redis_config config = { .host = "127.0.0.1", .port = replica.port };
    snk_redis *redis = redis_open(&config);
    ask_and_expect(redis, "GET k", (expectation){ SNK_REDIS_MASTERDOWN, SNECK_UNAVAILABLE, "lost its master" });
    snk_redis_close(redis);
    redis_server_stop(&replica);
}

static void test_noreplicas(void **state)
{
    (void)state;
    snk_redis *redis = open_as(NULL, NULL);
    redis_do(redis, "CONFIG SET min-replicas-to-write 1");
    expectation expected = { SNK_REDIS_NOREPLICAS, SNECK_UNAVAILABLE, "replicas" };
    ask_and_expect(redis, "SET k v", expected);
    script_and_expect(redis, writing, expected);
    redis_do(redis, "CONFIG SET min-replicas-to-write 0");
    snk_redis_close(redis);
}

static void test_oom_of_a_command_and_in_a_script(void **state)
{
    (void)state;
    snk_redis *redis = open_as(NULL, NULL);
    redis_do(redis, "CONFIG SET maxmemory 1");
    expectation expected = { SNK_REDIS_OOM, SNECK_UNAVAILABLE, "maxmemory" };
    ask_and_expect(redis, "SET k v", expected);
    script_and_expect(redis, writing, expected);
    redis_do(redis, "CONFIG SET maxmemory 0");
    snk_redis_close(redis);
}

static void test_misconf_when_the_server_cannot_save(void **state)
{
    (void)state;
    snk_redis *redis = open_as(NULL, NULL);
    snk_redis_call call;
    snk_redis_call_init(&call);
    const char *words[] = { "CONFIG", "SET", "save", "3600 1" };
    assert_int_equal(snk_redis_call_format(&call, 4, words, NULL, NULL), SNECK_OK);
    snk_redis_drive(redis, &(snk_redis_call *){ &call }, 1);
    snk_redis_call_deinit(&call);
    /* A directory in the place of the file makes saving fail, for root too. */
    char path[128];
    snprintf(path, sizeof path, "%s/blocked", server.directory);
    assert_int_equal(mkdir(path, 0700), 0);
    redis_do(redis, "CONFIG SET dbfilename blocked");
    redis_ask(redis, &call, "BGSAVE");
    snk_redis_call_deinit(&call);
    snk_redis_error_kind kind = SNK_REDIS_NO_ERROR;
    for (int i = 0; i < 1000 && kind == SNK_REDIS_NO_ERROR; i++) {
        sleep_ms(5);
        redis_ask(redis, &call, "SET k v");
        kind = snk_redis_error_of(call.reply);
        if (kind == SNK_REDIS_NO_ERROR)
            snk_redis_call_deinit(&call);
    }
    expectation expected = { SNK_REDIS_MISCONF, SNECK_UNAVAILABLE, "cannot save" };
    expect_error(&call, expected);
    snk_redis_call_deinit(&call);
    script_and_expect(redis, writing, expected);
    redis_do(redis, "CONFIG SET stop-writes-on-bgsave-error no");
    snk_redis_close(redis);
}

static void note_done(snk_redis_call *call)
{
    atomic_fetch_add((_Atomic int *)call->context, 1);
}

static void test_busy_while_a_script_runs_and_killed_after_it(void **state)
{
    (void)state;
    snk_redis *looping = open_as(NULL, NULL);
    snk_redis *redis = open_as(NULL, NULL);
    redis_do(redis, "PING");
    snk_redis_call loop;
    _Atomic int done = 0;
    snk_redis_call_init(&loop);
    loop.done = note_done;
    loop.context = &done;
    loop.timeout_ns = 10 * SNK_NS_PER_S;
    const char *words[] = { "EVAL", "while true do end", "0" };
    assert_int_equal(snk_redis_call_format(&loop, 3, words, NULL, NULL), SNECK_OK);
    snk_redis_submit(looping, &(snk_redis_call *){ &loop }, 1);
    sleep_ms(200);
    ask_and_expect(redis, "GET k", (expectation){ SNK_REDIS_BUSY_SCRIPT, SNECK_UNAVAILABLE, "SCRIPT KILL" });
    /* A new connection is made all the same; it only does not learn the run. */
    snk_redis *late = open_as(NULL, NULL);
    ask_and_expect(late, "GET k", (expectation){ SNK_REDIS_BUSY_SCRIPT, SNECK_UNAVAILABLE, "SCRIPT KILL" });
    snk_redis_close(late);
    redis_do(redis, "SCRIPT KILL");
    assert_true(wait_for_number(&done, 1));
    expect_error(&loop, (expectation){ SNK_REDIS_KILLED, SNECK_UNAVAILABLE, "killed" });
    snk_redis_call_deinit(&loop);
    snk_redis_close(redis);
    snk_redis_close(looping);
}

static void test_loading(void **state)
{
    (void)state;
    snk_redis *redis = open_as(NULL, NULL);
    redis_do(redis, "CONFIG SET stop-writes-on-bgsave-error no");
    redis_do(redis, "CONFIG SET dbfilename loading.rdb");
    redis_do(redis, "DEBUG POPULATE 2000 x 10");
    redis_do(redis, "SAVE");
    redis_do(redis, "CONFIG SET key-load-delay 3000");
    snk_redis *loader = open_as(NULL, NULL);
    snk_redis_call reload;
    _Atomic int done = 0;
    snk_redis_call_init(&reload);
    reload.done = note_done;
    reload.context = &done;
    reload.timeout_ns = 60 * SNK_NS_PER_S;
    redis_format(&reload, "DEBUG RELOAD NOSAVE");
    redis_do(redis, "CONFIG SET loading-process-events-interval-bytes 1024");
    snk_redis_submit(loader, &(snk_redis_call *){ &reload }, 1);
    sleep_ms(200);
    expectation expected = { SNK_REDIS_LOADING, SNECK_UNAVAILABLE, "reading its data" };
    ask_and_expect(redis, "GET k", expected);
    script_and_expect(redis, writing, expected);
    redis_do(redis, "CONFIG SET key-load-delay 0");
    assert_true(wait_for_number(&done, 1));
    snk_redis_call_deinit(&reload);
    snk_redis_close(loader);
    snk_redis_close(redis);
}

/* ---- Errors of the greeting: nothing was sent ---- */

static void expect_not_sent(snk_redis *redis, sneck_status status, const char *advice)
{
    snk_redis_call call;
    assert_int_equal(redis_ask(redis, &call, "PING"), SNK_REDIS_NOT_SENT);
    assert_int_equal(call.error.status, status);
    if (strstr(call.error.message, advice) == NULL)
        fail_msg("'%s' is not in: %s", advice, call.error.message);
    assert_null(strstr(call.error.message, "secret"));
    snk_redis_call_deinit(&call);
}

static void test_noauth_wrongpass_and_the_right_password(void **state)
{
    (void)state;
    snk_redis *admin = open_as(NULL, NULL);
    redis_do(admin, "CONFIG SET requirepass secret");
    snk_redis *redis = open_as(NULL, NULL);
    expect_not_sent(redis, SNECK_DENIED, "a password is needed");
    snk_redis_close(redis);
    redis = open_as(NULL, "wrong-secret");
    expect_not_sent(redis, SNECK_DENIED, "wrong user or password");
    snk_redis_close(redis);
    redis = open_as("nobody", "wrong-secret");
    expect_not_sent(redis, SNECK_DENIED, "wrong user or password");
    snk_redis_close(redis);
    redis = open_as(NULL, "secret");
    redis_do(redis, "PING");
    snk_redis_close(redis);
    redis_do(admin, "CONFIG SET requirepass ");
    snk_redis_close(admin);
    redis = open_as(NULL, "secret");
    expect_not_sent(redis, SNECK_DENIED, "has no password");
    snk_redis_close(redis);
}

static void test_noperm_of_a_command_a_key_and_in_a_script(void **state)
{
    (void)state;
    snk_redis *admin = open_as(NULL, NULL);
    redis_do(admin, "ACL SETUSER small on >secret +eval +get +set +ping ~mine:* &*");
    /* This user may not even ask for the run of the server: it is not known, and everything else works. */
    snk_redis *redis = open_as("small", "secret");
    redis_do(redis, "SET mine:k v");
    snk_redis_server known;
    snk_redis_describe(redis, &known);
    assert_true(known.connected && known.run == 0);
    expectation expected = { SNK_REDIS_NOPERM, SNECK_DENIED, "access rules" };
    ask_and_expect(redis, "HSET mine:k f 1", expected);
    ask_and_expect(redis, "SET theirs:k v", expected);
    script_and_expect(redis, "return redis.call('get', 'mine:k')", expected); /* its key is not ours */
    expected.kind = SNK_REDIS_SCRIPT_DENIED;
    snk_redis_call call;
    snk_redis_call_init(&call);
    const char *words[] = { "EVAL", writing, "1", "mine:h" };
    assert_int_equal(snk_redis_call_format(&call, 4, words, NULL, NULL), SNECK_OK);
    snk_redis_drive(redis, &(snk_redis_call *){ &call }, 1);
    expect_error(&call, expected);
    snk_redis_call_deinit(&call);
    snk_redis_close(redis);
    snk_redis_close(admin);
}

static void test_max_clients(void **state)
{
    (void)state;
    snk_redis *admin = open_as(NULL, NULL);
    redis_do(admin, "CONFIG SET maxclients 1");
    snk_redis *redis = open_as(NULL, NULL);
    expect_not_sent(redis, SNECK_UNAVAILABLE, "maxclients");
    redis_do(admin, "CONFIG SET maxclients 64");
    redis_do(redis, "PING");
    snk_redis_close(redis);
    snk_redis_close(admin);
}

static void test_database_and_client_name(void **state)
{
    (void)state;
    snk_redis_config config = { .unix_path = server.socket, .database = 3, .client_name = "sneck-test" };
    snk_redis *redis = redis_open(&config);
    snk_redis_call call;
    redis_ask(redis, &call, "CLIENT INFO");
    assert_non_null(strstr(call.reply->str, "name=sneck-test"));
    assert_non_null(strstr(call.reply->str, "db=3"));
    snk_redis_call_deinit(&call);
    snk_redis_close(redis);
    config.database = 999;
    redis = redis_open(&config);
    expect_not_sent(redis, SNECK_INVALID, "no database of that number");
    snk_redis_close(redis);
}

static void test_ipv6(void **state)
{
    (void)state;
    snk_redis_config config = { .host = "::1", .port = server.port };
    snk_redis *redis = redis_open(&config);
    char expected[64];
    snprintf(expected, sizeof expected, "redis [::1]:%d", server.port);
    assert_string_equal(snk_redis_where(redis), expected);
    snk_redis_call call;
    snk_redis_outcome outcome = redis_ask(redis, &call, "PING");
    snk_redis_call_deinit(&call);
    snk_redis_close(redis);
    if (outcome != SNK_REDIS_REPLY)
        test_skip("no IPv6 here");
}

static void test_wrong_configurations_are_refused_before_any_io(void **state)
{
    (void)state;
    const snk_redis_config wrong[] = {
        { 0 },
        { .host = "a", .unix_path = "/b" },
        { .host = "a", .port = 70000 },
        { .host = "a", .database = -1 },
        { .host = "a", .client_name = "two words" },
        { .host = "a", .command_timeout_ns = -1 },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        snk_redis *redis;
        sneck_error error;
        assert_int_equal(snk_redis_open(&wrong[i], &redis, &error), SNECK_INVALID);
        assert_null(redis);
        assert_true(error.message[0] != '\0');
    }
    snk_redis *redis;
    assert_int_equal(snk_redis_open(&(snk_redis_config){ .host = "a", .user = "u" }, &redis, NULL), SNECK_DENIED);
}

/* ---- Texts that this server cannot be made to say here ---- */

static void test_texts_of_clusters_and_of_older_servers(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        snk_redis_error_kind kind;
    } rows[] = {
        { "MOVED 3999 127.0.0.1:6381", SNK_REDIS_MOVED },
        { "ASK 3999 127.0.0.1:6381", SNK_REDIS_ASK },
        { "TRYAGAIN Multiple keys request during rehashing of slot", SNK_REDIS_TRYAGAIN },
        { "CLUSTERDOWN The cluster is down", SNK_REDIS_CLUSTERDOWN },
        { "CROSSSLOT Keys in request don't hash to the same slot", SNK_REDIS_CROSSSLOT },
        { "ERR invalid password", SNK_REDIS_WRONGPASS },
        { "DENIED Redis is running in protected mode because ...", SNK_REDIS_PROTECTED },
        { "ERR Error running script (call to f_0a): @user_script:1: -OOM command not allowed when used memory > "
          "'maxmemory'.",
          SNK_REDIS_OOM },
        { "ERR Error running script (call to f_0a): @user_script:1: @user_script: 1: -READONLY You can't write",
          SNK_REDIS_READONLY },
        { "ERR Error running script (call to f_0a): @user_script:1: WRONGTYPE Operation against a key holding the "
          "wrong kind of value",
          SNK_REDIS_WRONGTYPE },
        { "ERR Error running script (call to f_0a): @user_script:1: Script killed by user with SCRIPT KILL...",
          SNK_REDIS_KILLED },
        { "ERR user_script:1: Script attempted to access nonexistent global variable 'x'", SNK_REDIS_OTHER_ERROR },
        { "ERR Error running script (call to f_0a): @user_script:1: @user_script: 1: The user executing the script "
          "can't "
          "run this command or subcommand",
          SNK_REDIS_SCRIPT_DENIED },
        { "ERR ACL failure in script: User sneck has no permissions to run the 'rpush' command script: 0a, on "
          "@user_script:1.",
          SNK_REDIS_SCRIPT_DENIED },
        { "BUSYGROUP Consumer Group name already exists", SNK_REDIS_OTHER_ERROR },
        { "", SNK_REDIS_OTHER_ERROR },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[256];
        snprintf(text, sizeof text, "%s", rows[i].text);
        redisReply reply = { .type = REDIS_REPLY_ERROR, .str = text };
        if (snk_redis_error_of(&reply) != rows[i].kind)
            fail_msg("%s", text);
        sneck_error error;
        sneck_status status = snk_redis_error_explain(&reply, "redis here", &error);
        bool is_unknown = status == SNECK_UNKNOWN || rows[i].kind == SNK_REDIS_SCRIPT_DENIED;
        assert_true(is_unknown == !snk_redis_error_is_harmless(rows[i].kind));
    }
    redisReply fine = { .type = REDIS_REPLY_INTEGER };
    assert_int_equal(snk_redis_error_of(&fine), SNK_REDIS_NO_ERROR);
    assert_int_equal(snk_redis_error_explain(&fine, "redis here", NULL), SNECK_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_noscript),
        cmocka_unit_test(test_wrongtype_of_a_command_and_in_a_script),
        cmocka_unit_test(test_readonly_on_a_replica),
        cmocka_unit_test(test_masterdown_on_a_replica_without_master),
        cmocka_unit_test(test_noreplicas),
        cmocka_unit_test(test_oom_of_a_command_and_in_a_script),
        cmocka_unit_test(test_busy_while_a_script_runs_and_killed_after_it),
        cmocka_unit_test(test_noauth_wrongpass_and_the_right_password),
        cmocka_unit_test(test_noperm_of_a_command_a_key_and_in_a_script),
        cmocka_unit_test(test_max_clients),
        cmocka_unit_test(test_database_and_client_name),
        cmocka_unit_test(test_ipv6),
        cmocka_unit_test(test_wrong_configurations_are_refused_before_any_io),
        cmocka_unit_test(test_texts_of_clusters_and_of_older_servers),
        cmocka_unit_test(test_misconf_when_the_server_cannot_save),
        cmocka_unit_test(test_loading),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
