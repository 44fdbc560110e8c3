/* Servers that forget, are slow, or cut connections. What they refuse is in store_refused.c. */
#include "test.h"

#include <pthread.h>
#include <string.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "bed.h"
#include "claims.h"
#include "proxy.h"
#include "redis_scene.h"

/* ---- Scripts and data gone ---- */

static void test_scripts_that_were_flushed_are_sent_again(void **state)
{
    redis_bed *bed = *state;
    sneck_error error;
    redis_scene made = redis_scene_open(bed, NULL, 300);
    for (int i = 0; i < 20; i++) {
        redis_bed_do(bed, "SCRIPT FLUSH");
        EXPECT(SNECK_OK, sneck_acquire(made.lock, 0, &error));
        redis_bed_do(bed, "SCRIPT FLUSH");
        EXPECT(SNECK_OK, sneck_extend(made.lock, 1000, &error));
        redis_bed_do(bed, "SCRIPT FLUSH");
        EXPECT(SNECK_OK, sneck_release(made.lock, &error));
    }
    redis_scene_close(&made);
}

static void note_done(snk_call *call)
{
    *(bool *)call->context = true;
}

/* They are renewed together; so they are when the server has forgotten the script, however far away it is. */
static void test_many_renewals_whose_script_was_flushed_are_sent_again_together(void **state)
{
    enum {
        LOCKS = 100,
        DELAY_MS = 30
    };
    redis_bed *bed = *state;
    static fault_proxy proxy;
    static char names[LOCKS][16];
    static snk_claim claims[LOCKS];
    static snk_answer answers[LOCKS];
    bool is_done = false;
    assert_true(proxy_start(&proxy, bed->server.port));
    snk_store *store = test_store(redis_bed_url_at(proxy.port, NULL));
    for (size_t i = 0; i < LOCKS; i++) {
        (void)snprintf(names[i], sizeof names[i], "many/%zu", i);
        claims[i] = (snk_claim){ .name = names[i], .why = "" };
        claims[i].send = (snk_send){ .ask = SNK_ASK_RENEW, .lease_ns = 60 * SNK_NS_PER_S };
        claims[i].send.claim = test_must_hold(store, names[i]);
    }
    redis_bed_do(bed, "SCRIPT FLUSH");
    atomic_store(&proxy.reply_delay_ms, DELAY_MS);
    int64_t began_ms = test_now_ms();
    snk_call call = { .claims = claims, .answers = answers, .count = LOCKS, .done = note_done, .context = &is_done };
    snk_store_submit(store, &call);
    assert_true(is_done);
    assert_true(test_now_ms() - began_ms < LOCKS * DELAY_MS / 2);
    for (size_t i = 0; i < LOCKS; i++)
        test_expect_kind(&answers[i], SNK_ANSWER_HELD);
    atomic_store(&proxy.reply_delay_ms, 0);
    test_store_close(store);
    proxy_stop(&proxy);
}

static void test_a_flushed_server_is_told_at_the_next_renewal_and_tokens_rise(void **state)
{
    redis_bed *bed = *state;
    sneck_error error;
    redis_scene made = redis_scene_open(bed, NULL, 600000);
    sneck_lock_options options = SNECK_LOCK_OPTIONS_INIT;
    options.renew_ms = 500;
    sneck_lock_free(made.lock);
    made.lock = test_mutex(made.client, "a", &options);
    EXPECT(SNECK_OK, sneck_acquire(made.lock, 0, &error));
    uint64_t before = sneck_token(made.lock);
    redis_bed_do(bed, "FLUSHALL");
    (void)redis_scene_await_loss(&made); /* long before the lease could end */
    EXPECT(SNECK_LOST, sneck_release(made.lock, &error));
    EXPECT(SNECK_OK, sneck_acquire(made.lock, 0, &error));
    assert_true(sneck_token(made.lock) > before);
    redis_scene_close(&made);
}

static void test_a_restart_without_data_is_loss_and_tokens_rise(void **state)
{
    redis_bed *bed = *state;
    sneck_error error;
    redis_scene made = redis_scene_open(bed, NULL, 3000);
    EXPECT(SNECK_OK, sneck_acquire(made.lock, 0, &error));
    uint64_t before = sneck_token(made.lock);
    redis_bed_crash(bed, false);
    redis_bed_restart(bed);
    (void)redis_scene_await_loss(&made);
    EXPECT(SNECK_LOST, sneck_release(made.lock, &error));
    EXPECT(SNECK_OK, sneck_acquire(made.lock, 20000, &error));
    assert_true(sneck_token(made.lock) > before);
    redis_scene_close(&made);
}

static void test_a_restart_with_data_is_survived(void **state)
{
    redis_bed *bed = *state;
    sneck_error error;
    redis_scene made = redis_scene_open(bed, NULL, 6000);
    EXPECT(SNECK_OK, sneck_acquire(made.lock, 0, &error));
    uint64_t before = sneck_token(made.lock);
    redis_bed_crash(bed, true);
    redis_bed_restart(bed);
    redis_bed_pause(6000);
    assert_true(sneck_token(made.lock) == before); /* renewed since, or it would be over */
    EXPECT(SNECK_OK, sneck_release(made.lock, &error));
    redis_scene_close(&made);
}

/* ---- Waiters of a server that forgets ---- */

typedef struct waiting {
    const redis_scene *made;
    sneck_status status;
} waiting;

static void *wait_for_lock(void *argument)
{
    waiting *self = argument;
    sneck_error error;
    self->status = sneck_acquire(self->made->lock, SNECK_FOREVER, &error);
    if (self->status == SNECK_OK)
        self->status = sneck_release(self->made->lock, &error);
    return NULL;
}

/* A waiter, and what is done to the server meanwhile: it gets the lock well before the holder's lease would end. */
static void expect_served_after(redis_bed *bed, void (*harm)(redis_bed *bed))
{
    sneck_error error;
    redis_scene holder = redis_scene_open(bed, NULL, 60000);
    redis_scene made = redis_scene_open(bed, NULL, 3000);
    EXPECT(SNECK_OK, sneck_acquire(holder.lock, 0, &error));
    waiting self = { .made = &made };
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, wait_for_lock, &self), 0);
    redis_bed_await(bed, "ZCARD {lock:a}:queue", 1);
    harm(bed);
    int64_t begin_ms = test_now_ms();
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(self.status, SNECK_OK);
    assert_true(test_now_ms() - begin_ms < TEST_PATIENCE_MS);
    redis_scene_close(&made);
    redis_scene_close(&holder);
    redis_scene_expect_free(&made);
}

static void forget_all(redis_bed *bed)
{
    redis_bed_do(bed, "FLUSHALL");
}

static void restart_without_data(redis_bed *bed)
{
    redis_bed_crash(bed, false);
    redis_bed_restart(bed);
}

static void restart_with_data_but_the_lock(redis_bed *bed)
{
    redis_bed_do(bed, "DEL lock:a"); /* nobody is told */
    redis_bed_crash(bed, true);
    redis_bed_restart(bed);
}

static void forget_scripts(redis_bed *bed)
{
    redis_bed_do(bed, "SCRIPT FLUSH");
    redis_bed_do(bed, "DEL lock:a");
}

static void test_a_waiter_survives_that_the_server_forgets(void **state)
{
    expect_served_after(*state, forget_all);
    expect_served_after(*state, restart_without_data);
    expect_served_after(*state, restart_with_data_but_the_lock);
    expect_served_after(*state, forget_scripts);
}

/* ---- Slow, and cut ---- */

/* Longer than a request may take: nobody knows, and what came of it is given back when the server goes on. */
static void expect_unknown_during(redis_bed *bed, const char *command, const char *timeout)
{
    sneck_error error;
    redis_scene made = redis_scene_open(bed, timeout, 5000);
    sneck_lock *held = test_mutex(made.client, "held", NULL);
    EXPECT(SNECK_OK, sneck_acquire(held, 0, &error));
    redisContext *aside = redis_bed_send_aside(bed, command);
    redis_bed_pause(20); /* until the server is at it */
    int64_t begin_ms = test_now_ms();
    EXPECT(SNECK_UNKNOWN, sneck_acquire(made.lock, 0, &error));
    assert_in_range(test_now_ms() - begin_ms, 90, 900);
    assert_non_null(strstr(error.message, "did not answer in time"));
    redis_bed_do(bed, "SET over 1 PX 1"); /* answered when the server goes on */
    redis_scene_expect_free(&made);
    /* Until the next attempt to connect, which may be later than a request lasts, it is refused. */
    while (sneck_acquire(made.lock, 0, &error) == SNECK_UNAVAILABLE)
        assert_true(test_now_ms() - begin_ms < 5000);
    EXPECT(SNECK_OK, sneck_release(made.lock, &error));
    EXPECT(SNECK_OK, sneck_release(held, &error));
    sneck_lock_free(held);
    redis_scene_close(&made);
    redisFree(aside);
}

static void test_a_server_that_sleeps_or_pauses_too_long_is_told_as_unknown(void **state)
{
    expect_unknown_during(*state, "DEBUG SLEEP 1", "timeout=100");
    expect_unknown_during(*state, "CLIENT PAUSE 1000", "timeout=100ms");
    expect_unknown_during(*state, "CLIENT PAUSE 1000 WRITE", "timeout=0.1s");
}

static void test_a_server_that_pauses_is_waited_for(void **state)
{
    redis_bed *bed = *state;
    sneck_error error;
    redis_scene made = redis_scene_open(bed, NULL, 3000);
    int64_t begin_ms = test_now_ms();
    redis_bed_do(bed, "CLIENT PAUSE 300");
    EXPECT(SNECK_OK, sneck_acquire(made.lock, 0, &error));
    assert_true(test_now_ms() - begin_ms >= 250);
    /* The time that the answer took is not ours. */
    assert_true(sneck_remaining_ms(made.lock) <= 3000 - 250);
    EXPECT(SNECK_OK, sneck_release(made.lock, &error));
    redisContext *sleeper = redis_bed_send_aside(bed, "DEBUG SLEEP 0.3");
    redis_scene_pair(&made);
    redisFree(sleeper);
    redis_scene_close(&made);
}

typedef struct hammer {
    const redis_scene *made;
    _Atomic int *inside;
    unsigned pairs;
    unsigned overlaps;
    unsigned unclear;
    atomic_bool *stop;
} hammer;

static void *hammer_on(void *argument)
{
    hammer *self = argument;
    sneck_error error;
    sneck_lock *lock = test_mutex(self->made->client, "a", NULL);
    while (!atomic_load(self->stop)) {
        if (sneck_acquire(lock, 5000, &error) != SNECK_OK) {
            self->unclear++;
            continue;
        }
        if (atomic_fetch_add(self->inside, 1) != 0)
            self->overlaps++;
        (void)atomic_fetch_sub(self->inside, 1);
        self->pairs++;
        if (sneck_release(lock, &error) != SNECK_OK)
            self->unclear++;
    }
    sneck_lock_free(lock);
    return NULL;
}

static void test_connections_killed_under_load_cost_no_exclusion_and_leave_nothing(void **state)
{
    redis_bed *bed = *state;
    enum {
        THREADS = 4
    };
    redis_scene scenes[2] = { redis_scene_open(bed, NULL, 2000), redis_scene_open(bed, NULL, 2000) };
    _Atomic int inside = 0;
    atomic_bool stop = false;
    pthread_t threads[THREADS];
    hammer hammers[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        hammers[i] = (hammer){ .made = &scenes[i % 2], .inside = &inside, .stop = &stop };
        assert_int_equal(pthread_create(&threads[i], NULL, hammer_on, &hammers[i]), 0);
    }
    for (unsigned i = 0; i < test_scaled(300); i++) {
        redis_bed_pause(20);
        redis_bed_do(bed, i % 3 == 0 ? "CLIENT KILL TYPE pubsub" : "CLIENT KILL TYPE normal SKIPME yes");
    }
    atomic_store(&stop, true);
    unsigned pairs = 0;
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(hammers[i].overlaps, 0);
        pairs += hammers[i].pairs;
    }
    assert_true(pairs > 0);
    redis_scene_close(&scenes[0]);
    redis_scene_close(&scenes[1]);
    /* What was given up is chased, or ends with its lease; nothing stays. */
    redis_bed_await(bed, "EXISTS lock:a {lock:a}:queue {lock:a}:queue:info {lock:a}:queue:until", 0);
    redis_bed_expect_limits(bed);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, redis_bed_set_up, redis_bed_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_scripts_that_were_flushed_are_sent_again),
        TEST(test_many_renewals_whose_script_was_flushed_are_sent_again_together),
        TEST(test_a_flushed_server_is_told_at_the_next_renewal_and_tokens_rise),
        TEST(test_a_restart_without_data_is_loss_and_tokens_rise),
        TEST(test_a_restart_with_data_is_survived),
        TEST(test_a_waiter_survives_that_the_server_forgets),
        TEST(test_a_server_that_sleeps_or_pauses_too_long_is_told_as_unknown),
        TEST(test_a_server_that_pauses_is_waited_for),
        TEST(test_connections_killed_under_load_cost_no_exclusion_and_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
