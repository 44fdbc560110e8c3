/* The watchdog on a ZooKeeper server whose connections are half open, or that is away. */
#include "test.h"

#include "bed.h"
#include "proxy.h"
#include "watched_link.h"
#include "zookeeper_bed.h"

/* The library below would notice it after two thirds of the session, 23 s here; requests that time out do not. */
static void test_a_half_open_connection_is_made_anew(void **state)
{
    (void)state;
    fault_proxy proxy;
    assert_true(proxy_start(&proxy, zookeeper_bed_server()->port));
    test_half_open_is_found(zookeeper_bed_url(proxy.port, NULL), &proxy);
    proxy_stop(&proxy);
}

static void crash(void *context)
{
    zookeeper_server_kill(context);
}

static void restart(void *context)
{
    assert_true(zookeeper_server_restart(context));
}

static void test_a_server_that_is_away_is_found_and_found_again(void **state)
{
    (void)state;
    zookeeper_server *server = zookeeper_bed_server();
    test_away_is_found(zookeeper_bed_url(server->port, NULL), crash, restart, server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_a_half_open_connection_is_made_anew, zookeeper_bed_set_up),
        cmocka_unit_test_setup(test_a_server_that_is_away_is_found_and_found_again, zookeeper_bed_set_up),
    };
    int failed = cmocka_run_group_tests_name("zookeeper watchdog", tests, NULL, NULL);
    zookeeper_bed_stop();
    return failed;
}
