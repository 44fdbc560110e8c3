/* The watchdog on a MariaDB server whose connections are half open, or that is away. */
#include "test.h"

#include "bed.h"
#include "mysql_bed.h"
#include "proxy.h"
#include "watched_link.h"

static void test_a_half_open_connection_is_made_anew(void **state)
{
    const mysql_bed *bed = *state;
    fault_proxy proxy;
    assert_true(proxy_start(&proxy, bed->server.port));
    test_half_open_is_found(mysql_bed_url_at(proxy.port, "timeout=60000"), &proxy);
    proxy_stop(&proxy);
}

static void crash(void *context)
{
    mysql_bed_crash(context);
}

static void restart(void *context)
{
    mysql_bed_restart(context);
}

static void test_a_server_that_is_away_is_found_and_found_again(void **state)
{
    mysql_bed *bed = *state;
    test_away_is_found(mysql_bed_url(bed, NULL), crash, restart, bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_half_open_connection_is_made_anew, mysql_bed_set_up,
                                        mysql_bed_tear_down),
        cmocka_unit_test_setup_teardown(test_a_server_that_is_away_is_found_and_found_again, mysql_bed_set_up,
                                        mysql_bed_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, mysql_bed_end);
}
