/* Many processes on one lock: what a hand-off costs, and how an outage is waited out. */
#include "test.h"

#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "bed.h"
#include "children.h"
#include "redis_bed.h"
#include "turns.h"

enum {
    CROWD_MAX = 32
};

static long long stat_of(redis_bed *bed, const char *section, const char *name)
{
    const char *found = strstr(redis_bed_text(bed, "INFO %s", section), name);
    return found == NULL ? 0 : strtoll(found + strlen(name), NULL, 10);
}

/* ---- What a hand-off costs ---- */

/* Scripts for each pair of acquire and release when `count` processes take turns. */
static double scripts_per_pair(redis_bed *bed, unsigned count, double *pairs_per_s)
{
    test_child children[CROWD_MAX];
    turns work;
    turns_init(&work, redis_bed_url(bed, NULL), 30000);
    turns_board *shared = work.board;
    turns_start(&work, children, count);
    atomic_store(&shared->go, true);
    redis_bed_pause(200);
    redis_bed_do(bed, "CONFIG RESETSTAT");
    unsigned before = atomic_load(&shared->pairs);
    int64_t begin_ns = snk_now_ns();
    redis_bed_pause(test_scaled(5000));
    unsigned pairs = atomic_load(&shared->pairs) - before;
    long long scripts = stat_of(bed, "commandstats", "cmdstat_evalsha:calls=");
    *pairs_per_s = pairs * 1e9 / (double)(snk_now_ns() - begin_ns);
    atomic_store(&shared->stop, true);
    turns_join(children, count);
    turns_expect_clean(&work);
    assert_true(pairs > 0);
    turns_deinit(&work);
    return (double)scripts / pairs;
}

static void test_what_a_hand_off_costs_does_not_grow_with_those_who_wait(void **state)
{
    redis_bed *bed = *state;
    double few_pairs = 0;
    double many_pairs = 0;
    double few = scripts_per_pair(bed, 2, &few_pairs);
    double many = scripts_per_pair(bed, CROWD_MAX, &many_pairs);
    printf("# figure: scripts per hand-off: %.2f with 2 processes, %.2f with %d; %.0f and %.0f hand-offs/s\n", few,
           many, CROWD_MAX, few_pairs, many_pairs);
    assert_true(many < 4); /* acquire, the first renewal, release */
    assert_string_equal(redis_bed_keys(bed), "{lock:a}:log {lock:a}:token");
}

/* ---- An outage ---- */

static void test_an_outage_is_waited_out_without_a_storm(void **state)
{
    redis_bed *bed = *state;
    enum {
        COUNT = 16
    };
    test_child children[COUNT];
    turns work;
    turns_init(&work, redis_bed_url(bed, NULL), 2000);
    work.rounds = 3;
    turns_board *shared = work.board;
    turns_start(&work, children, COUNT); /* before there are threads here */
    sneck_error error;
    sneck_client *client = redis_bed_open(bed, NULL, NULL);
    sneck_lock *lock = test_mutex(client, "a", NULL);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    atomic_store(&shared->go, true);
    redis_bed_await(bed, "ZCARD {lock:a}:queue", COUNT);
    redis_bed_pause(200); /* and all of them have been told so: from now on an outage is waited out */
    redis_bed_crash(bed, false);
    redis_bed_pause(test_scaled(10000));
    redis_bed_restart(bed);
    int64_t begin_ms = test_now_ms();
    turns_join(children, COUNT);
    int64_t took_ms = test_now_ms() - begin_ms;
    long long connects = stat_of(bed, "stats", "total_connections_received:");
    printf("# figure: %d processes had the lock %u times within %lld ms after the server was back; %lld connections\n",
           COUNT, work.rounds, (long long)took_ms, connects);
    assert_int_equal(atomic_load(&shared->pairs) + atomic_load(&shared->failures), COUNT * work.rounds);
    turns_expect_clean(&work);
    assert_true(took_ms < 15000);
    assert_true(connects <= 4LL * (COUNT + 2));
    sneck_lock_free(lock);
    sneck_close(client);
    turns_deinit(&work);
}

/* ---- Long holds ---- */

static void test_a_hold_of_three_leases_under_load_is_never_lost(void **state)
{
    redis_bed *bed = *state;
    enum {
        COUNT = 4,
        HOLDS = 64
    };
    test_child children[COUNT];
    turns work;
    turns_init(&work, redis_bed_url(bed, NULL), 1000);
    turns_board *shared = work.board;
    turns_start(&work, children, COUNT);
    atomic_store(&shared->go, true);
    sneck_error error;
    sneck_client_options options = SNECK_CLIENT_OPTIONS_INIT;
    options.lease_ms = 1000;
    sneck_client *client = redis_bed_open(bed, NULL, &options);
    sneck_lock *locks[HOLDS];
    for (int i = 0; i < HOLDS; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "long%d", i);
        locks[i] = test_mutex(client, name, NULL);
        EXPECT(SNECK_OK, sneck_acquire(locks[i], 0, &error));
    }
    redis_bed_pause(3500);
    for (int i = 0; i < HOLDS; i++) {
        assert_true(sneck_is_held(locks[i]));
        EXPECT(SNECK_OK, sneck_release(locks[i], &error));
        sneck_lock_free(locks[i]);
    }
    atomic_store(&shared->stop, true);
    turns_join(children, COUNT);
    assert_int_equal(atomic_load(&shared->overlaps), 0);
    sneck_close(client);
    turns_deinit(&work);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, redis_bed_set_up, redis_bed_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_what_a_hand_off_costs_does_not_grow_with_those_who_wait),
        TEST(test_an_outage_is_waited_out_without_a_storm),
        TEST(test_a_hold_of_three_leases_under_load_is_never_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
