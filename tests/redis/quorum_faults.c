/* A quorum of nodes that die, stop, are restarted without their data, and are emptied: any two of five do no harm. */
#include "test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "bed.h"
#include "client/client.h"
#include "quorum_bed.h"
#include "store/quorum/quorum.h"

#define NODE_LIMIT_MS (QUORUM_LEASE_MAX_MS / 8) /* docs/quorum.md */
#define LATE_MAX 5

static quorum_bed nodes;

/* All nodes run and count again. */
static int mend(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < QUORUM_NODES; i++) {
        if (nodes.nodes[i].server.pid == 0)
            quorum_bed_revive(&nodes, i);
        else if (nodes.nodes[i].admin == NULL)
            quorum_bed_thaw(&nodes, i);
    }
    quorum_bed_await_ripe(&nodes);
    quorum_bed_clear(&nodes);
    return 0;
}

/* ---- Two of five ---- */

/* One client holds a lock all the while; two others pass another one on, and count. */
typedef struct scene {
    sneck_client *holder;
    sneck_client *workers[2];
    sneck_lock *held;
    sneck_lock *locks[2];
    uint64_t highest;
    unsigned count;
} scene;

static void open_scene(scene *self)
{
    sneck_error error;
    *self = (scene){ .holder = quorum_bed_open(&nodes, NULL) };
    self->held = test_mutex(self->holder, "held", NULL);
    EXPECT(SNECK_OK, sneck_acquire(self->held, 0, &error));
    /* A node whose vote came too late for the majority has it soon; until then two others are not to be missed. */
    quorum_bed_await_votes(&nodes, "held", QUORUM_NODES);
    for (int i = 0; i < 2; i++) {
        self->workers[i] = quorum_bed_open(&nodes, NULL);
        self->locks[i] = test_mutex(self->workers[i], "passed", NULL);
    }
}

static void close_scene(scene *self)
{
    sneck_error error;
    EXPECT(SNECK_OK, sneck_release(self->held, &error));
    sneck_lock_free(self->held);
    sneck_close(self->holder);
    for (int i = 0; i < 2; i++) {
        sneck_lock_free(self->locks[i]);
        sneck_close(self->workers[i]);
    }
}

/*
 * "Nobody knows" is the right answer if no majority answered in time, and on a slow machine one of three nodes that run may
 * be late, too. It comes no sooner than a node's time limit, and seldom.
 */
static bool was_late(sneck_status status, int64_t began_ms)
{
    static unsigned late;
    if (status != SNECK_UNKNOWN)
        return false;
    assert_true(test_now_ms() - began_ms >= NODE_LIMIT_MS);
    assert_true(++late <= LATE_MAX);
    return true;
}

static void expect_acquire(sneck_status expected, sneck_lock *lock, int64_t wait_ms)
{
    sneck_error error;
    sneck_status status;
    int64_t began_ms;
    do {
        began_ms = test_now_ms();
        status = sneck_acquire(lock, wait_ms, &error);
    } while (was_late(status, began_ms));
    EXPECT(expected, status);
}

/* One that may not have been heard is repeated in the background; whoever comes next waits for it. */
static void expect_release(sneck_lock *lock)
{
    sneck_error error;
    int64_t began_ms = test_now_ms();
    sneck_status status = sneck_release(lock, &error);
    if (!was_late(status, began_ms))
        EXPECT(SNECK_OK, status);
}

static void work(scene *self, unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++) {
        sneck_lock *lock = self->locks[i % 2];
        expect_acquire(SNECK_OK, lock, TEST_PATIENCE_MS);
        assert_true(sneck_token(lock) > self->highest);
        self->highest = sneck_token(lock);
        expect_acquire(SNECK_BUSY, self->locks[(i + 1) % 2], 0);
        expect_release(lock);
    }
}

/* The held lock is held, and nobody else's, for longer than a lease. */
static void expect_held(const scene *self, int64_t ms)
{
    sneck_lock *other = test_mutex(self->workers[0], "held", NULL);
    int64_t until_ms = test_now_ms() + ms;
    while (test_now_ms() < until_ms) {
        assert_true(sneck_is_held(self->held));
        expect_acquire(SNECK_BUSY, other, 0);
        redis_bed_pause(20);
    }
    sneck_lock_free(other);
}

/* The pairs of nodes that this run tries, of all ten. */
static unsigned pair_count(void)
{
    return test_scaled(10) > 2 ? test_scaled(10) : 2;
}

static void choose_pair(unsigned number, uint32_t pair[2])
{
    static const uint32_t pairs[10][2] = { { 0, 1 }, { 2, 4 }, { 1, 3 }, { 0, 4 }, { 2, 3 },
                                           { 0, 2 }, { 1, 4 }, { 3, 4 }, { 0, 3 }, { 1, 2 } };
    memcpy(pair, pairs[number % 10], sizeof pairs[0]);
}

static void test_any_two_may_be_dead_and_then_restarted_without_data(void **state)
{
    (void)state;
    scene self;
    for (unsigned number = 0; number < pair_count(); number++) {
        uint32_t pair[2];
        choose_pair(number, pair);
        open_scene(&self);
        work(&self, 4);
        for (int i = 0; i < 2; i++)
            quorum_bed_kill(&nodes, pair[i]);
        work(&self, 10);
        expect_held(&self, QUORUM_LEASE_MAX_MS + 500);
        for (int i = 0; i < 2; i++)
            quorum_bed_revive(&nodes, pair[i]);
        work(&self, 10);
        expect_held(&self, QUORUM_LEASE_MAX_MS + 500);
        work(&self, 4);
        close_scene(&self);
        assert_int_equal(mend(NULL), 0);
    }
}

static void test_any_two_may_be_stopped(void **state)
{
    (void)state;
    scene self;
    for (unsigned number = 0; number < pair_count(); number++) {
        uint32_t pair[2];
        choose_pair(number, pair);
        open_scene(&self);
        work(&self, 4);
        for (int i = 0; i < 2; i++)
            quorum_bed_freeze(&nodes, pair[i]);
        work(&self, 10);
        expect_held(&self, QUORUM_LEASE_MAX_MS + 500);
        for (int i = 0; i < 2; i++)
            quorum_bed_thaw(&nodes, pair[i]);
        work(&self, 10);
        close_scene(&self);
        /* What they were told while they were stopped does not lock them. */
        quorum_bed_await_votes(&nodes, "passed", 0);
        assert_int_equal(mend(NULL), 0);
    }
}

/* ---- Three of five ---- */

static void test_three_dead_nodes_grant_nothing_and_end_what_is_held(void **state)
{
    (void)state;
    sneck_error error;
    sneck_client *client = quorum_bed_open(&nodes, NULL);
    sneck_lock *held = test_mutex(client, "held", NULL);
    sneck_lock *lock = test_mutex(client, "asked", NULL);
    EXPECT(SNECK_OK, sneck_acquire(held, 0, &error));
    for (uint32_t i = 1; i < 4; i++)
        quorum_bed_kill(&nodes, i);
    int64_t before_ms = test_now_ms();
    sneck_status status = sneck_acquire(lock, 0, &error);
    assert_true(status == SNECK_UNAVAILABLE || status == SNECK_UNKNOWN);
    EXPECT(SNECK_UNAVAILABLE, sneck_acquire(lock, 0, &error));
    assert_true(test_now_ms() - before_ms < QUORUM_LEASE_MAX_MS);
    assert_non_null(strstr(error.message, "majority"));
    while (sneck_is_held(held)) {
        assert_true(test_now_ms() - before_ms < QUORUM_LEASE_MAX_MS);
        redis_bed_pause(5);
    }
    EXPECT(SNECK_LOST, sneck_release(held, &error));
    quorum_bed_await_votes(&nodes, "asked", 0);
    sneck_lock_free(lock);
    sneck_lock_free(held);
    sneck_close(client);
}

static void test_three_stopped_nodes_grant_nothing_in_bounded_time(void **state)
{
    (void)state;
    sneck_error error;
    sneck_client *client = quorum_bed_open(&nodes, NULL);
    sneck_lock *lock = test_mutex(client, "asked", NULL);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    for (uint32_t i = 0; i < 3; i++)
        quorum_bed_freeze(&nodes, i);
    for (int i = 0; i < 2; i++) {
        int64_t before_ms = test_now_ms();
        sneck_status status = sneck_acquire(lock, 0, &error);
        assert_true(status == SNECK_UNKNOWN || status == SNECK_UNAVAILABLE);
        assert_true(test_now_ms() - before_ms < QUORUM_LEASE_MAX_MS);
    }
    EXPECT(SNECK_UNAVAILABLE, (sneck_acquire(lock, 300, &error) == SNECK_UNKNOWN ? SNECK_UNAVAILABLE : error.status));
    for (uint32_t i = 0; i < 3; i++)
        quorum_bed_thaw(&nodes, i);
    /* What they find when they go on was taken back, and is refused if it comes after that. */
    EXPECT(SNECK_OK, sneck_acquire(lock, TEST_PATIENCE_MS, &error));
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    quorum_bed_await_votes(&nodes, "asked", 0);
    sneck_lock_free(lock);
    sneck_close(client);
}

static void test_three_nodes_without_memory_are_waited_for(void **state)
{
    (void)state;
    sneck_error error;
    sneck_client *client = quorum_bed_open(&nodes, NULL);
    sneck_client *other = quorum_bed_open(&nodes, NULL);
    sneck_lock *held = test_mutex(client, "held", NULL);
    sneck_lock *lock = test_mutex(other, "held", NULL);
    sneck_lock *fresh = test_mutex(other, "fresh", NULL);
    EXPECT(SNECK_OK, sneck_acquire_for(held, 0, QUORUM_LEASE_MAX_MS, &error));
    uint64_t token = sneck_token(held);
    for (uint32_t i = 2; i < 5; i++) {
        quorum_bed_kill(&nodes, i);
        quorum_bed_revive(&nodes, i);
    }
    /* They have forgotten the hold, and would vote for anybody; so they do not count. */
    do
        assert_int_not_equal(sneck_acquire(fresh, 0, &error), SNECK_OK); /* connections are made anew meanwhile */
    while (strstr(error.message, "count in") == NULL);
    EXPECT(SNECK_UNAVAILABLE, sneck_acquire(fresh, 0, &error));
    EXPECT(SNECK_UNAVAILABLE, sneck_acquire(fresh, 300, &error));
    do
        assert_int_not_equal(sneck_acquire(lock, 0, &error), SNECK_OK);
    while (sneck_is_held(held));
    EXPECT(SNECK_OK, sneck_acquire(lock, TEST_PATIENCE_MS, &error));
    assert_true(sneck_token(lock) > token);
    EXPECT(SNECK_OK, sneck_acquire(fresh, TEST_PATIENCE_MS, &error));
    EXPECT(SNECK_OK, sneck_release(fresh, &error));
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    EXPECT(SNECK_LOST, sneck_release(held, &error));
    sneck_lock_free(fresh);
    sneck_lock_free(lock);
    sneck_lock_free(held);
    sneck_close(other);
    sneck_close(client);
}

/* ---- Memory ---- */

static void test_a_hold_is_spread_to_nodes_that_forgot_it(void **state)
{
    (void)state;
    scene self;
    open_scene(&self);
    uint64_t token = sneck_token(self.held);
    char text[32];
    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)token);
    /* All five are restarted without data, two at a time: each time a majority remembers. */
    static const uint32_t pairs[3][2] = { { 0, 1 }, { 2, 3 }, { 4, 4 } };
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 2; j++) {
            if (j == 1 && pairs[i][1] == pairs[i][0])
                continue;
            quorum_bed_kill(&nodes, pairs[i][j]);
            quorum_bed_revive(&nodes, pairs[i][j]);
        }
        quorum_bed_await_votes(&nodes, "held", QUORUM_NODES);
    }
    assert_true(sneck_is_held(self.held));
    assert_true(sneck_token(self.held) == token);
    for (uint32_t i = 0; i < QUORUM_NODES; i++) {
        assert_string_equal(redis_bed_text(&nodes.nodes[i], "HGET lock:held ~token"), text);
        assert_string_equal(redis_bed_text(&nodes.nodes[i], "GET {lock:held}:token"), text);
        redis_bed_expect_limits(&nodes.nodes[i]);
    }
    expect_held(&self, 200);
    close_scene(&self);
    quorum_bed_await_votes(&nodes, "held", 0);
}

static void test_emptied_nodes_are_known_by_their_marker(void **state)
{
    (void)state;
    sneck_error error;
    scene self;
    open_scene(&self);
    uint64_t token = sneck_token(self.held);
    for (uint32_t i = 0; i < 2; i++)
        redis_bed_do(&nodes.nodes[i], "FLUSHALL");
    work(&self, 4);
    quorum_bed_await_votes(&nodes, "held", QUORUM_NODES); /* the other three remember it, and it is spread */
    expect_held(&self, 200);
    sneck_lock *other = test_mutex(self.workers[0], "held", NULL);
    for (uint32_t i = 0; i < 3; i++)
        redis_bed_do(&nodes.nodes[i], "FLUSHALL");
    assert_int_not_equal(sneck_acquire(other, 0, &error), SNECK_OK); /* two have it, and three do not count */
    EXPECT(SNECK_UNAVAILABLE, sneck_acquire(self.locks[0], 0, &error));
    assert_non_null(strstr(error.message, "emptied"));
    EXPECT(SNECK_LOST, sneck_release(self.held, &error)); /* a majority has lost it */
    EXPECT(SNECK_OK, sneck_acquire(other, TEST_PATIENCE_MS, &error));
    assert_true(sneck_token(other) > token);
    EXPECT(SNECK_OK, sneck_release(other, &error));
    sneck_lock_free(other);
    EXPECT(SNECK_OK, sneck_acquire(self.held, TEST_PATIENCE_MS, &error));
    close_scene(&self);
}

static void test_a_node_that_was_restarted_is_shown_as_young(void **state)
{
    (void)state;
    sneck_error error;
    sneck_info *info = NULL;
    sneck_client *client = quorum_bed_open(&nodes, NULL);
    quorum_bed_kill(&nodes, 1);
    quorum_bed_kill(&nodes, 2);
    quorum_bed_revive(&nodes, 2);
    do {
        sneck_info_free(info);
        EXPECT(SNECK_OK, sneck_inspect(client, "shown", &info, &error));
        redis_bed_pause(5);
    } while (strcmp(info->nodes[2].state, "young") != 0);
    assert_in_range(info->nodes[2].counts_in_ms, 1, QUORUM_LEASE_MAX_MS + 2000);
    assert_string_equal(info->nodes[1].state, "away");
    assert_true(strlen(info->nodes[1].trouble) > 0);
    assert_string_equal(info->nodes[0].state, "counts");
    sneck_info_free(info);
    sneck_close(client);
}

/*
 * Who asks finds a node down and tried by somebody else, and means to pass it over; before it says so to itself that try
 * succeeds. The state of that moment is made by hand.
 */
static void test_a_node_that_is_back_before_it_was_passed_over_is_asked(void **state)
{
    (void)state;
    sneck_error error;
    sneck_client *client = quorum_bed_open(&nodes, NULL);
    sneck_lock *lock = test_mutex(client, "back", NULL);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    quorum_bed_await_votes(&nodes, "back", QUORUM_NODES);
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    quorum_bed_await_votes(&nodes, "back", 0);
    snk_quorum_node *node = &snk_quorum_store_of(client->store)->nodes[4];
    atomic_store(&node->is_probed, true);
    atomic_store(&node->is_down, true);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    quorum_bed_await_votes(&nodes, "back", QUORUM_NODES);
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    quorum_bed_await_votes(&nodes, "back", 0);
    sneck_lock_free(lock);
    sneck_close(client);
}

/* ---- Waiting ---- */

typedef struct waiter {
    sneck_lock *lock;
    sneck_status status;
    int64_t got_at_ms;
} waiter;

static void *wait_for_it(void *context)
{
    waiter *self = context;
    sneck_error error;
    self->status = sneck_acquire(self->lock, TEST_PATIENCE_MS, &error);
    self->got_at_ms = test_now_ms();
    return NULL;
}

static void test_a_waiter_is_woken_with_two_nodes_dead(void **state)
{
    (void)state;
    sneck_error error;
    scene self;
    open_scene(&self);
    quorum_bed_kill(&nodes, 0);
    quorum_bed_kill(&nodes, 3);
    waiter waiting = { .lock = test_mutex(self.workers[0], "held", NULL) };
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, wait_for_it, &waiting), 0);
    test_await_waiting(self.workers[0], "held", 1);
    redis_bed_pause(300); /* it has been refused, and listens: the next look would be a third of a lease later */
    int64_t before_ms = test_now_ms();
    EXPECT(SNECK_OK, sneck_release(self.held, &error));
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(waiting.status, SNECK_OK);
    printf("# figure: quorum: a waiter has the lock %lld ms after its release, two of five nodes dead\n",
           (long long)(waiting.got_at_ms - before_ms));
    EXPECT(SNECK_OK, sneck_acquire(self.locks[0], TEST_PATIENCE_MS, &error));
    EXPECT(SNECK_OK, sneck_release(self.locks[0], &error));
    sneck_close(self.workers[0]);
    sneck_lock_free(waiting.lock);
    sneck_lock_free(self.locks[0]);
    sneck_lock_free(self.locks[1]);
    sneck_lock_free(self.held);
    sneck_close(self.workers[1]);
    sneck_close(self.holder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_any_two_may_be_stopped, mend),
        cmocka_unit_test_setup(test_any_two_may_be_dead_and_then_restarted_without_data, mend),
        cmocka_unit_test_setup(test_three_dead_nodes_grant_nothing_and_end_what_is_held, mend),
        cmocka_unit_test_setup(test_three_stopped_nodes_grant_nothing_in_bounded_time, mend),
        cmocka_unit_test_setup(test_three_nodes_without_memory_are_waited_for, mend),
        cmocka_unit_test_setup(test_a_hold_is_spread_to_nodes_that_forgot_it, mend),
        cmocka_unit_test_setup(test_emptied_nodes_are_known_by_their_marker, mend),
        cmocka_unit_test_setup(test_a_node_that_was_restarted_is_shown_as_young, mend),
        cmocka_unit_test_setup(test_a_node_that_is_back_before_it_was_passed_over_is_asked, mend),
        cmocka_unit_test_setup(test_a_waiter_is_woken_with_two_nodes_dead, mend),
    };
    quorum_bed_choose(&nodes, QUORUM_LEASE_MAX_MS, false);
    return cmocka_run_group_tests(tests, quorum_bed_set_up, quorum_bed_tear_down);
}
