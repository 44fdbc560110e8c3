/* What an uncontended operation costs: one call to the store. */
#include "bed.h"
#include "faulty.h"

typedef struct cost {
    unsigned acquires;
    unsigned renewals;
    unsigned releases;
} cost;

static cost cost_so_far(test_faulty *faulty)
{
    return (cost){ .acquires = atomic_load(&faulty->calls[SNK_ASK_ACQUIRE]),
                   .renewals = atomic_load(&faulty->calls[SNK_ASK_RENEW]),
                   .releases = atomic_load(&faulty->calls[SNK_ASK_RELEASE]) };
}

static void expect_cost(test_faulty *faulty, unsigned acquires, unsigned releases)
{
    cost spent = cost_so_far(faulty);
    assert_int_equal(spent.acquires, acquires);
    assert_int_equal(spent.renewals, 0);
    assert_int_equal(spent.releases, releases);
}

static void test_a_read_lock_is_one_call_and_so_is_its_release(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    sneck_lock *lock = NULL;
    test_faulty *faulty = test_make_faulty(bed->client);
    sneck_status status = sneck_read_lock(bed->client, "r", NULL, &lock, &error);
    if (status == SNECK_UNSUPPORTED)
        test_skip(error.message);
    EXPECT(SNECK_OK, status);
    EXPECT(SNECK_OK, sneck_acquire(lock, SNECK_FOREVER, &error));
    expect_cost(faulty, 1, 0);
    EXPECT(SNECK_OK, sneck_acquire(lock, SNECK_FOREVER, &error));
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    expect_cost(faulty, 1, 0);
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    expect_cost(faulty, 1, 1);
    sneck_lock_free(lock);
}

static void test_a_permit_is_one_call_and_so_is_its_release(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    sneck_semaphore *semaphore = NULL;
    sneck_permit *permit = NULL;
    test_faulty *faulty = test_make_faulty(bed->client);
    sneck_status status = sneck_semaphore_open(bed->client, "s", NULL, &semaphore, &error);
    if (status == SNECK_UNSUPPORTED)
        test_skip(error.message);
    EXPECT(SNECK_OK, status);
    EXPECT(SNECK_OK, sneck_semaphore_set_permits(semaphore, 3, &error));
    expect_cost(faulty, 0, 0);
    EXPECT(SNECK_OK, sneck_semaphore_acquire(semaphore, 2, SNECK_FOREVER, &permit, &error));
    expect_cost(faulty, 1, 0);
    EXPECT(SNECK_OK, sneck_permit_release(permit, &error));
    expect_cost(faulty, 1, 1);
    sneck_semaphore_free(semaphore);
}

static void test_each_operation_of_an_open_latch_is_one_call(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    sneck_latch *latch = NULL;
    test_faulty *faulty = test_make_faulty(bed->client);
    sneck_status status = sneck_latch_open(bed->client, "l", NULL, &latch, &error);
    if (status == SNECK_UNSUPPORTED)
        test_skip(error.message);
    EXPECT(SNECK_OK, status);
    EXPECT(SNECK_OK, sneck_latch_set(latch, 1, &error));
    assert_int_equal(atomic_load(&faulty->tallies), 1);
    EXPECT(SNECK_OK, sneck_latch_count_down(latch, &error));
    assert_int_equal(atomic_load(&faulty->tallies), 2);
    EXPECT(SNECK_OK, sneck_latch_wait(latch, SNECK_FOREVER, &error));
    assert_int_equal(atomic_load(&faulty->tallies), 3);
    expect_cost(faulty, 0, 0);
    sneck_latch_free(latch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_read_lock_is_one_call_and_so_is_its_release),
        cmocka_unit_test(test_a_permit_is_one_call_and_so_is_its_release),
        cmocka_unit_test(test_each_operation_of_an_open_latch_is_one_call),
    };
    return test_run_kinds_on_stores(tests, sizeof tests / sizeof tests[0]);
}
