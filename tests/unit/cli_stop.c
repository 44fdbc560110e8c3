#include "test.h"

#include "engine/deadline.h"
#include "page.h"
#include "stop.h"

static void test_it_is_due_early_enough_to_be_killed_by_the_deadline(void **state)
{
    (void)state;
    snk_stop stop = { .kill_after_ns = 50 };
    snk_stop_look(&stop, 1000);
    assert_false(snk_stop_is_due(&stop, 949));
    assert_true(snk_stop_is_due(&stop, 950));
    assert_true(snk_stop_kill_at(&stop, 950) == 1000);
}

static void test_a_renewal_puts_it_off(void **state)
{
    (void)state;
    snk_stop stop = { .kill_after_ns = 50 };
    snk_stop_look(&stop, 1000);
    snk_stop_look(&stop, 2000);
    assert_false(snk_stop_is_due(&stop, 1000));
    assert_true(snk_stop_due_at(&stop) == 1950);
}

static void test_a_loss_is_due_at_once_and_cannot_be_undone(void **state)
{
    (void)state;
    snk_stop stop = { .kill_after_ns = 50 };
    snk_stop_look(&stop, 1000);
    snk_stop_look(&stop, SNK_DEADLINE_LOST);
    assert_true(snk_stop_is_due(&stop, 100));
    snk_stop_look(&stop, 5000);
    assert_true(snk_stop_is_due(&stop, 100));
}

static void test_after_a_sudden_loss_there_is_time_to_clean_up(void **state)
{
    (void)state;
    snk_stop stop = { .kill_after_ns = 50 };
    snk_stop_look(&stop, 1000);
    snk_stop_look(&stop, SNK_DEADLINE_LOST);
    assert_true(snk_stop_kill_at(&stop, 100) == 150);
    /* … but not past the deadline that was known, and none when there was none. */
    assert_true(snk_stop_kill_at(&stop, 980) == 1000);
    snk_stop unknown = { .kill_after_ns = 50 };
    snk_stop_look(&unknown, SNK_DEADLINE_NONE);
    assert_true(snk_stop_is_due(&unknown, 1));
    assert_true(snk_stop_kill_at(&unknown, 100) <= 100);
}

static void test_of_several_locks_the_first_that_ends_counts(void **state)
{
    (void)state;
    int fd = -1;
    snk_page *page = snk_page_new(&fd);
    assert_non_null(page);
    page->lock_count = 3;
    atomic_store(&page->deadlines_ns[0], 300);
    atomic_store(&page->deadlines_ns[1], 100);
    atomic_store(&page->deadlines_ns[2], 200);
    assert_true(snk_page_deadline(page) == 100);
    snk_page *again = snk_page_map(fd);
    atomic_store(&again->deadlines_ns[2], SNK_DEADLINE_LOST);
    assert_true(snk_page_deadline(page) == SNK_DEADLINE_LOST);
    snk_page_unmap(again);
    snk_page_unmap(page);
}

static void test_the_group_is_told_once(void **state)
{
    (void)state;
    snk_page page = { 0 };
    assert_true(snk_page_begin_stop(&page, 7));
    assert_false(snk_page_begin_stop(&page, 8));
    assert_true(atomic_load(&page.stop_begun_ns) == 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_is_due_early_enough_to_be_killed_by_the_deadline),
        cmocka_unit_test(test_a_renewal_puts_it_off),
        cmocka_unit_test(test_a_loss_is_due_at_once_and_cannot_be_undone),
        cmocka_unit_test(test_after_a_sudden_loss_there_is_time_to_clean_up),
        cmocka_unit_test(test_of_several_locks_the_first_that_ends_counts),
        cmocka_unit_test(test_the_group_is_told_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
