/* Many processes on one lock: what a hand-off costs, and how an outage is waited out. */
#include "test.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "bed.h"
#include "children.h"
#include "redis_bed.h"

enum {
    CROWD_MAX = 32
};

/* Shared between the processes. */
typedef struct board {
    _Atomic bool go;
    _Atomic bool stop;
    _Atomic int inside;
    _Atomic unsigned overlaps;
    _Atomic unsigned failures;
    _Atomic unsigned waiting;
    _Atomic unsigned pairs;
    _Atomic uint64_t highest;
    _Atomic unsigned lower; /* tokens that came too late */
} board;

typedef struct job {
    char url[256];
    board *shared;
    int64_t lease_ms;
    unsigned rounds; /* 0: until it is stopped */
} job;

static board *new_board(void)
{
    board *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(shared != MAP_FAILED);
    return shared;
}

static void note_hold(board *shared, uint64_t token)
{
    if (atomic_fetch_add(&shared->inside, 1) != 0)
        (void)atomic_fetch_add(&shared->overlaps, 1);
    if (atomic_exchange(&shared->highest, token) >= token)
        (void)atomic_fetch_add(&shared->lower, 1);
    (void)atomic_fetch_sub(&shared->inside, 1);
    (void)atomic_fetch_add(&shared->pairs, 1);
}

static int take_turns(void *context)
{
    job *self = context;
    board *shared = self->shared;
    sneck_error error;
    sneck_client *client = NULL;
    sneck_lock *lock = NULL;
    sneck_client_options options = SNECK_CLIENT_OPTIONS_INIT;
    options.lease_ms = self->lease_ms;
    CHECK(sneck_open(self->url, &options, &client, &error) == SNECK_OK);
    CHECK(sneck_mutex(client, "a", NULL, &lock, &error) == SNECK_OK);
    test_child_ready();
    while (!atomic_load(&shared->go))
        redis_bed_pause(1);
    for (unsigned i = 0; (self->rounds == 0 || i < self->rounds) && !atomic_load(&shared->stop); i++) {
        (void)atomic_fetch_add(&shared->waiting, 1);
        sneck_status status = sneck_acquire(lock, 60000, &error);
        (void)atomic_fetch_sub(&shared->waiting, 1);
        if (status != SNECK_OK) {
            fprintf(stderr, "# acquire: %s %s\n", sneck_status_name(status), error.message);
            (void)atomic_fetch_add(&shared->failures, 1);
            continue;
        }
        note_hold(shared, sneck_token(lock));
        if (sneck_release(lock, &error) != SNECK_OK) {
            fprintf(stderr, "# release: %s %s\n", sneck_status_name(error.status), error.message);
            (void)atomic_fetch_add(&shared->failures, 1);
        }
    }
    sneck_lock_free(lock);
    sneck_close(client);
    return 0;
}

static void start(test_child children[], job *work, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        children[i] = test_child_start(take_turns, work);
    for (unsigned i = 0; i < count; i++)
        test_child_await(&children[i]);
}

static void join(test_child children[], unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(test_child_join(&children[i]), 0);
}

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
    board *shared = new_board();
    job work = { .shared = shared, .lease_ms = 30000 };
    (void)snprintf(work.url, sizeof work.url, "%s", redis_bed_url(bed, NULL));
    start(children, &work, count);
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
    join(children, count);
    assert_int_equal(atomic_load(&shared->overlaps), 0);
    assert_int_equal(atomic_load(&shared->lower), 0);
    assert_int_equal(atomic_load(&shared->failures), 0);
    assert_true(pairs > 0);
    (void)munmap(shared, sizeof *shared);
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
    board *shared = new_board();
    job work = { .shared = shared, .lease_ms = 2000, .rounds = 3 };
    (void)snprintf(work.url, sizeof work.url, "%s", redis_bed_url(bed, NULL));
    start(children, &work, COUNT); /* before there are threads here */
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
    join(children, COUNT);
    int64_t took_ms = test_now_ms() - begin_ms;
    long long connects = stat_of(bed, "stats", "total_connections_received:");
    printf("# figure: %d processes had the lock %u times within %lld ms after the server was back; %lld connections\n",
           COUNT, work.rounds, (long long)took_ms, connects);
    assert_int_equal(atomic_load(&shared->pairs) + atomic_load(&shared->failures), COUNT * work.rounds);
    assert_int_equal(atomic_load(&shared->failures), 0);
    assert_int_equal(atomic_load(&shared->overlaps), 0);
    assert_int_equal(atomic_load(&shared->lower), 0);
    assert_true(took_ms < 15000);
    assert_true(connects <= 4LL * (COUNT + 2));
    sneck_lock_free(lock);
    sneck_close(client);
    (void)munmap(shared, sizeof *shared);
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
    board *shared = new_board();
    job work = { .shared = shared, .lease_ms = 1000 };
    (void)snprintf(work.url, sizeof work.url, "%s", redis_bed_url(bed, NULL));
    start(children, &work, COUNT);
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
    join(children, COUNT);
    assert_int_equal(atomic_load(&shared->overlaps), 0);
    sneck_close(client);
    (void)munmap(shared, sizeof *shared);
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
