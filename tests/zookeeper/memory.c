/*
 * Out of memory: acquire and release are tried with their first allocation failing, on whatever thread it is made, then
 * the second, and so on until none fails. Each ends in time, as done or with a status that says that it was not, or that
 * nobody knows; nothing stays behind, and the next attempt works.
 */
#include "test.h"

#include "allocations.h"
#include "bed.h"
#include "zookeeper_bed.h"

#define ALLOCATIONS_MAX 2000

static bool is_fair(sneck_status status)
{
    return status == SNECK_OK || status == SNECK_NO_MEMORY || status == SNECK_UNAVAILABLE || status == SNECK_UNKNOWN;
}

static void test_acquire_and_release_fail_cleanly(void **state)
{
    (void)state;
    sneck_error error;
    if (!allocations_can_fail()) {
        test_skip("sanitizers have an allocator of their own");
        return;
    }
    const zookeeper_server *server = zookeeper_bed_server();
    zookeeper_scene made = zookeeper_scene_open(zookeeper_bed_url(server->port, "timeout=2s"), 30000);
    zookeeper_scene other = zookeeper_scene_open(zookeeper_bed_url(server->port, NULL), 30000);
    (void)zookeeper_scene_pair(&made); /* its folder is there */
    allocations_spare_libraries();     /* the client of the Apache project does not look whether it got any */
    int failures = 0;
    for (int allowed = 0; allowed < ALLOCATIONS_MAX; allowed++) {
        allocations_fail_one(allowed);
        sneck_status acquired = sneck_acquire(made.lock, 0, &error);
        sneck_status released = acquired == SNECK_OK ? sneck_release(made.lock, &error) : SNECK_OK;
        bool has_failed = allocations_fail_none();
        if (!is_fair(acquired) || !is_fair(released))
            fail_msg("%d: %s, %s: %s", allowed, sneck_status_name(acquired), sneck_status_name(released),
                     error.message);
        zookeeper_scene_await_claims(&other, 0); /* what was left is chased */
        (void)zookeeper_scene_pair(&made);
        if (!has_failed)
            break;
        failures++;
    }
    assert_in_range(failures, 1, ALLOCATIONS_MAX - 1);
    printf("# figure: ZooKeeper acquire and release: %d allocations failed, one at a time\n", failures);
    zookeeper_scene_close(&other);
    zookeeper_scene_close(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_acquire_and_release_fail_cleanly, zookeeper_bed_set_up),
    };
    int failed = cmocka_run_group_tests_name("zookeeper memory", tests, NULL, NULL);
    zookeeper_bed_stop();
    return failed;
}
