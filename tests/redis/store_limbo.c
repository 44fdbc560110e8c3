/* Requests and answers that get lost or come late, through a proxy: nothing is left behind, and no belief lengthened. */
#include "test.h"

#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "base/limits.h"
#include "bed.h"
#include "proxy.h"
#include "redis_bed.h"

#define LEASE_MS 2000

typedef struct scene {
    redis_bed bed;
    fault_proxy proxy;
    sneck_client *client; /* through the proxy */
    sneck_client *direct;
    sneck_lock *lock;
} scene;

static int set_up(void **state)
{
    scene *made = calloc(1, sizeof *made);
    if (made == NULL)
        return -1;
    redis_bed_start(&made->bed);
    assert_true(proxy_start(&made->proxy, made->bed.server.port));
    sneck_error error;
    sneck_client_options options = SNECK_CLIENT_OPTIONS_INIT;
    options.lease_ms = LEASE_MS;
    EXPECT(SNECK_OK, sneck_open(redis_bed_url_at(made->proxy.port, "timeout=200"), &options, &made->client, &error));
    made->direct = redis_bed_open(&made->bed, NULL, &options);
    made->lock = test_mutex(made->client, "a", NULL);
    *state = made;
    return 0;
}

static int tear_down(void **state)
{
    scene *made = *state;
    proxy_harm(&made->proxy, PROXY_PASS, "");
    sneck_lock_free(made->lock);
    sneck_close(made->client);
    sneck_close(made->direct);
    /* Whatever happened: what is left is what may be left. */
    redis_bed_await(&made->bed, "EXISTS lock:a {lock:a}:queue {lock:a}:queue:info {lock:a}:queue:until", 0);
    redis_bed_expect_limits(&made->bed);
    proxy_stop(&made->proxy);
    redis_bed_stop(&made->bed);
    free(made);
    return 0;
}

/* How often a script ran. */
static long long scripts_run(redis_bed *bed)
{
    long long sum = 0;
    static const char *const commands[] = { "cmdstat_evalsha:calls=", "cmdstat_eval:calls=" };
    const char *stats = redis_bed_text(bed, "INFO commandstats");
    for (size_t i = 0; i < 2; i++) {
        const char *found = strstr(stats, commands[i]);
        if (found != NULL)
            sum += strtoll(found + strlen(commands[i]), NULL, 10);
    }
    return sum;
}

static void pair(const scene *made)
{
    sneck_error error;
    EXPECT(SNECK_OK, sneck_acquire(made->lock, 5000, &error));
    EXPECT(SNECK_OK, sneck_release(made->lock, &error));
}

static void test_an_acquire_whose_answer_is_lost_is_given_back(void **state)
{
    scene *made = *state;
    sneck_error error;
    pair(made);
    proxy_harm(&made->proxy, PROXY_CUT_AFTER, "EVALSHA");
    EXPECT(SNECK_UNKNOWN, sneck_acquire(made->lock, 0, &error));
    assert_int_equal(redis_bed_number(&made->bed, "EXISTS lock:a"), 1); /* it was executed */
    proxy_harm(&made->proxy, PROXY_PASS, "");
    redis_bed_await(&made->bed, "EXISTS lock:a", 0); /* long before its lease is over */
    assert_int_equal(redis_bed_number(&made->bed, "ZCARD {lock:a}:gone"), 1);
    pair(made);
}

static void test_an_acquire_that_is_cut_off_happens_not_at_all(void **state)
{
    scene *made = *state;
    sneck_error error;
    pair(made);
    proxy_harm(&made->proxy, PROXY_CUT_BEFORE, "EVALSHA");
    EXPECT(SNECK_UNKNOWN, sneck_acquire(made->lock, 0, &error));
    assert_int_equal(redis_bed_number(&made->bed, "EXISTS lock:a"), 0);
    proxy_harm(&made->proxy, PROXY_PASS, "");
    pair(made);
}

static void test_an_acquire_that_arrives_after_its_chase_is_refused(void **state)
{
    scene *made = *state;
    sneck_error error;
    pair(made);
    made->proxy.request_delay_ms = 1000;
    EXPECT(SNECK_UNKNOWN, sneck_acquire(made->lock, 0, &error));
    long long before = scripts_run(&made->bed);
    made->proxy.request_delay_ms = 0; /* what comes now overtakes it */
    redis_bed_await(&made->bed, "ZCARD {lock:a}:gone", 1);
    int64_t limit_ms = test_now_ms() + TEST_PATIENCE_MS;
    while (scripts_run(&made->bed) < before + 2) {
        assert_true(test_now_ms() < limit_ms); /* the chase, and then the acquire */
        assert_int_equal(redis_bed_number(&made->bed, "EXISTS lock:a"), 0);
        redis_bed_pause(5);
    }
    assert_int_equal(redis_bed_number(&made->bed, "EXISTS lock:a"), 0);
    assert_in_range(redis_bed_number(&made->bed, "PTTL {lock:a}:gone"), 500000, 600000);
    pair(made);
}

typedef struct waiting {
    scene *made;
    int64_t wait_ms;
    sneck_status status;
} waiting;

static void *wait_for_lock(void *argument)
{
    waiting *self = argument;
    sneck_error error;
    self->status = sneck_acquire(self->made->lock, self->wait_ms, &error);
    if (self->status == SNECK_OK)
        (void)sneck_release(self->made->lock, &error);
    return NULL;
}

static void test_a_waiter_whose_answer_is_late_gives_up_and_leaves_nothing(void **state)
{
    scene *made = *state;
    sneck_error error;
    pair(made);
    sneck_lock *holder = test_mutex(made->direct, "a", NULL);
    EXPECT(SNECK_OK, sneck_acquire(holder, 0, &error));
    for (int i = 0; i < 4; i++) {
        made->proxy.reply_delay_ms = i % 2 == 0 ? 400 : 150; /* beyond the timeout, and within it */
        sneck_status status = sneck_acquire(made->lock, 100, &error);
        assert_true(status == SNECK_TIMEOUT || status == SNECK_UNKNOWN);
        made->proxy.reply_delay_ms = 0;
        redis_bed_await(&made->bed, "EXISTS {lock:a}:queue {lock:a}:queue:info {lock:a}:queue:until", 0);
    }
    EXPECT(SNECK_OK, sneck_release(holder, &error));
    sneck_lock_free(holder);
}

static void test_a_waiter_whose_answer_is_lost_goes_on_waiting(void **state)
{
    scene *made = *state;
    sneck_error error;
    pair(made);
    sneck_lock *holder = test_mutex(made->direct, "a", NULL);
    EXPECT(SNECK_OK, sneck_acquire(holder, 0, &error));
    waiting self = { .made = made, .wait_ms = 20000 };
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, wait_for_lock, &self), 0);
    redis_bed_await(&made->bed, "ZCARD {lock:a}:queue", 1);
    for (int i = 0; i < 3; i++) {
        int cuts = made->proxy.cuts;
        proxy_harm(&made->proxy, i % 2 == 0 ? PROXY_CUT_AFTER : PROXY_CUT_BEFORE, "EVALSHA");
        int64_t limit_ms = test_now_ms() + TEST_PATIENCE_MS;
        while (made->proxy.cuts == cuts) {
            assert_true(test_now_ms() < limit_ms);
            redis_bed_pause(1);
        }
        proxy_harm(&made->proxy, PROXY_PASS, "");
    }
    EXPECT(SNECK_OK, sneck_release(holder, &error));
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(self.status, SNECK_OK);
    sneck_lock_free(holder);
}

static void test_a_release_whose_answer_is_lost_is_unknown_and_then_true(void **state)
{
    scene *made = *state;
    sneck_error error;
    pair(made);
    EXPECT(SNECK_OK, sneck_acquire(made->lock, 0, &error));
    proxy_harm(&made->proxy, PROXY_CUT_BEFORE, "EVALSHA");
    EXPECT(SNECK_UNKNOWN, sneck_release(made->lock, &error));
    assert_int_equal(redis_bed_number(&made->bed, "EXISTS lock:a"), 1);
    proxy_harm(&made->proxy, PROXY_PASS, "");
    redis_bed_await(&made->bed, "EXISTS lock:a", 0);
}

/* S2: what was asked often and answered late or never counts from when it was asked. */
static void test_renewals_that_are_not_answered_lengthen_no_belief(void **state)
{
    scene *made = *state;
    sneck_error error;
    pair(made);
    EXPECT(SNECK_OK, sneck_acquire(made->lock, 0, &error));
    proxy_harm(&made->proxy, PROXY_STALL_REPLIES, "");
    /* The clock is read on the side that a halt of this thread makes no longer belief of. */
    int64_t remaining_ms = sneck_remaining_ms(made->lock);
    int64_t until_ms = test_now_ms() + remaining_ms;
    while (remaining_ms > 0) {
        assert_int_not_equal(sneck_extend(made->lock, LEASE_MS, &error), SNECK_OK);
        int64_t now_ms = test_now_ms();
        remaining_ms = sneck_remaining_ms(made->lock);
        assert_true(remaining_ms == 0 || now_ms + remaining_ms <= until_ms + 5);
    }
    EXPECT(SNECK_LOST, sneck_release(made->lock, &error));
    proxy_harm(&made->proxy, PROXY_PASS, "");
}

/* ---- Loss in time ---- */

enum {
    LOCKS = 16
};

/* Asks the server and, right after, the holder, until all keys are gone: none must be while its holder believes. */
static void watch_the_end(scene *made, sneck_lock *const locks[LOCKS])
{
    unsigned gone = 0;
    while (gone < LOCKS) {
        gone = 0;
        for (unsigned i = 0; i < LOCKS; i++) {
            bool exists = redis_bed_number(&made->bed, "EXISTS lock:trial%u", i) == 1;
            if (!exists && sneck_is_held(locks[i]))
                fail_msg("trial %u: held, but the key is gone", i);
            gone += !exists;
        }
    }
}

/* One client with some locks, whose way to the server is harmed at a random moment, in a random way. */
static void lose_all(scene *made, unsigned *seed)
{
    static const proxy_mode modes[] = { PROXY_STALL_REQUESTS, PROXY_STALL_REPLIES, PROXY_CUT_BEFORE, PROXY_CUT_AFTER };
    static fault_proxy proxy; /* of its own: one serves only so many connections */
    assert_true(proxy_start(&proxy, made->bed.server.port));
    sneck_error error;
    sneck_client *client = NULL;
    sneck_lock *locks[LOCKS];
    sneck_client_options options = SNECK_CLIENT_OPTIONS_INIT;
    options.lease_ms = 300;
    EXPECT(SNECK_OK, sneck_open(redis_bed_url_at(proxy.port, "timeout=2000"), &options, &client, &error));
    for (unsigned i = 0; i < LOCKS; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "trial%u", i);
        locks[i] = test_mutex(client, name, NULL);
        EXPECT(SNECK_OK, sneck_acquire(locks[i], 5000, &error));
    }
    redis_bed_pause(rand_r(seed) % 200);
    proxy_harm(&proxy, modes[(unsigned)rand_r(seed) % 4], "EVALSHA");
    watch_the_end(made, locks);
    proxy_harm(&proxy, PROXY_PASS, "");
    for (unsigned i = 0; i < LOCKS; i++)
        sneck_lock_free(locks[i]);
    sneck_close(client);
    proxy_stop(&proxy);
}

static void test_loss_is_reported_before_the_key_can_expire(void **state)
{
    unsigned trials = test_scaled(1000);
    unsigned seed = (unsigned)snk_now_ns();
    for (unsigned i = 0; i < trials; i += LOCKS)
        lose_all(*state, &seed);
    printf("# figure: loss was known before the key could expire in all of %u trials\n", trials);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_an_acquire_whose_answer_is_lost_is_given_back),
        TEST(test_an_acquire_that_is_cut_off_happens_not_at_all),
        TEST(test_an_acquire_that_arrives_after_its_chase_is_refused),
        TEST(test_a_waiter_whose_answer_is_late_gives_up_and_leaves_nothing),
        TEST(test_a_waiter_whose_answer_is_lost_goes_on_waiting),
        TEST(test_a_release_whose_answer_is_lost_is_unknown_and_then_true),
        TEST(test_renewals_that_are_not_answered_lengthen_no_belief),
        TEST(test_loss_is_reported_before_the_key_can_expire),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
