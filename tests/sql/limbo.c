/* Requests and answers that get lost or come late, through a proxy: nothing is left behind, and no belief lengthened. */
#include "test.h"

#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "base/limits.h"
#include "bed.h"
#include "proxy.h"
#include "sql_bed.h"

#define LEASE_MS 2000

typedef struct scene {
    sql_bed *bed;
    fault_proxy proxy;
    sneck_client *client; /* through the proxy */
    sneck_client *direct;
    sneck_lock *lock;
} scene;

static scene made_scene;

static void make_scene(sql_bed *bed)
{
    scene *made = &made_scene;
    *made = (scene){ .bed = bed };
    assert_true(proxy_start(&made->proxy, bed->server->port(bed->bed)));
    sneck_error error;
    sneck_client_options options = SNECK_CLIENT_OPTIONS_INIT;
    options.lease_ms = LEASE_MS;
    EXPECT(SNECK_OK, sneck_open(sql_bed_url_at(bed, made->proxy.port, "timeout=400"), &options, &made->client, &error));
    made->direct = sql_bed_open(bed, "timeout=400", LEASE_MS);
    made->lock = test_mutex(made->client, "a", NULL);
    bed->extra = made;
}

static const char claims[] = "SELECT (SELECT count(*) FROM sneck_hold) + (SELECT count(*) FROM sneck_queue)";
static const char holds[] = "SELECT count(*) FROM sneck_hold";

static void end_scene(sql_bed *bed)
{
    scene *made = bed->extra;
    proxy_harm(&made->proxy, PROXY_PASS, "");
    made->proxy.request_delay_ms = 0;
    made->proxy.reply_delay_ms = 0;
    sneck_lock_free(made->lock);
    sneck_close(made->client);
    sneck_close(made->direct);
    /* Whatever happened: nothing is left of it, and the count in the row of the lock says so too. */
    sql_bed_await(bed, claims, 0);
    sql_bed_await(bed, "SELECT coalesce(sum(claims), 0) FROM sneck_state", 0);
    proxy_stop(&made->proxy);
}

static scene *scene_of(void **state)
{
    return ((sql_bed *)*state)->extra;
}

static void pair(const scene *made)
{
    sneck_error error;
    EXPECT(SNECK_OK, sneck_acquire(made->lock, 5000, &error));
    EXPECT(SNECK_OK, sneck_release(made->lock, &error));
}

static void test_an_acquire_that_is_cut_off_after_its_commit_is_given_back(void **state)
{
    scene *made = scene_of(state);
    sneck_error error;
    pair(made);
    proxy_harm(&made->proxy, PROXY_CUT_AFTER, "sneck_acquire");
    EXPECT(SNECK_UNKNOWN, sneck_acquire(made->lock, 0, &error));
    assert_int_equal(sql_bed_number(made->bed, holds), 1); /* it was committed */
    proxy_harm(&made->proxy, PROXY_PASS, "");
    sql_bed_await(made->bed, holds, 0); /* long before its lease is over */
    assert_int_equal(sql_bed_number(made->bed, "SELECT count(*) FROM sneck_tombstone"), 1);
    pair(made);
}

static void test_an_acquire_that_is_cut_off_before_it_arrives_does_not_happen(void **state)
{
    scene *made = scene_of(state);
    sneck_error error;
    pair(made);
    proxy_harm(&made->proxy, PROXY_CUT_BEFORE, "sneck_acquire");
    EXPECT(SNECK_UNKNOWN, sneck_acquire(made->lock, 0, &error));
    assert_int_equal(sql_bed_number(made->bed, holds), 0);
    proxy_harm(&made->proxy, PROXY_PASS, "");
    pair(made);
}

/* The acquire waits on the server for the row of the lock, and its client has long given it up. */
static void test_an_acquire_that_runs_after_its_chase_is_refused(void **state)
{
    scene *made = scene_of(state);
    sneck_error error;
    pair(made);
    long long before = sql_bed_number(made->bed, "SELECT token FROM sneck_state");
    made->proxy.request_delay_ms = 1000;
    EXPECT(SNECK_UNKNOWN, sneck_acquire(made->lock, 0, &error));
    made->proxy.request_delay_ms = 0; /* what comes now overtakes it */
    sql_bed_await(made->bed, "SELECT count(*) FROM sneck_tombstone", 1);
    int64_t until_ms = test_now_ms() + 1500;
    while (test_now_ms() < until_ms) {
        assert_int_equal(sql_bed_number(made->bed, holds), 0);
        sql_bed_pause(5);
    }
    assert_int_equal(sql_bed_number(made->bed, "SELECT token FROM sneck_state"), before);
    pair(made);
}

static void test_a_release_whose_answer_is_lost_is_unknown_and_then_true(void **state)
{
    scene *made = scene_of(state);
    sneck_error error;
    pair(made);
    EXPECT(SNECK_OK, sneck_acquire(made->lock, 0, &error));
    proxy_harm(&made->proxy, PROXY_CUT_BEFORE, "sneck_release");
    sneck_status status = sneck_release(made->lock, &error);
    assert_int_equal(status, SNECK_UNKNOWN);
    proxy_harm(&made->proxy, PROXY_PASS, "");
    sql_bed_await(made->bed, holds, 0);
}

static void test_a_release_that_is_cut_off_after_its_commit_is_unknown_and_done(void **state)
{
    scene *made = scene_of(state);
    sneck_error error;
    pair(made);
    EXPECT(SNECK_OK, sneck_acquire(made->lock, 0, &error));
    int cuts = made->proxy.cuts;
    proxy_harm(&made->proxy, PROXY_CUT_AFTER, "sneck_release");
    EXPECT(SNECK_UNKNOWN, sneck_release(made->lock, &error));
    assert_true(made->proxy.cuts > cuts);
    assert_int_equal(sql_bed_number(made->bed, holds), 0); /* it was committed */
    proxy_harm(&made->proxy, PROXY_PASS, "");
    pair(made);
}

typedef struct waiting {
    scene *made;
    sneck_status status;
} waiting;

static void *wait_for_lock(void *argument)
{
    waiting *self = argument;
    sneck_error error;
    self->status = sneck_acquire(self->made->lock, 20000, &error);
    if (self->status == SNECK_OK)
        (void)sneck_release(self->made->lock, &error);
    return NULL;
}

static void test_a_waiter_whose_answers_are_lost_goes_on_waiting(void **state)
{
    scene *made = scene_of(state);
    sneck_error error;
    pair(made);
    sneck_lock *holder = test_mutex(made->direct, "a", NULL);
    EXPECT(SNECK_OK, sneck_acquire(holder, 0, &error));
    waiting self = { .made = made };
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, wait_for_lock, &self), 0);
    sql_bed_await(made->bed, "SELECT count(*) FROM sneck_queue", 1);
    for (int i = 0; i < 3; i++) {
        int cuts = made->proxy.cuts;
        proxy_harm(&made->proxy, i % 2 == 0 ? PROXY_CUT_AFTER : PROXY_CUT_BEFORE, "sneck_renew");
        int64_t limit_ms = test_now_ms() + TEST_PATIENCE_MS;
        while (made->proxy.cuts == cuts) {
            assert_true(test_now_ms() < limit_ms);
            sql_bed_pause(1);
        }
        proxy_harm(&made->proxy, PROXY_PASS, "");
    }
    EXPECT(SNECK_OK, sneck_release(holder, &error));
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(self.status, SNECK_OK);
    sneck_lock_free(holder);
}

static void test_a_waiter_that_gives_up_while_nothing_answers_leaves_nothing(void **state)
{
    scene *made = scene_of(state);
    sneck_error error;
    pair(made);
    sneck_lock *holder = test_mutex(made->direct, "a", NULL);
    EXPECT(SNECK_OK, sneck_acquire(holder, 0, &error));
    for (int i = 0; i < 2; i++) {
        made->proxy.reply_delay_ms = i % 2 == 0 ? 600 : 50; /* beyond the timeout, and within it */
        sneck_status status = sneck_acquire(made->lock, 100, &error);
        if (status != SNECK_TIMEOUT && status != SNECK_UNKNOWN && status != SNECK_UNAVAILABLE)
            fail_msg("%s: %s", sneck_status_name(status), error.message);
        made->proxy.reply_delay_ms = 0;
        sql_bed_await(made->bed, "SELECT count(*) FROM sneck_queue", 0);
    }
    EXPECT(SNECK_OK, sneck_release(holder, &error));
    sneck_lock_free(holder);
}

/* S2: what was asked often and answered late or never counts from when it was asked. */
static void test_renewals_that_are_not_answered_lengthen_no_belief(void **state)
{
    scene *made = scene_of(state);
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
    LOCKS = 8
};

static bool hold_lasts(sql_bed *bed, unsigned number)
{
    sneck_error error;
    char name[16];
    bool lasts = false;
    (void)snprintf(name, sizeof name, "trial%u", number);
    sneck_info *info = NULL;
    scene *made = bed->extra;
    EXPECT(SNECK_OK, sneck_inspect(made->direct, name, &info, &error));
    lasts = info->held;
    sneck_info_free(info);
    return lasts;
}

/* Asks the server and, right after, the holder, until all holds are over: none must be while its holder believes. */
static void watch_the_end(scene *made, sneck_lock *const locks[LOCKS])
{
    unsigned gone = 0;
    while (gone < LOCKS) {
        gone = 0;
        for (unsigned i = 0; i < LOCKS; i++) {
            bool exists = hold_lasts(made->bed, i);
            if (!exists && sneck_is_held(locks[i]))
                fail_msg("trial %u: held, but the hold is over", i);
            gone += !exists;
        }
    }
}

/* One client with some locks, whose way to the server is harmed at a random moment, in a random way. */
static void lose_all(scene *made, unsigned *seed)
{
    static const proxy_mode modes[] = { PROXY_STALL_REQUESTS, PROXY_STALL_REPLIES, PROXY_CUT_BEFORE, PROXY_CUT_AFTER };
    static fault_proxy proxy; /* of its own: one serves only so many connections */
    assert_true(proxy_start(&proxy, made->bed->server->port(made->bed->bed)));
    sneck_error error;
    sneck_client *client = NULL;
    sneck_lock *locks[LOCKS];
    sneck_client_options options = SNECK_CLIENT_OPTIONS_INIT;
    options.lease_ms = 500;
    EXPECT(SNECK_OK, sneck_open(sql_bed_url_at(made->bed, proxy.port, "timeout=2000"), &options, &client, &error));
    for (unsigned i = 0; i < LOCKS; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "trial%u", i);
        locks[i] = test_mutex(client, name, NULL);
        EXPECT(SNECK_OK, sneck_acquire(locks[i], 5000, &error));
    }
    sql_bed_pause(rand_r(seed) % 300);
    proxy_harm(&proxy, modes[(unsigned)rand_r(seed) % 4], "sneck_renew");
    watch_the_end(made, locks);
    proxy_harm(&proxy, PROXY_PASS, "");
    for (unsigned i = 0; i < LOCKS; i++)
        sneck_lock_free(locks[i]);
    sneck_close(client);
    proxy_stop(&proxy);
}

static void test_loss_is_reported_before_the_hold_can_be_over(void **state)
{
    unsigned trials = test_scaled(400);
    unsigned seed = (unsigned)snk_now_ns();
    for (unsigned i = 0; i < trials; i += LOCKS)
        lose_all(scene_of(state), &seed);
    printf("# figure: %s: loss was known before the hold could be over in all of %u trials\n",
           scene_of(state)->bed->server->name, trials);
}

/* A server that vanished without a word: nothing is cut, nothing comes. */
static void test_half_open_connections_are_given_up_and_replaced(void **state)
{
    scene *made = scene_of(state);
    sneck_error error;
    pair(made);
    proxy_harm(&made->proxy, PROXY_STALL_REQUESTS, "");
    int64_t began_ms = test_now_ms();
    sneck_status status = sneck_acquire(made->lock, 0, &error);
    assert_true(status == SNECK_UNKNOWN || status == SNECK_UNAVAILABLE);
    assert_in_range(test_now_ms() - began_ms, 0, 5000);
    while (made->proxy.resets == 0) /* given up so that the kernel does not deliver it later */
        assert_true(test_now_ms() < began_ms + TEST_PATIENCE_MS);
    proxy_harm(&made->proxy, PROXY_PASS, "");
    pair(made);
}

int main(void)
{
#define BOTH(function)                                                                                                 \
    {                                                                                                                  \
#function, function, SQL_LEASE | SQL_ROW                                                                       \
    }
#define LEASE(function)                                                                                                \
    {                                                                                                                  \
#function, function, SQL_LEASE                                                                                 \
    }
    const sql_test tests[] = {
        BOTH(test_an_acquire_that_is_cut_off_after_its_commit_is_given_back),
        BOTH(test_an_acquire_that_is_cut_off_before_it_arrives_does_not_happen),
        LEASE(test_an_acquire_that_runs_after_its_chase_is_refused),
        BOTH(test_a_release_whose_answer_is_lost_is_unknown_and_then_true),
        BOTH(test_a_release_that_is_cut_off_after_its_commit_is_unknown_and_done),
        BOTH(test_a_waiter_whose_answers_are_lost_goes_on_waiting),
        BOTH(test_a_waiter_that_gives_up_while_nothing_answers_leaves_nothing),
        BOTH(test_renewals_that_are_not_answered_lengthen_no_belief),
        LEASE(test_half_open_connections_are_given_up_and_replaced),
        LEASE(test_loss_is_reported_before_the_hold_can_be_over),
    };
    return sql_bed_run("limbo", tests, sizeof tests / sizeof tests[0], make_scene, end_scene);
}
