#include "test.h"

#include "base/limits.h"
#include "engine/renewal.h"

#define S SNK_NS_PER_S

static void test_each_interval_counts_from_when_the_last_one_left(void **state)
{
    (void)state;
    snk_renewal renewal;
    snk_renewal_begin(&renewal, 10 * S, 100 * S);
    assert_false(snk_renewal_is_due(&renewal, 110 * S - 1));
    assert_true(snk_renewal_is_due(&renewal, 110 * S));
    snk_renewal_sent(&renewal);
    assert_false(snk_renewal_is_due(&renewal, 119 * S));
    snk_renewal_succeeded(&renewal, 10 * S, 110 * S, 119 * S);
    assert_true(renewal.next_at_ns == 120 * S);
    assert_true(renewal.renewed_at_ns == 119 * S);
}

static void test_a_failure_is_tried_again_soon_and_then_less_often(void **state)
{
    (void)state;
    snk_renewal renewal;
    snk_renewal_begin(&renewal, 10 * S, 0);
    snk_renewal_failed(&renewal, 10 * S, 10 * S);
    assert_true(renewal.next_at_ns == 10 * S + SNK_BACKOFF_NS_MIN);
    snk_renewal_failed(&renewal, 10 * S, 11 * S);
    assert_true(renewal.next_at_ns == 11 * S + 2 * SNK_BACKOFF_NS_MIN);
    for (int i = 0; i < 100; i++)
        snk_renewal_failed(&renewal, 10 * S, 12 * S);
    assert_true(renewal.next_at_ns == 12 * S + SNK_BACKOFF_NS_MAX);
    snk_renewal_succeeded(&renewal, 10 * S, 13 * S, 13 * S);
    assert_int_equal(renewal.failures, 0);
}

static void test_the_pause_fits_a_short_interval(void **state)
{
    (void)state;
    snk_renewal renewal;
    int64_t interval_ns = 33 * SNK_NS_PER_MS;
    snk_renewal_begin(&renewal, interval_ns, 0);
    snk_renewal_failed(&renewal, interval_ns, 0);
    assert_true(renewal.next_at_ns == interval_ns / 4);
}

static void test_a_fixed_lease_is_never_renewed(void **state)
{
    (void)state;
    snk_renewal renewal;
    snk_renewal_begin(&renewal, SNK_NEVER_NS, 5);
    assert_false(snk_renewal_is_due(&renewal, INT64_MAX - 1));
    snk_renewal_failed(&renewal, SNK_NEVER_NS, 5);
    assert_false(snk_renewal_is_due(&renewal, INT64_MAX - 1));
    snk_renewal_succeeded(&renewal, SNK_NEVER_NS, 6, 7);
    assert_false(snk_renewal_is_due(&renewal, INT64_MAX - 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_interval_counts_from_when_the_last_one_left),
        cmocka_unit_test(test_a_failure_is_tried_again_soon_and_then_less_often),
        cmocka_unit_test(test_the_pause_fits_a_short_interval),
        cmocka_unit_test(test_a_fixed_lease_is_never_renewed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
