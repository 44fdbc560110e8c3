#include "test.h"

#include "engine/deadline.h"

#define MS SNK_NS_PER_MS

static void test_the_lease_counts_from_before_the_request_left(void **state)
{
    (void)state;
    assert_true(snk_deadline_of(1000 * MS, 1000 * MS) == 1000 * MS + 900 * MS - SNK_MARGIN_NS);
}

static void test_two_clocks_five_percent_off_never_overlap(void **state)
{
    (void)state;
    /* Ours runs 5 % slow, the store's 5 % fast: in true time our hold must end first. */
    for (int64_t lease_ns = 100 * MS; lease_ns <= 60000 * MS; lease_ns *= 2) {
        double ours = (double)snk_deadline_of(0, lease_ns) / 0.95;
        double stores = (double)lease_ns / 1.05;
        assert_true(ours < stores);
    }
}

static void test_a_passed_deadline_is_lost_for_good(void **state)
{
    (void)state;
    snk_deadline deadline;
    snk_deadline_set(&deadline, 100);
    assert_true(snk_deadline_holds(&deadline, 99));
    assert_false(snk_deadline_holds(&deadline, 100));
    assert_true(snk_deadline_peek(&deadline) == SNK_DEADLINE_LOST);
    assert_false(snk_deadline_holds(&deadline, 50));
    assert_false(snk_deadline_raise(&deadline, 50, 200));
    assert_true(snk_deadline_peek(&deadline) == SNK_DEADLINE_LOST);
}

static void test_an_answer_after_the_deadline_revives_nothing(void **state)
{
    (void)state;
    snk_deadline deadline;
    snk_deadline_set(&deadline, 100);
    assert_false(snk_deadline_raise(&deadline, 100, 200));
    assert_true(snk_deadline_peek(&deadline) == SNK_DEADLINE_LOST);
}

static void test_a_raise_never_shortens(void **state)
{
    (void)state;
    snk_deadline deadline;
    snk_deadline_set(&deadline, 100);
    assert_true(snk_deadline_raise(&deadline, 10, 50));
    assert_true(snk_deadline_peek(&deadline) == 100);
    assert_true(snk_deadline_raise(&deadline, 10, 150));
    assert_true(snk_deadline_peek(&deadline) == 150);
}

static void test_nothing_held_is_not_held(void **state)
{
    (void)state;
    snk_deadline deadline;
    snk_deadline_set(&deadline, SNK_DEADLINE_NONE);
    assert_false(snk_deadline_holds(&deadline, 1));
    assert_true(snk_deadline_peek(&deadline) == SNK_DEADLINE_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_lease_counts_from_before_the_request_left),
        cmocka_unit_test(test_two_clocks_five_percent_off_never_overlap),
        cmocka_unit_test(test_a_passed_deadline_is_lost_for_good),
        cmocka_unit_test(test_an_answer_after_the_deadline_revives_nothing),
        cmocka_unit_test(test_a_raise_never_shortens),
        cmocka_unit_test(test_nothing_held_is_not_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
