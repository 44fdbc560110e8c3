/* Who is woken, by what, and that nobody is fooled. */
#include "test.h"

#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "bed.h"
#include "claims.h"
#include "redis_bed.h"

static void expect(snk_answer answer, snk_answer_kind kind)
{
    test_expect_kind(&answer, kind);
}

/* ---- Modes ---- */

typedef struct worker {
    redis_bed *bed;
    const char *keys;
    unsigned rounds;
    bool fair;
    int64_t *counter; /* plain: only the lock keeps it sound */
    uint64_t *highest;
    unsigned lower;
    unsigned failures;
} worker;

static void *work(void *argument)
{
    worker *self = argument;
    sneck_error error;
    sneck_lock_options options = SNECK_LOCK_OPTIONS_INIT;
    options.fair = self->fair;
    sneck_client *client = redis_bed_open(self->bed, self->keys, NULL);
    sneck_lock *lock = test_mutex(client, "a", &options);
    for (unsigned i = 0; i < self->rounds; i++) {
        if (sneck_acquire(lock, 20000, &error) != SNECK_OK) {
            self->failures++;
            continue;
        }
        int64_t value = *self->counter;
        uint64_t token = sneck_token(lock);
        if (token <= *self->highest)
            self->lower++;
        *self->highest = token;
        *self->counter = value + 1;
        if (sneck_release(lock, &error) != SNECK_OK)
            self->failures++;
    }
    sneck_lock_free(lock);
    sneck_close(client);
    return NULL;
}

enum {
    WORKERS = 6
};

static void run_workers(redis_bed *bed, const char *const keys[WORKERS], bool fair)
{
    pthread_t threads[WORKERS];
    worker workers[WORKERS];
    int64_t counter = 0;
    uint64_t highest = 0;
    unsigned rounds = test_scaled(500);
    int64_t begin_ns = snk_now_ns();
    for (size_t i = 0; i < WORKERS; i++) {
        workers[i] = (worker){
            .bed = bed, .keys = keys[i], .rounds = rounds, .fair = fair, .counter = &counter, .highest = &highest
        };
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (size_t i = 0; i < WORKERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(workers[i].failures, 0);
        assert_int_equal(workers[i].lower, 0);
    }
    assert_int_equal(counter, (int64_t)rounds * WORKERS);
    /* Had messages been lost, each hand-off would have taken a third of a lease: 10 s. */
    assert_true(snk_now_ns() - begin_ns < 60 * SNK_NS_PER_S);
    /* The last lock is gone, and so are all traces of those who waited. */
    assert_string_equal(redis_bed_keys(bed), "{lock:a}:log {lock:a}:token");
}

static void test_clients_are_woken_by_a_grant(void **state)
{
    static const char *const keys[WORKERS] = { NULL, NULL, NULL, "layout=hash", NULL, NULL };
    run_workers(*state, keys, false);
}

static void test_fair_clients_are_woken_by_a_grant(void **state)
{
    static const char *const keys[WORKERS] = { NULL, NULL, NULL, "wake=all", "wake=one", NULL };
    run_workers(*state, keys, true);
}

static void test_clients_are_woken_by_a_hint(void **state)
{
    static const char *const keys[WORKERS] = { "wake=one", "wake=one", "wake=one", "wake=one", "wake=one", "wake=one" };
    run_workers(*state, keys, false);
}

static void test_clients_are_woken_by_a_broadcast(void **state)
{
    static const char *const keys[WORKERS] = { "wake=all", "wake=all", "wake=all", "wake=all", "wake=all", "wake=all" };
    run_workers(*state, keys, false);
}

static void test_clients_with_different_wishes_share_a_lock(void **state)
{
    static const char *const keys[WORKERS] = { NULL, "wake=one", "wake=all", NULL, "wake=one", "wake=all" };
    run_workers(*state, keys, false);
}

/* ---- Those who do not listen ---- */

static void test_a_waiter_that_does_not_listen_is_passed_over_and_keeps_its_place(void **state)
{
    redis_bed *bed = *state;
    snk_store *a = test_store(redis_bed_url(bed, NULL));
    snk_store *b = test_store(redis_bed_url(bed, NULL));
    snk_store *deaf = test_store(redis_bed_url(bed, NULL));
    snk_id holder = test_must_hold(a, "a");
    snk_id first = test_must_queue(deaf, "a", NULL);
    test_store_close(deaf); /* as if it had died: its claim stays for its lease */
    snk_id second = test_must_queue(b, "a", NULL);
    expect(test_release(a, "a", &holder), SNK_ANSWER_DONE);
    assert_int_equal(redis_bed_number(bed, "ZCARD {lock:a}:queue"), 1);
    snk_id third = test_must_queue(a, "a", NULL);
    expect(test_renew(b, "a", &second, TEST_LEASE_MS), SNK_ANSWER_HELD);
    /* It comes back (from whatever connection it asks), and is the first. */
    expect(test_renew(a, "a", &first, TEST_LEASE_MS), SNK_ANSWER_QUEUED);
    expect(test_release(b, "a", &second), SNK_ANSWER_DONE);
    expect(test_renew(b, "a", &third, TEST_LEASE_MS), SNK_ANSWER_HELD);
    expect(test_release(b, "a", &third), SNK_ANSWER_DONE);
    expect(test_renew(a, "a", &first, TEST_LEASE_MS), SNK_ANSWER_HELD);
    test_store_close(b);
    test_store_close(a);
}

static void test_a_free_lock_goes_to_whoever_asks_when_nobody_listens(void **state)
{
    redis_bed *bed = *state;
    snk_store *a = test_store(redis_bed_url(bed, NULL));
    snk_store *deaf = test_store(redis_bed_url(bed, NULL));
    snk_id holder = test_must_hold(a, "a");
    for (int i = 0; i < 70; i++)
        (void)test_must_queue(deaf, "a", NULL);
    test_store_close(deaf);
    snk_id last = test_must_queue(a, "a", NULL);
    redis_bed_do(bed, "CLIENT KILL TYPE pubsub");
    expect(test_release(a, "a", &holder), SNK_ANSWER_DONE);
    expect(test_renew(a, "a", &last, TEST_LEASE_MS), SNK_ANSWER_HELD);
    test_store_close(a);
}

/* ---- Messages that lie, or do not come ---- */

typedef struct waiting {
    sneck_client *client;
    int64_t wait_ms;
    sneck_status status;
    uint64_t token;
    int64_t ended_ms;
} waiting;

static void *wait_for_lock(void *argument)
{
    waiting *self = argument;
    sneck_error error;
    sneck_lock *lock = test_mutex(self->client, "a", NULL);
    self->status = sneck_acquire(lock, self->wait_ms, &error);
    self->ended_ms = test_now_ms();
    self->token = sneck_token(lock);
    sneck_lock_free(lock);
    return NULL;
}

static void test_forged_messages_grant_nothing(void **state)
{
    redis_bed *bed = *state;
    sneck_error error;
    sneck_client *holder = redis_bed_open(bed, NULL, NULL);
    sneck_client *client = redis_bed_open(bed, "wake=all", NULL);
    sneck_lock *lock = test_mutex(holder, "a", NULL);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    uint64_t token = sneck_token(lock);
    waiting self = { .client = client, .wait_ms = 1000 };
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, wait_for_lock, &self), 0);
    redis_bed_await(bed, "ZCARD {lock:a}:queue", 1);
    int64_t begin_ms = test_now_ms();
    for (int i = 0; i < 80; i++) {
        char claim[64];
        (void)snprintf(claim, sizeof claim, "%s", redis_bed_text(bed, "ZRANGE {lock:a}:queue 0 0"));
        redisReply *channels = redis_bed_command(bed, "PUBSUB CHANNELS");
        for (size_t j = 0; j < channels->elements; j++) {
            const char *channel = channels->element[j]->str;
            redis_bed_do(bed, "PUBLISH %s %s", channel, "{\"lockKey\":\"a\",\"releaseTime\":1,\"holder\":\"x\"}");
            redis_bed_do(bed, "PUBLISH %s %s", channel, "00000000000000000000000000000000");
            redis_bed_do(bed, "PUBLISH %s %s", channel, claim); /* even the right one causes a look, no more */
            redis_bed_do(bed, "PUBLISH %s %s", channel, "\x01\x02 nonsense");
        }
        freeReplyObject(channels);
        redis_bed_pause(10);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(self.status, SNECK_TIMEOUT);
    assert_in_range(self.ended_ms - begin_ms, 800, 5000);
    assert_true(sneck_is_held(lock));
    assert_true(sneck_token(lock) == token);
    assert_true((uint64_t)redis_bed_number(bed, "GET {lock:a}:token") == token);
    assert_int_equal(redis_bed_number(bed, "EXISTS {lock:a}:queue"), 0);
    sneck_lock_free(lock);
    sneck_close(client);
    sneck_close(holder);
}

static void test_a_wait_is_bounded_though_every_message_is_lost(void **state)
{
    redis_bed *bed = *state;
    sneck_error error;
    sneck_client_options options = SNECK_CLIENT_OPTIONS_INIT;
    options.lease_ms = 1500;
    sneck_client *holder = redis_bed_open(bed, NULL, &options);
    sneck_client *client = redis_bed_open(bed, NULL, &options);
    sneck_lock *lock = test_mutex(holder, "a", NULL);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    waiting self = { .client = client, .wait_ms = 20000 };
    pthread_t thread;
    /* Nothing that is published reaches anybody. */
    redis_bed_do(bed, "ACL SETUSER sneck resetchannels");
    assert_int_equal(pthread_create(&thread, NULL, wait_for_lock, &self), 0);
    redis_bed_await(bed, "ZCARD {lock:a}:queue", 1);
    int64_t begin_ms = test_now_ms();
    redis_bed_do(bed, "DEL lock:a");
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(self.status, SNECK_OK);
    assert_true(self.ended_ms - begin_ms < 5000);
    sneck_lock_free(lock);
    sneck_close(client);
    sneck_close(holder);
}

static void test_a_waiter_looks_again_after_its_connections_were_cut(void **state)
{
    redis_bed *bed = *state;
    sneck_error error;
    sneck_client *holder = redis_bed_open(bed, NULL, NULL);
    sneck_client *client = redis_bed_open(bed, NULL, NULL);
    sneck_lock *lock = test_mutex(holder, "a", NULL);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    waiting self = { .client = client, .wait_ms = 20000 };
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, wait_for_lock, &self), 0);
    redis_bed_await(bed, "ZCARD {lock:a}:queue", 1);
    redis_bed_pause(50);
    /* In one step: nobody listens, and the lock is free. */
    redis_bed_do(bed, "MULTI");
    redis_bed_do(bed, "CLIENT KILL TYPE pubsub");
    redis_bed_do(bed, "DEL lock:a");
    int64_t begin_ms = test_now_ms();
    redis_bed_do(bed, "EXEC");
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(self.status, SNECK_OK);
    assert_true(self.ended_ms - begin_ms < 5000); /* not at the next look, which is 10 s away */
    sneck_lock_free(lock);
    sneck_close(client);
    sneck_close(holder);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, redis_bed_set_up, redis_bed_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_clients_are_woken_by_a_grant),
        TEST(test_fair_clients_are_woken_by_a_grant),
        TEST(test_clients_are_woken_by_a_hint),
        TEST(test_clients_are_woken_by_a_broadcast),
        TEST(test_clients_with_different_wishes_share_a_lock),
        TEST(test_a_waiter_that_does_not_listen_is_passed_over_and_keeps_its_place),
        TEST(test_a_free_lock_goes_to_whoever_asks_when_nobody_listens),
        TEST(test_forged_messages_grant_nothing),
        TEST(test_a_wait_is_bounded_though_every_message_is_lost),
        TEST(test_a_waiter_looks_again_after_its_connections_were_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
