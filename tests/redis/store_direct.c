/* Starting with the message that the lock was granted: when a waiter does, and when it asks first. */
#include "test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/limits.h"
#include "bed.h"
#include "client/supervise.h"
#include "proxy.h"
#include "redis_bed.h"

typedef struct scene {
    redis_bed bed;
    fault_proxy proxy;
    sneck_client *client; /* through the proxy */
    sneck_client *other;  /* not so */
    sneck_lock *lock;     /* of the client; owns for itself */
    sneck_lock *held;     /* of the other one */
    pthread_t thread;
    _Atomic int status; /* of the client's acquire; -1: it waits */
} scene;

static int set_up(void **state)
{
    scene *made = calloc(1, sizeof *made);
    if (made == NULL)
        return -1;
    redis_bed_start(&made->bed);
    assert_true(proxy_start(&made->proxy, made->bed.server.port));
    sneck_error error;
    EXPECT(SNECK_OK, sneck_open(redis_bed_url_at(made->proxy.port, NULL), NULL, &made->client, &error));
    made->other = redis_bed_open(&made->bed, NULL, NULL);
    made->lock = test_handle(made->client, "a");
    made->held = test_mutex(made->other, "a", NULL);
    EXPECT(SNECK_OK, sneck_acquire(made->held, 0, &error));
    atomic_store(&made->status, -1);
    *state = made;
    return 0;
}

static int tear_down(void **state)
{
    scene *made = *state;
    proxy_harm(&made->proxy, PROXY_PASS, "");
    sneck_lock_free(made->lock);
    sneck_lock_free(made->held);
    sneck_close(made->client);
    sneck_close(made->other);
    redis_bed_await(&made->bed, "EXISTS lock:a {lock:a}:queue {lock:a}:queue:info {lock:a}:queue:until", 0);
    proxy_stop(&made->proxy);
    redis_bed_stop(&made->bed);
    free(made);
    return 0;
}

static void *wait_for_lock(void *argument)
{
    scene *made = argument;
    atomic_store(&made->status, (int)sneck_acquire(made->lock, SNECK_FOREVER, NULL));
    return NULL;
}

/* The client waits, and hears what is said to it. */
static void begin_waiting(scene *made)
{
    assert_int_equal(pthread_create(&made->thread, NULL, wait_for_lock, made), 0);
    redis_bed_await(&made->bed, "ZCARD {lock:a}:queue", 1);
    redis_bed_await(&made->bed, "EVAL return(#redis.call('PUBSUB','CHANNELS','lock:wake:*')) 0", 1);
    test_await_waiting(made->client, "a", 1);
    redis_bed_pause(50); /* the question that follows the subscription is answered by then */
}

static void join(scene *made)
{
    assert_int_equal(pthread_join(made->thread, NULL), 0);
    assert_int_equal(atomic_load(&made->status), SNECK_OK);
}

static void test_a_waiter_starts_though_the_server_cannot_be_asked(void **state)
{
    scene *made = *state;
    sneck_error error;
    begin_waiting(made);
    proxy_harm(&made->proxy, PROXY_STALL_REQUESTS, "");
    EXPECT(SNECK_OK, sneck_release(made->held, &error));
    join(made);
    assert_true(sneck_is_held(made->lock));
    assert_int_equal(sneck_token(made->lock), redis_bed_number(&made->bed, "HGET lock:a ~token"));
    assert_in_range(sneck_remaining_ms(made->lock), 1, 2000);
    assert_in_range(redis_bed_number(&made->bed, "PTTL lock:a"), 1, 2000);
    proxy_harm(&made->proxy, PROXY_PASS, "");
    /* The renewal that follows brings the full lease. */
    int64_t limit_ms = test_now_ms() + TEST_PATIENCE_MS;
    while (sneck_remaining_ms(made->lock) < 20000) {
        assert_true(test_now_ms() < limit_ms);
        redis_bed_pause(1);
    }
    assert_in_range(redis_bed_number(&made->bed, "PTTL lock:a"), 20000, 30000);
    EXPECT(SNECK_OK, sneck_release(made->lock, &error));
}

typedef struct mirror {
    sneck_lock *lock;
    _Atomic int64_t word;
} mirror;

static void *mirror_deadline(void *argument)
{
    mirror *self = argument;
    snk_lock_mirror_deadline(self->lock, &self->word);
    return NULL;
}

/* A program that plans by the deadline, as `sneck run` does, must not see the short one. */
static void test_a_mirrored_deadline_is_that_of_the_lease(void **state)
{
    scene *made = *state;
    sneck_error error;
    begin_waiting(made);
    proxy_harm(&made->proxy, PROXY_STALL_REQUESTS, "");
    EXPECT(SNECK_OK, sneck_release(made->held, &error));
    join(made);
    mirror self = { .lock = made->lock };
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, mirror_deadline, &self), 0);
    redis_bed_pause(20);
    assert_int_equal(atomic_load(&self.word), 0);
    proxy_harm(&made->proxy, PROXY_PASS, "");
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(atomic_load(&self.word) - snk_now_ns() > 20 * SNK_NS_PER_S);
    snk_lock_mirror_deadline(made->lock, NULL);
    EXPECT(SNECK_OK, sneck_release(made->lock, &error));
}

static void test_an_offer_that_cannot_be_confirmed_is_lost_before_its_key_is_gone(void **state)
{
    scene *made = *state;
    sneck_error error;
    begin_waiting(made);
    proxy_harm(&made->proxy, PROXY_STALL_REQUESTS, "");
    EXPECT(SNECK_OK, sneck_release(made->held, &error));
    join(made);
    while (redis_bed_number(&made->bed, "EXISTS lock:a") == 1)
        ;
    assert_false(sneck_is_held(made->lock));
    proxy_harm(&made->proxy, PROXY_PASS, "");
    EXPECT(SNECK_LOST, sneck_release(made->lock, &error));
}

static void test_a_waiter_that_was_not_heard_of_lately_asks_first(void **state)
{
    scene *made = *state;
    sneck_error error;
    begin_waiting(made);
    redis_bed_pause(1000); /* more than half of an offer's life */
    proxy_harm(&made->proxy, PROXY_STALL_REQUESTS, "");
    EXPECT(SNECK_OK, sneck_release(made->held, &error));
    redis_bed_pause(100);
    assert_int_equal(atomic_load(&made->status), -1);
    proxy_harm(&made->proxy, PROXY_PASS, "");
    join(made);
    assert_in_range(sneck_remaining_ms(made->lock), 20000, 30000);
    EXPECT(SNECK_OK, sneck_release(made->lock, &error));
}

/* As after a failover: questions go to one server, and messages come from another, which is no longer asked. */
static void test_a_grant_of_another_server_is_not_believed(void **state)
{
    scene *made = *state;
    sneck_error error;
    redis_bed stale;
    redis_bed_start(&stale);
    made->proxy.target_port = stale.server.port; /* of the connections from now on: that for messages */
    assert_int_equal(pthread_create(&made->thread, NULL, wait_for_lock, made), 0);
    redis_bed_await(&made->bed, "ZCARD {lock:a}:queue", 1);
    redis_bed_await(&stale, "EVAL return(#redis.call('PUBSUB','CHANNELS','lock:wake:*')) 0", 1);
    redis_bed_pause(50);
    char claim[64];
    char channel[64];
    (void)snprintf(claim, sizeof claim, "%s", redis_bed_text(&made->bed, "ZRANGE {lock:a}:queue 0 0"));
    (void)snprintf(channel, sizeof channel, "%s", redis_bed_text(&stale, "PUBSUB CHANNELS lock:wake:*"));
    assert_int_equal(redis_bed_number(&stale, "PUBLISH %s %s", channel, "00000000000000000000000000000000 5 9"), 1);
    char grant[96];
    (void)snprintf(grant, sizeof grant, "%s 5 9", claim);
    assert_int_equal(redis_bed_number(&stale, "PUBLISH %s %s", channel, grant), 1);
    redis_bed_pause(100);
    assert_int_equal(atomic_load(&made->status), -1);
    assert_false(sneck_is_held(made->lock));
    EXPECT(SNECK_OK,
           sneck_release(made->held, &error)); /* the right server's message is not heard; it is asked instead */
    (void)redis_bed_number(&stale, "PUBLISH %s %s", channel, claim);
    join(made);
    EXPECT(SNECK_OK, sneck_release(made->lock, &error));
    redis_bed_stop(&stale);
}

/* What a message says has happened, or the waiter would begin without having the lock. */
static void test_a_server_that_refuses_writes_announces_nothing(void **state)
{
    scene *made = *state;
    sneck_error error;
    begin_waiting(made);
    redis_bed_do(&made->bed, "CONFIG SET maxmemory 1");
    redis_bed_do(&made->bed, "DEL lock:a");
    sneck_client *client = redis_bed_open(&made->bed, NULL, NULL);
    sneck_lock *third = test_mutex(client, "a", NULL);
    EXPECT(SNECK_UNAVAILABLE, sneck_acquire(third, 0, &error)); /* finds it free, and would hand it to the waiter */
    assert_int_equal(redis_bed_number(&made->bed, "EXISTS lock:a"), 0);
    redis_bed_pause(100);
    assert_int_equal(atomic_load(&made->status), -1);
    redis_bed_do(&made->bed, "CONFIG SET maxmemory 0");
    EXPECT(SNECK_BUSY, sneck_acquire(third, 0, &error));
    join(made);
    EXPECT(SNECK_OK, sneck_release(made->lock, &error));
    sneck_lock_free(third);
    sneck_close(client);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_a_waiter_starts_though_the_server_cannot_be_asked),
        TEST(test_a_mirrored_deadline_is_that_of_the_lease),
        TEST(test_an_offer_that_cannot_be_confirmed_is_lost_before_its_key_is_gone),
        TEST(test_a_waiter_that_was_not_heard_of_lately_asks_first),
        TEST(test_a_grant_of_another_server_is_not_believed),
        TEST(test_a_server_that_refuses_writes_announces_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
