/* Many processes on one lock: what a hand-off costs, and that tokens rise whatever happens. */
#include "test.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "bed.h"
#include "children.h"
#include "postgres_bed.h"

enum {
    CROWD = 16
};

/* Shared between the processes. */
typedef struct board {
    _Atomic bool go;
    _Atomic bool stop;
    _Atomic int inside;
    _Atomic unsigned overlaps;
    _Atomic unsigned failures; /* acquires and releases that said so */
    _Atomic unsigned pairs;
    _Atomic uint64_t highest;
    _Atomic unsigned lower; /* tokens that came too late */
} board;

typedef struct job {
    char url[256];
    board *shared;
    int64_t lease_ms;
    unsigned pairs; /* of all together; 0: until it is stopped */
} job;

static board *new_board(void)
{
    board *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(shared != MAP_FAILED);
    return shared;
}

static void note_hold(board *shared, const sneck_lock *lock)
{
    uint64_t token = sneck_token(lock);
    if (token == 0)
        return; /* lost meanwhile: it has none to show */
    if (atomic_fetch_add(&shared->inside, 1) != 0)
        (void)atomic_fetch_add(&shared->overlaps, 1);
    if (atomic_exchange(&shared->highest, token) >= token)
        (void)atomic_fetch_add(&shared->lower, 1);
    (void)atomic_fetch_sub(&shared->inside, 1);
    (void)atomic_fetch_add(&shared->pairs, 1);
}

static bool goes_on(const job *self)
{
    return !atomic_load(&self->shared->stop) && (self->pairs == 0 || atomic_load(&self->shared->pairs) < self->pairs);
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
        postgres_bed_pause(1);
    while (goes_on(self)) {
        if (sneck_acquire(lock, 60000, &error) != SNECK_OK) {
            (void)atomic_fetch_add(&shared->failures, 1);
            postgres_bed_pause(5);
            continue;
        }
        note_hold(shared, lock);
        if (sneck_release(lock, &error) != SNECK_OK)
            (void)atomic_fetch_add(&shared->failures, 1);
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

/* ---- What a hand-off costs ---- */

/* Looks (calls of renew) for each hand-off while 16 processes wait: with a herd it would be 15. */
static void hand_off(postgres_bed *bed, const char *keys, double most)
{
    test_child children[CROWD];
    board *shared = new_board();
    job work = { .shared = shared, .lease_ms = 30000 };
    (void)snprintf(work.url, sizeof work.url, "%s", postgres_bed_url(bed, keys));
    postgres_bed_do(bed, "SELECT pg_stat_reset()");
    start(children, &work, CROWD);
    atomic_store(&shared->go, true);
    int64_t began_ns = snk_now_ns();
    postgres_bed_pause(500 + test_scaled(5000));
    /* Looks before the first turn weigh less the more turns there are, however slow the machine is. */
    while (atomic_load(&shared->pairs) < 100 && snk_now_ns() - began_ns < TEST_PATIENCE_MS * SNK_NS_PER_MS)
        postgres_bed_pause(10);
    double seconds = (double)(snk_now_ns() - began_ns) / 1e9;
    atomic_store(&shared->stop, true);
    join(children, CROWD);
    unsigned pairs = atomic_load(&shared->pairs);
    double looks = (double)postgres_bed_calls(bed, "sneck_renew") / pairs;
    printf("# figure: PostgreSQL %s: %d processes on one lock: %.0f turns/s, %.2f looks for each\n", keys, CROWD,
           pairs / seconds, looks);
    assert_int_equal(atomic_load(&shared->overlaps), 0);
    assert_int_equal(atomic_load(&shared->lower), 0);
    assert_int_equal(atomic_load(&shared->failures), 0);
    assert_true(pairs > 50);
    assert_true(looks < most);
    (void)munmap(shared, sizeof *shared);
}

static void test_a_release_wakes_one_of_sixteen_processes(void **state)
{
    /* One look by whoever was granted it, and one of each process when it begins to listen. */
    hand_off(*state, "mode=lease", 1.5);
}

static void test_a_release_of_a_row_wakes_one_of_sixteen_processes(void **state)
{
    /* Here the one that is granted the lock looks twice: before it has the row, and after. */
    hand_off(*state, "mode=row", 3.0);
}

/* ---- Tokens ---- */

static void test_tokens_rise_through_faults_and_restarts(void **state)
{
    postgres_bed *bed = *state;
    enum {
        WORKERS = 6,
        RESTARTS = 3
    };
    test_child children[WORKERS];
    board *shared = new_board();
    job work = { .shared = shared, .lease_ms = 2000, .pairs = test_scaled(10000) };
    (void)snprintf(work.url, sizeof work.url, "%s", postgres_bed_url(bed, "timeout=500"));
    start(children, &work, WORKERS);
    atomic_store(&shared->go, true);
    unsigned rounds = 0;
    unsigned restarts = 0;
    while (atomic_load(&shared->pairs) < work.pairs) {
        postgres_bed_pause(30);
        if (restarts < RESTARTS && atomic_load(&shared->pairs) > work.pairs * (restarts + 1) / (RESTARTS + 1)) {
            postgres_bed_crash(bed);
            postgres_bed_restart(bed);
            restarts++;
        } else if (rounds++ % 5 == 0) {
            postgres_bed_do(bed, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'sneck'"
                                 " AND random() < 0.3");
        }
    }
    join(children, WORKERS);
    printf("# figure: PostgreSQL: %u acquisitions with %u restarts and %u rounds of ended sessions (%u calls failed):"
           " %u tokens out of order\n",
           atomic_load(&shared->pairs), restarts, rounds, atomic_load(&shared->failures), atomic_load(&shared->lower));
    assert_int_equal(restarts, RESTARTS);
    assert_int_equal(atomic_load(&shared->lower), 0);
    assert_int_equal(atomic_load(&shared->overlaps), 0);
    postgres_bed_await(bed, "SELECT count(*) FROM sneck_queue", 0);
    (void)munmap(shared, sizeof *shared);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, postgres_bed_set_up, postgres_bed_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_a_release_wakes_one_of_sixteen_processes),
        TEST(test_a_release_of_a_row_wakes_one_of_sixteen_processes),
        TEST(test_tokens_rise_through_faults_and_restarts),
    };
    return cmocka_run_group_tests(tests, NULL, postgres_bed_end);
}
