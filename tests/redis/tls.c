/* TLS: who is trusted, and that everything else works through it as well. */
#include "test.h"

#include <pthread.h>

#include "redis_ask.h"
#include "redis_server.h"
#include "tls_files.h"

static char files[64];
static redis_server server;

static int set_up(void **state)
{
    (void)state;
    if (!tls_files_make(files, "DNS:localhost,IP:127.0.0.1"))
        return -1;
    return redis_server_start_tls(&server, files, false) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    redis_server_stop(&server);
    tls_files_remove(files);
    return 0;
}

static const char *path(char buffer[128], const char *name)
{
    snprintf(buffer, 128, "%s/%s", files, name);
    return buffer;
}

/* Asks a server for an answer; returns the outcome, and the error in *error. */
static snk_redis_outcome try(const snk_redis_config *config, sneck_error *error)
{
    snk_redis *redis = redis_open(config);
    snk_redis_call call;
    snk_redis_outcome outcome = redis_ask(redis, &call, "PING");
    *error = call.error;
    if (outcome != SNK_REDIS_REPLY && strstr(error->message, snk_redis_where(redis)) == NULL)
        fail_msg("which server? %s", error->message);
    snk_redis_call_deinit(&call);
    snk_redis_close(redis);
    return outcome;
}

static void test_a_trusted_server_is_spoken_to(void **state)
{
    (void)state;
    char ca[128];
    sneck_error error;
    snk_redis_config config = { .host = "localhost",
                                .port = server.tls_port,
                                .tls = { .on = true, .ca = path(ca, "ca.crt") } };
    assert_int_equal(try(&config, &error), SNK_REDIS_REPLY);
    config.host = "127.0.0.1";
    assert_int_equal(try(&config, &error), SNK_REDIS_REPLY);
}

static void test_an_unknown_authority_is_refused(void **state)
{
    (void)state;
    char ca[128];
    sneck_error error;
    snk_redis_config config = { .host = "localhost",
                                .port = server.tls_port,
                                .tls = { .on = true, .ca = path(ca, "stranger.crt") } };
    assert_int_equal(try(&config, &error), SNK_REDIS_NOT_SENT);
    assert_int_equal(error.status, SNECK_DENIED);
    /* And so it is without a CA file: the system does not know ours. */
    config.tls.ca = NULL;
    assert_int_equal(try(&config, &error), SNK_REDIS_NOT_SENT);
    assert_int_equal(error.status, SNECK_DENIED);
}

static void test_another_hosts_certificate_is_refused(void **state)
{
    (void)state;
    char other[64];
    char ca[128];
    redis_server impostor = { 0 };
    sneck_error error;
    assert_true(tls_files_make(other, "DNS:elsewhere.example"));
    assert_true(redis_server_start_tls(&impostor, other, false));
    snprintf(ca, sizeof ca, "%s/ca.crt", other);
    snk_redis_config config = { .host = "localhost", .port = impostor.tls_port, .tls = { .on = true, .ca = ca } };
    assert_int_equal(try(&config, &error), SNK_REDIS_NOT_SENT);
    assert_int_equal(error.status, SNECK_DENIED);
    config.host = "127.0.0.1";
    assert_int_equal(try(&config, &error), SNK_REDIS_NOT_SENT);
    assert_int_equal(error.status, SNECK_DENIED);
    config.tls.verify_none = true;
    assert_int_equal(try(&config, &error), SNK_REDIS_REPLY);
    redis_server_stop(&impostor);
    tls_files_remove(other);
}

static void test_a_client_certificate_is_shown_when_wanted(void **state)
{
    (void)state;
    char ca[128];
    char cert[128];
    char key[128];
    redis_server strict = { 0 };
    sneck_error error;
    assert_true(redis_server_start_tls(&strict, files, true));
    snk_redis_config config = { .host = "localhost",
                                .port = strict.tls_port,
                                .tls = { .on = true, .ca = path(ca, "ca.crt") } };
    assert_int_equal(try(&config, &error), SNK_REDIS_NOT_SENT);
    config.tls.cert = path(cert, "client.crt");
    config.tls.key = path(key, "client.key");
    assert_int_equal(try(&config, &error), SNK_REDIS_REPLY);
    redis_server_stop(&strict);
}

static void test_files_that_cannot_be_used_are_refused_when_opening(void **state)
{
    (void)state;
    char cert[128];
    char key[128];
    snk_redis *redis;
    sneck_error error;
    snk_redis_config config = { .host = "localhost", .tls = { .on = true, .ca = "/nonexistent/ca.crt" } };
    assert_int_equal(snk_redis_open(&config, &redis, &error), SNECK_DENIED);
    assert_non_null(strstr(error.message, "/nonexistent/ca.crt"));
    config.tls.ca = NULL;
    config.tls.cert = path(cert, "client.crt");
    assert_int_equal(snk_redis_open(&config, &redis, &error), SNECK_INVALID);
    config.tls.key = path(key, "server.key"); /* another certificate's */
    assert_int_equal(snk_redis_open(&config, &redis, &error), SNECK_DENIED);
    config = (snk_redis_config){ .unix_path = "/tmp/s", .tls.on = true };
    assert_int_equal(snk_redis_open(&config, &redis, &error), SNECK_INVALID);
}

static void test_speaking_plain_to_tls_and_tls_to_plain_fails_in_time(void **state)
{
    (void)state;
    sneck_error error;
    snk_redis_config config = { .host = "localhost",
                                .port = server.port,
                                .connect_timeout_ns = 500 * SNK_NS_PER_MS,
                                .tls = { .on = true, .verify_none = true } };
    assert_int_equal(try(&config, &error), SNK_REDIS_NOT_SENT);
    config.port = server.tls_port;
    config.tls.on = false;
    assert_int_equal(try(&config, &error), SNK_REDIS_NOT_SENT);
}

typedef struct echoer {
    pthread_t thread;
    snk_redis *redis;
    int number;
    int wrong;
} echoer;

static void *echo(void *argument)
{
    echoer *self = argument;
    for (unsigned i = 0; i < test_scaled(3000); i++) {
        char line[64];
        snk_redis_call call;
        snprintf(line, sizeof line, "ECHO %d-%u", self->number, i);
        if (redis_ask(self->redis, &call, line) != SNK_REDIS_REPLY || strcmp(call.reply->str, line + 5) != 0)
            self->wrong++;
        snk_redis_call_deinit(&call);
    }
    return NULL;
}

static void test_threads_share_a_tls_connection(void **state)
{
    (void)state;
    char ca[128];
    snk_redis_config config = { .host = "localhost",
                                .port = server.tls_port,
                                .tls = { .on = true, .ca = path(ca, "ca.crt") } };
    snk_redis *redis = redis_open(&config);
    static echoer echoers[16];
    for (int i = 0; i < 16; i++) {
        echoers[i] = (echoer){ .redis = redis, .number = i };
        assert_int_equal(pthread_create(&echoers[i].thread, NULL, echo, &echoers[i]), 0);
    }
    for (int i = 0; i < 16; i++) {
        pthread_join(echoers[i].thread, NULL);
        assert_int_equal(echoers[i].wrong, 0);
    }
    snk_redis_close(redis);
}

static void note_done(snk_redis_call *call)
{
    atomic_fetch_add((_Atomic int *)call->context, 1);
}

/* Larger than a TLS record and than the receive buffer, and the connection's own thread reads it. */
static void test_large_commands_and_replies_pass_tls(void **state)
{
    (void)state;
    enum {
        COUNT = 8,
        SIZE = 3 * 1024 * 1024
    };
    char ca[128];
    snk_redis_config config = { .host = "localhost",
                                .port = server.tls_port,
                                .tls = { .on = true, .ca = path(ca, "ca.crt") } };
    snk_redis *redis = redis_open(&config);
    char *text = malloc(SIZE);
    assert_non_null(text);
    memset(text, 'x', SIZE);
    static snk_redis_call calls[COUNT];
    static snk_redis_call *pointers[COUNT];
    _Atomic int done = 0;
    for (size_t i = 0; i < COUNT; i++) {
        const char *words[] = { "ECHO", text };
        const size_t lengths[] = { 4, SIZE };
        snk_redis_call_init(&calls[i]);
        calls[i].timeout_ns = 20 * SNK_NS_PER_S;
        calls[i].done = note_done;
        calls[i].context = &done;
        assert_int_equal(snk_redis_call_format(&calls[i], 2, words, lengths, NULL), SNECK_OK);
        pointers[i] = &calls[i];
    }
    snk_redis_submit(redis, pointers, COUNT);
    assert_true(wait_for_number(&done, COUNT));
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(calls[i].outcome, SNK_REDIS_REPLY);
        assert_int_equal(calls[i].reply->len, SIZE);
        snk_redis_call_deinit(&calls[i]);
    }
    free(text);
    snk_redis_close(redis);
}

static void test_subscriptions_and_cuts_work_through_tls(void **state)
{
    (void)state;
    char ca[128];
    sneck_error error;
    snk_redis_config config = { .host = "localhost",
                                .port = server.tls_port,
                                .tls = { .on = true, .ca = path(ca, "ca.crt") } };
    snk_redis *redis = redis_open(&config);
    assert_int_equal(snk_redis_subscribe(redis, "c", 1, &error), SNECK_OK);
    assert_true(snk_redis_await_subscribed(redis, "c", 1, snk_now_ns() + 5 * SNK_NS_PER_S, &error));
    assert_int_equal(redis_integer(redis, "PUBLISH c x"), 1);
    config.tls.on = false;
    config.port = server.port;
    snk_redis *killer = redis_open(&config);
    redis_do(killer, "CLIENT KILL SKIPME yes TYPE normal");
    sleep_ms(20);
    /* The end of the session was noticed before the call was sent. */
    assert_int_equal(redis_integer(redis, "PUBLISH c x"), 1);
    snk_redis_close(killer);
    snk_redis_close(redis);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_trusted_server_is_spoken_to),
        cmocka_unit_test(test_an_unknown_authority_is_refused),
        cmocka_unit_test(test_another_hosts_certificate_is_refused),
        cmocka_unit_test(test_a_client_certificate_is_shown_when_wanted),
        cmocka_unit_test(test_files_that_cannot_be_used_are_refused_when_opening),
        cmocka_unit_test(test_speaking_plain_to_tls_and_tls_to_plain_fails_in_time),
        cmocka_unit_test(test_threads_share_a_tls_connection),
        cmocka_unit_test(test_large_commands_and_replies_pass_tls),
        cmocka_unit_test(test_subscriptions_and_cuts_work_through_tls),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
