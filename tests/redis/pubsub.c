/* Subscriptions: messages, confirmations, and that both come back after a cut. */
#include "test.h"

#include <assert.h>
#include <pthread.h>

#include "redis_ask.h"
#include "redis_server.h"

static redis_server server;

/* What the listener has heard. */
typedef struct listener_ear {
    pthread_mutex_t mutex;
    _Atomic int messages;
    _Atomic int subscribed;
    _Atomic int deafened;
    _Atomic int connected;
    _Atomic int again;
    char channel[64]; /* under mutex: of the last message */
    char payload[64];
    size_t payload_length;
    snk_redis_run run;
} listener_ear;

static void hear_message(void *context, const snk_redis_message *message)
{
    listener_ear *ear = context;
    pthread_mutex_lock(&ear->mutex);
    assert(message->channel_length < sizeof ear->channel && message->payload_length < sizeof ear->payload);
    memset(ear->channel, 0, sizeof ear->channel);
    memcpy(ear->channel, message->channel, message->channel_length);
    memcpy(ear->payload, message->payload, message->payload_length);
    ear->payload_length = message->payload_length;
    ear->run = message->run;
    pthread_mutex_unlock(&ear->mutex);
    ear->messages++;
}

static void hear_subscribed(void *context, const char *channel, size_t length, snk_redis_run run)
{
    (void)channel;
    (void)length;
    (void)run;
    ((listener_ear *)context)->subscribed++;
}

static void hear_deafened(void *context)
{
    ((listener_ear *)context)->deafened++;
}

static void hear_connected(void *context, snk_redis_lane lane, snk_redis_run run, bool again)
{
    (void)lane;
    (void)run;
    ((listener_ear *)context)->connected++;
    ((listener_ear *)context)->again += again;
}

static snk_redis *open_with(listener_ear *ear)
{
    *ear = (listener_ear){ 0 };
    pthread_mutex_init(&ear->mutex, NULL);
    snk_redis_config config = { .host = "127.0.0.1",
                                .port = server.port,
                                .command_timeout_ns = SNK_NS_PER_S,
                                .listener = { .message = hear_message,
                                              .subscribed = hear_subscribed,
                                              .deafened = hear_deafened,
                                              .connected = hear_connected,
                                              .context = ear } };
    return redis_open(&config);
}

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

static void subscribe(snk_redis *redis, const char *channel)
{
    sneck_error error;
    assert_int_equal(snk_redis_subscribe(redis, channel, strlen(channel), &error), SNECK_OK);
}

static bool await(snk_redis *redis, const char *channel)
{
    sneck_error error;
    return snk_redis_await_subscribed(redis, channel, strlen(channel), snk_now_ns() + 5 * SNK_NS_PER_S, &error);
}

static void test_a_message_arrives_with_its_bytes_and_run(void **state)
{
    (void)state;
    listener_ear ear;
    snk_redis *redis = open_with(&ear);
    subscribe(redis, "one");
    assert_true(await(redis, "one"));
    snk_redis_run run;
    assert_true(snk_redis_is_subscribed(redis, "one", 3, &run));
    snk_redis_call call;
    snk_redis_call_init(&call);
    const char *words[] = { "PUBLISH", "one", "a\0b" };
    const size_t lengths[] = { 7, 3, 3 };
    assert_int_equal(snk_redis_call_format(&call, 3, words, lengths, NULL), SNECK_OK);
    snk_redis_drive(redis, &(snk_redis_call *){ &call }, 1);
    assert_int_equal(call.reply->integer, 1);
    assert_true(wait_for_number(&ear.messages, 1));
    pthread_mutex_lock(&ear.mutex);
    assert_string_equal(ear.channel, "one");
    assert_int_equal(ear.payload_length, 3);
    assert_memory_equal(ear.payload, "a\0b", 3);
    assert_true(ear.run != 0 && ear.run == run && ear.run == call.run);
    pthread_mutex_unlock(&ear.mutex);
    snk_redis_call_deinit(&call);
    snk_redis_close(redis);
}

static void test_subscriptions_count(void **state)
{
    (void)state;
    listener_ear ear;
    snk_redis *redis = open_with(&ear);
    subscribe(redis, "two");
    subscribe(redis, "two");
    assert_true(await(redis, "two"));
    snk_redis_unsubscribe(redis, "two", 3);
    assert_true(snk_redis_is_subscribed(redis, "two", 3, NULL));
    sleep_ms(50);
    assert_int_equal(redis_integer(redis, "PUBLISH two x"), 1);
    snk_redis_unsubscribe(redis, "two", 3);
    assert_false(snk_redis_is_subscribed(redis, "two", 3, NULL));
    for (int i = 0; i < 1000 && redis_integer(redis, "PUBLISH two x") != 0; i++)
        sleep_ms(2);
    assert_int_equal(redis_integer(redis, "PUBLISH two x"), 0);
    sneck_error error;
    assert_false(snk_redis_await_subscribed(redis, "two", 3, snk_now_ns() + SNK_NS_PER_S, &error));
    assert_int_equal(error.status, SNECK_INVALID);
    snk_redis_close(redis);
}

/* Leaving and joining again in a hurry: confirmed means that the server would deliver. */
static void test_a_confirmation_is_never_that_of_an_earlier_command(void **state)
{
    (void)state;
    listener_ear ear;
    snk_redis *redis = open_with(&ear);
    subscribe(redis, "keep");
    assert_true(await(redis, "keep"));
    for (unsigned i = 0; i < test_scaled(2000); i++) {
        subscribe(redis, "hurry");
        if (i % 3 == 0) {
            snk_redis_unsubscribe(redis, "hurry", 5);
            subscribe(redis, "hurry");
        }
        assert_true(await(redis, "hurry"));
        assert_int_equal(redis_integer(redis, "PUBLISH hurry x"), 1);
        snk_redis_unsubscribe(redis, "hurry", 5);
    }
    snk_redis_close(redis);
}

static void test_after_a_kill_the_channels_are_subscribed_again(void **state)
{
    (void)state;
    listener_ear ear;
    snk_redis *redis = open_with(&ear);
    subscribe(redis, "three");
    subscribe(redis, "four");
    assert_true(await(redis, "three") && await(redis, "four"));
    assert_true(wait_for_number(&ear.subscribed, 2));
    redis_do(redis, "CLIENT KILL TYPE pubsub");
    assert_true(wait_for_number(&ear.deafened, 1));
    assert_true(wait_for_number(&ear.subscribed, 4));
    assert_int_equal(redis_integer(redis, "PUBLISH three x"), 1);
    assert_int_equal(redis_integer(redis, "PUBLISH four x"), 1);
    assert_true(wait_for_number(&ear.messages, 2));
    snk_redis_close(redis);
}

static void test_after_a_restart_subscriptions_come_back_with_another_run(void **state)
{
    (void)state;
    listener_ear ear;
    snk_redis *redis = open_with(&ear);
    subscribe(redis, "five");
    assert_true(await(redis, "five"));
    assert_true(wait_for_number(&ear.subscribed, 1));
    snk_redis_run before;
    snk_redis_run after;
    assert_true(snk_redis_is_subscribed(redis, "five", 4, &before));
    redis_do(redis, "PING");
    redis_server_kill(&server);
    assert_true(wait_for_number(&ear.deafened, 1));
    assert_false(snk_redis_is_subscribed(redis, "five", 4, NULL));
    sleep_ms(100);
    assert_true(redis_server_restart(&server));
    assert_true(wait_for_number(&ear.subscribed, 2));
    assert_true(snk_redis_is_subscribed(redis, "five", 4, &after));
    assert_true(before != 0 && after != 0 && before != after);
    redis_do(redis, "PING");
    assert_true(wait_for_number(&ear.again, 1));
    snk_redis_close(redis);
}

static void test_waiting_for_a_server_that_is_not_there_ends_in_time(void **state)
{
    (void)state;
    snk_redis_config config = { .host = "127.0.0.1", .port = redis_server_free_port() };
    snk_redis *redis = redis_open(&config);
    subscribe(redis, "x");
    sneck_error error;
    int64_t until = snk_now_ns() + 100 * SNK_NS_PER_MS;
    assert_false(snk_redis_await_subscribed(redis, "x", 1, until, &error));
    assert_true(snk_now_ns() >= until);
    assert_int_equal(error.status, SNECK_UNAVAILABLE);
    snk_redis_close(redis);
}

static void test_a_channel_that_the_access_rules_forbid_is_refused_at_once(void **state)
{
    (void)state;
    listener_ear ear;
    snk_redis *admin = open_with(&ear);
    redis_do(admin, "ACL SETUSER listener on >secret +@all ~* resetchannels &allowed");
    snk_redis_config config = { .host = "127.0.0.1", .port = server.port, .user = "listener", .password = "secret" };
    snk_redis *redis = redis_open(&config);
    subscribe(redis, "forbidden");
    subscribe(redis, "allowed");
    sneck_error error;
    int64_t start = snk_now_ns();
    assert_false(snk_redis_await_subscribed(redis, "forbidden", 9, start + 5 * SNK_NS_PER_S, &error));
    assert_true(snk_now_ns() - start < 4 * SNK_NS_PER_S);
    assert_int_equal(error.status, SNECK_DENIED);
    assert_true(await(redis, "allowed"));
    snk_redis_close(redis);
    snk_redis_close(admin);
}

static void test_thousands_of_channels_are_subscribed_again(void **state)
{
    (void)state;
    enum {
        COUNT = 3000
    };
    listener_ear ear;
    snk_redis *redis = open_with(&ear);
    char name[32];
    for (int i = 0; i < COUNT; i++) {
        snprintf(name, sizeof name, "many-%d", i);
        subscribe(redis, name);
    }
    assert_true(wait_for_number(&ear.subscribed, COUNT));
    redis_do(redis, "CLIENT KILL TYPE pubsub");
    assert_true(wait_for_number(&ear.subscribed, 2 * COUNT));
    snk_redis_close(redis);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_message_arrives_with_its_bytes_and_run),
        cmocka_unit_test(test_subscriptions_count),
        cmocka_unit_test(test_a_confirmation_is_never_that_of_an_earlier_command),
        cmocka_unit_test(test_after_a_kill_the_channels_are_subscribed_again),
        cmocka_unit_test(test_after_a_restart_subscriptions_come_back_with_another_run),
        cmocka_unit_test(test_waiting_for_a_server_that_is_not_there_ends_in_time),
        cmocka_unit_test(test_a_channel_that_the_access_rules_forbid_is_refused_at_once),
        cmocka_unit_test(test_thousands_of_channels_are_subscribed_again),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
