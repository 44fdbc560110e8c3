/* Many processes on one lock: what a hand-off costs, and that tokens rise whatever happens. */
#include "test.h"

#include <string.h>

#include "base/clock.h"
#include "bed.h"
#include "children.h"
#include "sql_bed.h"
#include "turns.h"

enum {
    CROWD = 16
};

/* What the server is asked for each hand-off while 16 processes wait: with a herd it would be 15 looks. */
static void test_a_release_wakes_one_of_sixteen_processes(void **state)
{
    sql_bed *bed = *state;
    test_child children[CROWD];
    turns work;
    turns_init(&work, sql_bed_url(bed, NULL), 30000);
    turns_board *shared = work.board;
    turns_start(&work, children, CROWD);
    if (bed->server->work_reset != NULL)
        bed->server->run(bed->bed, bed->server->work_reset);
    long long before = sql_bed_number(bed, bed->server->work);
    atomic_store(&shared->go, true);
    int64_t began_ns = snk_now_ns();
    sql_bed_pause(500 + test_scaled(5000));
    /* Looks before the first turn weigh less the more turns there are, however slow the machine is. */
    while (atomic_load(&shared->pairs) < 100 && snk_now_ns() - began_ns < TEST_PATIENCE_MS * SNK_NS_PER_MS)
        sql_bed_pause(10);
    double seconds = (double)(snk_now_ns() - began_ns) / 1e9;
    atomic_store(&shared->stop, true);
    turns_join(children, CROWD);
    unsigned pairs = atomic_load(&shared->pairs);
    double cost = (double)(sql_bed_number(bed, bed->server->work) - before) / pairs;
    printf("# figure: %s %s: %d processes on one lock: %.0f turns/s, %.2f %s for each\n", bed->server->name, bed->mode,
           CROWD, pairs / seconds, cost, bed->server->work_unit);
    turns_expect_clean(&work);
    assert_true(pairs > 50);
    assert_true(cost < (strcmp(bed->mode, "mode=row") == 0 ? bed->server->work_row : bed->server->work_lease));
    turns_deinit(&work);
}

/* ---- Tokens ---- */

static void test_tokens_rise_through_faults_and_restarts(void **state)
{
    sql_bed *bed = *state;
    enum {
        WORKERS = 6,
        RESTARTS = 3
    };
    test_child children[WORKERS];
    turns work;
    turns_init(&work, sql_bed_url(bed, "timeout=500"), 2000);
    work.pairs = test_scaled(10000);
    turns_board *shared = work.board;
    turns_start(&work, children, WORKERS);
    atomic_store(&shared->go, true);
    unsigned rounds = 0;
    unsigned restarts = 0;
    while (atomic_load(&shared->pairs) < work.pairs) {
        sql_bed_pause(30);
        if (restarts < RESTARTS && atomic_load(&shared->pairs) > work.pairs * (restarts + 1) / (RESTARTS + 1)) {
            bed->server->crash(bed->bed);
            bed->server->restart(bed->bed);
            restarts++;
        } else if (rounds++ % 5 == 0) {
            bed->server->run(bed->bed, bed->server->end_sessions);
        }
    }
    turns_join(children, WORKERS);
    printf("# figure: %s %s: %u acquisitions with %u restarts and %u rounds of ended sessions (%u calls failed):"
           " %u tokens out of order\n",
           bed->server->name, bed->mode, atomic_load(&shared->pairs), restarts, rounds / 5,
           atomic_load(&shared->failures), atomic_load(&shared->lower));
    assert_int_equal(restarts, RESTARTS);
    assert_int_equal(atomic_load(&shared->lower), 0);
    assert_int_equal(atomic_load(&shared->overlaps), 0);
    sql_bed_await(bed, "SELECT count(*) FROM sneck_queue", 0);
    turns_deinit(&work);
}

int main(void)
{
    const sql_test tests[] = {
        { "test_a_release_wakes_one_of_sixteen_processes", test_a_release_wakes_one_of_sixteen_processes,
          SQL_LEASE | SQL_ROW },
        { "test_tokens_rise_through_faults_and_restarts", test_tokens_rise_through_faults_and_restarts, SQL_LEASE },
    };
    return sql_bed_run("crowd", tests, sizeof tests / sizeof tests[0], NULL, NULL);
}
