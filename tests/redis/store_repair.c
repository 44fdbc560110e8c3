/* Wrong state in Redis is put right, and counted; somebody's data is left alone; other kinds of clients are respected. */
#include "test.h"

#include <pthread.h>
#include <string.h>

#include "bed.h"
#include "claims.h"
#include "redis_bed.h"
#include "store/redis/redis.h"

static uint64_t repairs(snk_store *store, size_t which)
{
    snk_repairs *counts = &snk_redis_store_of(store)->repairs;
    _Atomic uint64_t *const all[] = { &counts->ttl, &counts->owner, &counts->queue };
    return atomic_load(all[which]);
}

enum {
    TTL,
    OWNER,
    QUEUE
};

static void expect(snk_answer answer, snk_answer_kind kind)
{
    test_expect_kind(&answer, kind);
}

static void test_a_lock_without_time_limit_gets_one_lease(void **state)
{
    redis_bed *bed = *state;
    snk_store *store = test_store(redis_bed_url(bed, NULL));
    snk_id claim = test_id();
    redis_bed_do(bed, "HSET lock:a other-client:1 1");
    expect(test_acquire(store, "a", &claim, (test_ask){ .lease_ms = 5000 }), SNK_ANSWER_BUSY);
    assert_in_range(redis_bed_number(bed, "PTTL lock:a"), 1, 5000);
    assert_int_equal(repairs(store, TTL), 1);
    redis_bed_do(bed, "PEXPIRE lock:a 1");
    redis_bed_await(bed, "EXISTS lock:a", 0);
    expect(test_acquire(store, "a", &claim, TEST_TRY), SNK_ANSWER_HELD);
    /* Our own hold, whose limit was taken away: the next renewal sets it. */
    redis_bed_do(bed, "PERSIST lock:a");
    expect(test_renew(store, "a", &claim, 5000), SNK_ANSWER_HELD);
    assert_in_range(redis_bed_number(bed, "PTTL lock:a"), 1, 5000);
    test_store_close(store);
}

static void test_a_string_lock_without_time_limit_gets_one_lease(void **state)
{
    redis_bed *bed = *state;
    snk_store *store = test_store(redis_bed_url(bed, "layout=string"));
    snk_id claim = test_id();
    redis_bed_do(bed, "SET lock:a other-client:1");
    expect(test_acquire(store, "a", &claim, (test_ask){ .lease_ms = 5000 }), SNK_ANSWER_BUSY);
    assert_in_range(redis_bed_number(bed, "PTTL lock:a"), 1, 5000);
    assert_int_equal(repairs(store, TTL), 1);
    test_store_close(store);
}

static void test_a_hash_without_owner_or_holds_is_free(void **state)
{
    redis_bed *bed = *state;
    snk_store *store = test_store(redis_bed_url(bed, NULL));
    static const char *const fields[] = { "other:1 0", "other:1 -3", "~claim 00", "~claim 00 other:1 0" };
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        char command[128];
        snk_id claim = test_id();
        (void)snprintf(command, sizeof command, "HSET lock:a %s", fields[i]);
        redis_bed_do(bed, command);
        expect(test_acquire(store, "a", &claim, TEST_TRY), SNK_ANSWER_HELD);
        assert_int_equal(repairs(store, OWNER), i + 1);
        assert_int_equal(redis_bed_number(bed, "HLEN lock:a"), 10);
        expect(test_release(store, "a", &claim), SNK_ANSWER_DONE);
    }
    test_store_close(store);
}

static void test_half_a_waiter_is_taken_out(void **state)
{
    redis_bed *bed = *state;
    snk_store *store = test_store(redis_bed_url(bed, NULL));
    snk_id holder = test_must_hold(store, "a");
    (void)test_must_queue(store, "a", NULL);
    snk_id second = test_must_queue(store, "a", NULL);
    redis_bed_do(bed, "ZADD {lock:a}:queue 0 00000000000000000000000000000000");
    char first[64];
    (void)snprintf(first, sizeof first, "%s", redis_bed_text(bed, "ZRANGE {lock:a}:queue 1 1"));
    redis_bed_do(bed, "HDEL {lock:a}:queue:info %s", first);
    expect(test_release(store, "a", &holder), SNK_ANSWER_DONE);
    expect(test_renew(store, "a", &second, TEST_LEASE_MS), SNK_ANSWER_HELD);
    assert_int_equal(redis_bed_number(bed, "EXISTS {lock:a}:queue {lock:a}:queue:info {lock:a}:queue:until"), 0);
    test_store_close(store);
}

static void test_the_helpers_of_a_lock_that_nobody_uses_go_away(void **state)
{
    redis_bed *bed = *state;
    snk_store *store = test_store(redis_bed_url(bed, NULL));
    snk_store *dead = test_store(redis_bed_url(bed, NULL));
    snk_id holder = test_id();
    snk_id waiter = test_id();
    snk_id gone = test_id();
    expect(test_acquire(dead, "a", &holder, (test_ask){ .lease_ms = 500 }), SNK_ANSWER_HELD);
    expect(test_acquire(dead, "a", &waiter, (test_ask){ .lease_ms = 500, .queue = true }), SNK_ANSWER_QUEUED);
    expect(test_release_unanswered(dead, "a", &gone), SNK_ANSWER_GONE);
    redis_bed_expect_limits(bed);
    test_store_close(dead);
    /* Nobody comes by: they go with time. */
    redis_bed_await(bed, "EXISTS lock:a {lock:a}:queue {lock:a}:queue:info {lock:a}:queue:until", 0);
    /* Somebody comes by: those whose lease is over are trimmed. */
    snk_id other = test_must_hold(store, "b");
    for (int i = 0; i < 5; i++) {
        snk_id claim = test_id();
        expect(test_acquire(store, "b", &claim, (test_ask){ .lease_ms = 300, .queue = true }), SNK_ANSWER_QUEUED);
        redis_bed_pause(310);
    }
    assert_int_equal(redis_bed_number(bed, "ZCARD {lock:b}:queue"), 1);
    expect(test_release(store, "b", &other), SNK_ANSWER_DONE);
    test_store_close(store);
}

static void expect_untouched(redis_bed *bed, const char *keys, const char *make, const char *look)
{
    snk_store *store = test_store(redis_bed_url(bed, keys));
    redis_bed_do(bed, "DEL lock:a");
    redis_bed_do(bed, make);
    char before[256];
    (void)snprintf(before, sizeof before, "%s", redis_bed_text(bed, look));
    snk_id claim = test_id();
    static const test_ask asks[] = { { .lease_ms = 5000 }, { .lease_ms = 5000, .queue = true } };
    for (size_t i = 0; i < 2; i++) {
        snk_answer answer = test_acquire(store, "a", &claim, asks[i]);
        test_expect_kind(&answer, SNK_ANSWER_FAILED);
        assert_int_equal(answer.error.status, SNECK_INVALID);
        assert_non_null(strstr(answer.error.message, "WRONGTYPE"));
    }
    expect(test_renew(store, "b", &claim, 5000), SNK_ANSWER_GONE);
    assert_string_equal(redis_bed_text(bed, look), before);
    assert_int_equal(redis_bed_number(bed, "PTTL lock:a"), -1);
    assert_int_equal(redis_bed_number(bed, "EXISTS {lock:a}:queue"), 0);
    test_store_close(store);
}

static void test_data_of_others_is_never_touched(void **state)
{
    redis_bed *bed = *state;
    expect_untouched(bed, NULL, "SET lock:a 17", "GET lock:a");
    expect_untouched(bed, NULL, "RPUSH lock:a x", "LRANGE lock:a 0 -1");
    expect_untouched(bed, NULL, "HSET lock:a name Anna age 40", "HGETALL lock:a");
    expect_untouched(bed, "layout=string", "HSET lock:a u:1 1", "HGETALL lock:a");
    expect_untouched(bed, "layout=string", "SET lock:a hello", "GET lock:a");
}

static bool count_lock(void *context, const sneck_info *info)
{
    assert_string_equal(info->name, "held");
    ++*(int *)context;
    return true;
}

/* However much of it there is: nobody reads all of it, and the connection of all threads survives it. */
static void expect_survived(redis_bed *bed, const char *keys, const char *make)
{
    sneck_error error;
    redis_bed_do(bed, "FLUSHALL");
    redis_bed_do(bed, "EVAL %s 0", make);
    sneck_client *client = redis_bed_open(bed, keys, NULL);
    sneck_lock *held = test_mutex(client, "held", NULL);
    sneck_lock *lock = test_mutex(client, "big", NULL);
    EXPECT(SNECK_OK, sneck_acquire(held, 0, &error));
    EXPECT(SNECK_INVALID, sneck_acquire(lock, 0, &error));
    EXPECT(SNECK_INVALID, sneck_acquire(lock, 100, &error));
    sneck_info *info = NULL;
    EXPECT(SNECK_INVALID, sneck_inspect(client, "big", &info, &error));
    int count = 0;
    EXPECT(SNECK_OK, sneck_list(client, "*", count_lock, &count, &error));
    assert_int_equal(count, 1);
    assert_int_equal(test_health(client).connects, 1);
    EXPECT(SNECK_OK, sneck_release(held, &error));
    sneck_lock_free(held);
    sneck_lock_free(lock);
    sneck_close(client);
}

static void test_data_of_others_may_be_large(void **state)
{
    redis_bed *bed = *state;
    expect_survived(bed, NULL, "for i = 1, 150000 do redis.call('HSET', 'lock:big', 'u:' .. i, '1') end");
    expect_survived(bed, NULL, "redis.call('HSET', 'lock:big', 'u:1', string.rep('1', 20000000))");
    expect_survived(bed, "layout=string", "redis.call('SET', 'lock:big', string.rep('x', 20000000))");
}

static void test_data_of_others_is_not_shown_as_a_lock(void **state)
{
    redis_bed *bed = *state;
    expect_survived(bed, NULL, "redis.call('HSET', 'lock:big', 'name', 'Anna', 'age', '40')");
    expect_survived(bed, "layout=string", "redis.call('SET', 'lock:big', 'hello')");
}

/* ---- Other kinds of clients ---- */

static const char classic_lock[] =
    "if redis.call('exists', KEYS[1]) == 0 then redis.call('hset', KEYS[1], ARGV[2], 1) "
    "redis.call('pexpire', KEYS[1], ARGV[1]) return nil end return redis.call('pttl', KEYS[1])";
static const char classic_unlock[] = "redis.call('del', KEYS[1]) redis.call('publish', ARGV[1], ARGV[2]) return 1";

typedef struct waiting {
    redis_bed *bed;
    sneck_status status;
    int64_t waited_ms;
} waiting;

static void *wait_for_lock(void *argument)
{
    waiting *self = argument;
    sneck_error error;
    sneck_client *client = redis_bed_open(self->bed, NULL, NULL);
    sneck_lock *lock = test_mutex(client, "a", NULL);
    self->status = sneck_acquire(lock, 20000, &error);
    self->waited_ms = test_now_ms();
    sneck_lock_free(lock);
    sneck_close(client);
    return NULL;
}

static void test_a_classic_client_is_waited_for_and_heard(void **state)
{
    redis_bed *bed = *state;
    redisReply *reply = redis_bed_command(bed, "EVAL %s 1 lock:a 60000 classic:1", classic_lock);
    assert_int_equal(reply->type, REDIS_REPLY_NIL);
    freeReplyObject(reply);
    waiting self = { .bed = bed };
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, wait_for_lock, &self), 0);
    redis_bed_await(bed, "ZCARD {lock:a}:queue", 1);
    int64_t limit_ms = test_now_ms() + TEST_PATIENCE_MS;
    while (strstr(redis_bed_text(bed, "PUBSUB NUMSUB lock:release:a"), " 1") == NULL)
        assert_true(test_now_ms() < limit_ms);
    assert_int_equal(redis_bed_number(bed, "HGET lock:a classic:1"), 1);
    redis_bed_pause(100);
    int64_t released_ms = test_now_ms();
    redis_bed_do(bed, "EVAL %s 1 lock:a lock:release:a {}", classic_unlock);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(self.status, SNECK_OK);
    assert_true(self.waited_ms - released_ms < 5000); /* by its message, not at the next look */
    /* Nobody listens any more. */
    assert_null(strstr(redis_bed_text(bed, "PUBSUB NUMSUB lock:release:a"), " 1"));
}

static void test_a_classic_client_waits_for_ours(void **state)
{
    redis_bed *bed = *state;
    sneck_error error;
    sneck_client *client = redis_bed_open(bed, NULL, NULL);
    sneck_lock *lock = test_mutex(client, "a", NULL);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    assert_in_range(redis_bed_number(bed, "EVAL %s 1 lock:a 60000 classic:1", classic_lock), 1, 30000);
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    redisReply *reply = redis_bed_command(bed, "EVAL %s 1 lock:a 60000 classic:1", classic_lock);
    assert_int_equal(reply->type, REDIS_REPLY_NIL);
    freeReplyObject(reply);
    EXPECT(SNECK_BUSY, sneck_acquire(lock, 0, &error));
    sneck_info *info = NULL;
    EXPECT(SNECK_OK, sneck_inspect(client, "a", &info, &error));
    assert_true(info->held);
    assert_string_equal(info->holder.owner, "classic:1");
    sneck_info_free(info);
    sneck_lock_free(lock);
    sneck_close(client);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, redis_bed_set_up, redis_bed_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_a_lock_without_time_limit_gets_one_lease),
        TEST(test_a_string_lock_without_time_limit_gets_one_lease),
        TEST(test_a_hash_without_owner_or_holds_is_free),
        TEST(test_half_a_waiter_is_taken_out),
        TEST(test_the_helpers_of_a_lock_that_nobody_uses_go_away),
        TEST(test_data_of_others_is_never_touched),
        TEST(test_data_of_others_may_be_large),
        TEST(test_data_of_others_is_not_shown_as_a_lock),
        TEST(test_a_classic_client_is_waited_for_and_heard),
        TEST(test_a_classic_client_waits_for_ours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
