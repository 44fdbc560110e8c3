/* What others see of our locks in Redis: keys, fields, time limits, channels, messages; and that nothing is left. */
#include "test.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "bed.h"
#include "redis_bed.h"

#define LEASE_MS 30000

/* The field of a hash that is an owner's, in static memory. */
static const char *owner_field(redis_bed *bed, const char *key)
{
    static char owner[64];
    redisReply *reply = redis_bed_command(bed, "HKEYS %s", key);
    owner[0] = '\0';
    for (size_t i = 0; i < reply->elements; i++) {
        if (reply->element[i]->str[0] != '~')
            (void)snprintf(owner, sizeof owner, "%s", reply->element[i]->str);
    }
    freeReplyObject(reply);
    return owner;
}

/* "<uuid>:<thread id>" */
static void expect_owner(const char *owner)
{
    assert_int_equal(strspn(owner, "0123456789abcdef-"), 36);
    assert_int_equal(owner[36], ':');
    assert_int_equal(strtoll(owner + 37, NULL, 10), gettid());
}

static void test_a_hash_lock_is_as_documented(void **state)
{
    redis_bed *bed = *state;
    sneck_error error;
    sneck_client *client = redis_bed_open(bed, NULL, NULL);
    sneck_lock_options options = SNECK_LOCK_OPTIONS_INIT;
    options.why = "nightly report";
    sneck_lock *lock = test_mutex(client, "stock/42", &options);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    assert_string_equal(redis_bed_keys(bed), "lock:stock/42 {lock:stock/42}:log {lock:stock/42}:token");
    assert_string_equal(redis_bed_text(bed, "TYPE lock:stock/42"), "hash");
    const char *owner = owner_field(bed, "lock:stock/42");
    expect_owner(owner);
    assert_int_equal(redis_bed_number(bed, "HGET lock:stock/42 %s", owner), 1);
    assert_int_equal(strlen(redis_bed_text(bed, "HGET lock:stock/42 ~claim")), 32);
    assert_true((uint64_t)redis_bed_number(bed, "HGET lock:stock/42 ~token") == sneck_token(lock));
    assert_int_equal(redis_bed_number(bed, "HGET lock:stock/42 ~pid"), getpid());
    assert_string_equal(redis_bed_text(bed, "HGET lock:stock/42 ~why"), "nightly report");
    assert_true(strlen(redis_bed_text(bed, "HGET lock:stock/42 ~host")) > 0);
    assert_in_range(redis_bed_number(bed, "PTTL lock:stock/42"), LEASE_MS - 10000, LEASE_MS);
    assert_in_range(redis_bed_number(bed, "PTTL {lock:stock/42}:token"), 86400000 - 60000, 86400000);
    assert_in_range(redis_bed_number(bed, "PTTL {lock:stock/42}:log"), 86400000 - 60000, 86400000);

    /* Re-entry is ours alone. */
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    assert_int_equal(redis_bed_number(bed, "HGET lock:stock/42 %s", owner), 1);
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    assert_string_equal(redis_bed_keys(bed), "{lock:stock/42}:log {lock:stock/42}:token");
    sneck_lock_free(lock);
    sneck_close(client);
    redis_bed_expect_limits(bed);
}

static void test_a_string_lock_is_as_documented(void **state)
{
    redis_bed *bed = *state;
    sneck_error error;
    sneck_client *client = redis_bed_open(bed, "layout=string&history=off", NULL);
    sneck_lock *lock = test_mutex(client, "a", NULL);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    assert_string_equal(redis_bed_keys(bed), "lock:a {lock:a}:token");
    char value[128];
    (void)snprintf(value, sizeof value, "%s", redis_bed_text(bed, "GET lock:a"));
    char *claim = strrchr(value, ':');
    assert_non_null(claim);
    assert_int_equal(strspn(claim + 1, "0123456789abcdef"), 32);
    *claim = '\0';
    expect_owner(value);
    assert_in_range(redis_bed_number(bed, "PTTL lock:a"), LEASE_MS - 10000, LEASE_MS);
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    assert_string_equal(redis_bed_keys(bed), "{lock:a}:token");
    sneck_lock_free(lock);
    sneck_close(client);
}

static void test_levels_are_counted_where_the_url_asks_for_it(void **state)
{
    redis_bed *bed = *state;
    sneck_error error;
    sneck_client *client = redis_bed_open(bed, "holds=store", NULL);
    sneck_lock *lock = test_mutex(client, "a", NULL);
    for (int level = 1; level <= 3; level++) {
        EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
        assert_int_equal(redis_bed_number(bed, "HGET lock:a %s", owner_field(bed, "lock:a")), level);
    }
    redis_bed_do(bed, "PEXPIRE lock:a 5000");
    for (int level = 2; level >= 1; level--) {
        EXPECT(SNECK_OK, sneck_release(lock, &error));
        assert_int_equal(redis_bed_number(bed, "HGET lock:a %s", owner_field(bed, "lock:a")), level);
        assert_in_range(redis_bed_number(bed, "PTTL lock:a"), LEASE_MS - 10000, LEASE_MS);
    }
    /* A level more of a lock that is gone in the store is no level. */
    redis_bed_do(bed, "DEL lock:a");
    EXPECT(SNECK_LOST, sneck_acquire(lock, 0, &error));
    EXPECT(SNECK_LOST, sneck_release(lock, &error));
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    sneck_lock_free(lock);
    sneck_close(client);
}

static void test_helpers_follow_the_hash_tag(void **state)
{
    redis_bed *bed = *state;
    sneck_error error;
    sneck_client *client = redis_bed_open(bed, "history=off", NULL);
    sneck_lock *lock = test_mutex(client, "{order}/7", NULL);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    assert_string_equal(redis_bed_keys(bed), "lock:{order}/7 lock:{order}/7:token");
    sneck_lock_free(lock);
    static const char *const wrong[] = { "a{", "a}", "a{}b", "}a{", "{}" };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        lock = test_mutex(client, wrong[i], NULL);
        EXPECT(SNECK_INVALID, sneck_acquire(lock, 0, &error));
        sneck_lock_free(lock);
    }
    sneck_close(client);
    assert_string_equal(redis_bed_keys(bed), "lock:{order}/7:token");
}

static void test_the_prefix_may_be_another_or_none(void **state)
{
    redis_bed *bed = *state;
    sneck_error error;
    char url[256];
    (void)snprintf(url, sizeof url, "redis+unix://%s?prefix=&history=off", bed->server.socket);
    sneck_client *client = NULL;
    EXPECT(SNECK_OK, sneck_open(url, NULL, &client, &error));
    sneck_lock *lock = test_mutex(client, "bare", NULL);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    assert_string_equal(redis_bed_keys(bed), "bare {bare}:token");
    sneck_lock_free(lock);
    sneck_close(client);
}

/* ---- Waiting ---- */

typedef struct waiting {
    sneck_client *client;
    const char *name;
    int64_t wait_ms;
    sneck_status status;
} waiting;

static void *wait_for_lock(void *argument)
{
    waiting *self = argument;
    sneck_error error;
    sneck_lock *lock = test_mutex(self->client, self->name, NULL);
    self->status = sneck_acquire(lock, self->wait_ms, &error);
    sneck_lock_free(lock);
    return NULL;
}

static void test_a_waiter_is_in_the_queue_and_leaves_it_when_it_gives_up(void **state)
{
    redis_bed *bed = *state;
    sneck_error error;
    sneck_client *holder = redis_bed_open(bed, "history=off", NULL);
    sneck_client *client = redis_bed_open(bed, "history=off", NULL);
    sneck_lock *lock = test_mutex(holder, "a", NULL);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    waiting self = { .client = client, .name = "a", .wait_ms = 1000 };
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, wait_for_lock, &self), 0);
    redis_bed_await(bed, "ZCARD {lock:a}:queue", 1);
    assert_string_equal(redis_bed_keys(bed),
                        "lock:a {lock:a}:queue {lock:a}:queue:info {lock:a}:queue:until {lock:a}:token");
    redis_bed_expect_limits(bed);
    assert_int_equal(strlen(redis_bed_text(bed, "ZRANGE {lock:a}:queue 0 -1")), 32);
    /* Only its private channel is listened to: the holder is one of ours. */
    const char *channels = "";
    int64_t limit_ms = test_now_ms() + TEST_PATIENCE_MS;
    while (*channels == '\0') {
        assert_true(test_now_ms() < limit_ms);
        channels = redis_bed_text(bed, "PUBSUB CHANNELS *");
    }
    assert_int_equal(strncmp(channels, "lock:wake:", 10), 0);
    assert_null(strchr(channels, ' '));
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(self.status, SNECK_TIMEOUT);
    assert_string_equal(redis_bed_keys(bed), "lock:a {lock:a}:token");

    /* And so it is when the client is closed under it. */
    self.wait_ms = SNECK_FOREVER;
    assert_int_equal(pthread_create(&thread, NULL, wait_for_lock, &self), 0);
    redis_bed_await(bed, "ZCARD {lock:a}:queue", 1);
    sneck_close(client);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(self.status, SNECK_CANCELED);
    assert_string_equal(redis_bed_keys(bed), "lock:a {lock:a}:token");
    sneck_close(holder);
    sneck_lock_free(lock);
    assert_string_equal(redis_bed_keys(bed), "{lock:a}:token");
    redis_bed_await(bed, "EXISTS lock:a", 0);
}

/* ---- Messages ---- */

static redisContext *subscribe(const redis_bed *bed, const char *channel)
{
    redisContext *context = redisConnectUnix(bed->server.socket);
    assert_non_null(context);
    redisReply *reply = redisCommand(context, "SUBSCRIBE %s", channel);
    assert_non_null(reply);
    freeReplyObject(reply);
    return context;
}

static void test_a_release_is_announced_in_the_documented_words(void **state)
{
    redis_bed *bed = *state;
    sneck_error error;
    sneck_client *client = redis_bed_open(bed, NULL, NULL);
    static const char *const names[] = { "stock/42", "say \"hi\"\\", "b\xC3\xBCro" };
    static const char *const escaped[] = { "stock/42", "say \\\"hi\\\"\\\\", "b\xC3\xBCro" };
    for (size_t i = 0; i < 3; i++) {
        char text[256];
        (void)snprintf(text, sizeof text, "lock:release:%s", names[i]);
        redisContext *listener = subscribe(bed, text);
        sneck_lock *lock = test_mutex(client, names[i], NULL);
        EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
        (void)snprintf(text, sizeof text, "lock:%s", names[i]);
        char owner[64];
        (void)snprintf(owner, sizeof owner, "%s", owner_field(bed, text));
        int64_t before_ms = snk_wall_us() / 1000;
        EXPECT(SNECK_OK, sneck_release(lock, &error));
        redisReply *message = NULL;
        assert_int_equal(redisGetReply(listener, (void **)&message), REDIS_OK);
        char begin[128];
        int length = snprintf(begin, sizeof begin, "{\"lockKey\":\"%s\",\"releaseTime\":", escaped[i]);
        assert_int_equal(strncmp(message->element[2]->str, begin, (size_t)length), 0);
        char *end = NULL;
        long long time_ms = strtoll(message->element[2]->str + length, &end, 10);
        assert_in_range(time_ms, before_ms, snk_wall_us() / 1000);
        (void)snprintf(text, sizeof text, ",\"holder\":\"%s\"}", owner);
        assert_string_equal(end, text);
        freeReplyObject(message);
        redisFree(listener);
        sneck_lock_free(lock);
    }
    sneck_close(client);
}

static void test_nothing_is_announced_where_the_url_says_so(void **state)
{
    redis_bed *bed = *state;
    sneck_error error;
    redisContext *listener = subscribe(bed, "lock:release:a");
    sneck_client *client = redis_bed_open(bed, "announce=off", NULL);
    sneck_lock *lock = test_mutex(client, "a", NULL);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    redis_bed_do(bed, "PUBLISH lock:release:a end");
    redisReply *message = NULL;
    assert_int_equal(redisGetReply(listener, (void **)&message), REDIS_OK);
    assert_string_equal(message->element[2]->str, "end");
    freeReplyObject(message);
    redisFree(listener);
    sneck_lock_free(lock);
    sneck_close(client);
}

/* ---- History ---- */

static void test_the_log_tells_how_each_hold_ended(void **state)
{
    redis_bed *bed = *state;
    sneck_error error;
    sneck_client *client = redis_bed_open(bed, NULL, NULL);
    sneck_lock_options options = SNECK_LOCK_OPTIONS_INIT;
    options.why = "why not";
    options.lease_ms = 100;
    sneck_lock *lock = test_mutex(client, "a", &options);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    EXPECT(SNECK_OK, sneck_break(client, "a", sneck_token(lock), "stuck", &error));
    EXPECT(SNECK_LOST, sneck_release(lock, &error));
    /* Nobody gives it back: it expires. */
    options.recovery = SNECK_RECOVER_NOTIFY;
    sneck_lock *unforgotten = test_mutex(client, "a", &options);
    EXPECT(SNECK_OK, sneck_acquire_for(unforgotten, 0, 100, &error));
    redis_bed_await(bed, "EXISTS lock:a", 0);
    EXPECT(SNECK_LOST, sneck_release(unforgotten, &error));
    sneck_lock_free(unforgotten);
    /* The renewal that would have kept it comes too late: the holder knows first, and gives it back when it may. */
    EXPECT(SNECK_OK, sneck_acquire_for(lock, 1000, 300, &error));
    redis_bed_do(bed, "PEXPIRE lock:a 30000");
    redis_bed_await(bed, "EXISTS lock:a", 0);
    EXPECT(SNECK_LOST, sneck_release(lock, &error));
    EXPECT(SNECK_OK, sneck_acquire(lock, 1000, &error));
    sneck_info *info = NULL;
    EXPECT(SNECK_OK, sneck_inspect(client, "a", &info, &error));
    static const char *const kinds[] = { "released", "broken", "expired", "lost" };
    assert_int_equal(info->incident_count, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_string_equal(info->incidents[i].kind, kinds[i]);
        assert_non_null(strstr(info->incidents[i].text, i == 1 ? "stuck" : "why not"));
        expect_owner(info->incidents[i].owner);
    }
    sneck_info_free(info);
    for (int i = 0; i < 40; i++) {
        EXPECT(SNECK_OK, sneck_release(lock, &error));
        EXPECT(SNECK_OK, sneck_acquire(lock, 1000, &error));
    }
    assert_int_equal(redis_bed_number(bed, "LLEN {lock:a}:log"), 32);
    sneck_lock_free(lock);
    sneck_close(client);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, redis_bed_set_up, redis_bed_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_a_hash_lock_is_as_documented),
        TEST(test_a_string_lock_is_as_documented),
        TEST(test_levels_are_counted_where_the_url_asks_for_it),
        TEST(test_helpers_follow_the_hash_tag),
        TEST(test_the_prefix_may_be_another_or_none),
        TEST(test_a_waiter_is_in_the_queue_and_leaves_it_when_it_gives_up),
        TEST(test_a_release_is_announced_in_the_documented_words),
        TEST(test_nothing_is_announced_where_the_url_says_so),
        TEST(test_the_log_tells_how_each_hold_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
