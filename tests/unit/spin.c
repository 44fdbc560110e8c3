/* When waiting awake is worth a try. */
#include "base/spin.h"
#include "test.h"

/* Waits in vain once; how many waits are slept through after that. */
static uint32_t skips_after_a_wait_in_vain(snk_spin *spin)
{
    assert_true(snk_spin_begin(spin));
    snk_spin_end(spin, false);
    uint32_t skips = 0;
    while (!snk_spin_begin(spin))
        skips++;
    return skips;
}

static void waits_in_vain_become_rare(void **state)
{
    (void)state;
    snk_spin spin = { 0 };
    uint32_t expected = 0;
    for (int i = 0; i < 20; i++) {
        assert_int_equal(skips_after_a_wait_in_vain(&spin), expected);
        expected = expected < SNK_SPIN_SKIPS_MAX ? 2 * expected + 1 : expected;
    }
    assert_int_equal(expected, SNK_SPIN_SKIPS_MAX);
}

static void one_that_paid_is_followed_by_the_next(void **state)
{
    (void)state;
    snk_spin spin = { 0 };
    for (int i = 0; i < 5; i++)
        (void)skips_after_a_wait_in_vain(&spin);
    assert_true(snk_spin_begin(&spin));
    snk_spin_end(&spin, true);
    assert_true(snk_spin_begin(&spin));
    snk_spin_end(&spin, true);
    assert_int_equal(skips_after_a_wait_in_vain(&spin), 0);
    assert_int_equal(skips_after_a_wait_in_vain(&spin), 1);
}

static void a_wait_that_takes_too_long_ends(void **state)
{
    (void)state;
    snk_spin spin = { 0 };
    assert_true(snk_spin_begin(&spin));
    assert_in_range(spin.until_ns, 1, snk_now_ns() + SNK_SPIN_NS);
    spin.until_ns = snk_now_ns();
    assert_false(snk_spin_goes_on(&spin));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waits_in_vain_become_rare),
        cmocka_unit_test(one_that_paid_is_followed_by_the_next),
        cmocka_unit_test(a_wait_that_takes_too_long_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
