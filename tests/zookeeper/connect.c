/* How soon a client has a connection again, and what it does about servers that accept one and say nothing. */
#include "test.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bed.h"
#include "zookeeper_bed.h"

/* The pauses of the library below are a 60th of the session: nearly a minute with this one. */
#define LONG_LEASE_MS 3000000

static void test_a_long_session_is_no_reason_to_come_back_late(void **state)
{
    (void)state;
    sneck_error error;
    zookeeper_server *server = zookeeper_bed_server();
    zookeeper_scene made = zookeeper_scene_open(zookeeper_bed_url(server->port, "timeout=20s"), LONG_LEASE_MS);
    EXPECT(SNECK_OK, sneck_acquire(made.lock, 0, &error));
    assert_true(zookeeper_server_restart(server));
    int64_t begin_ms = test_now_ms();
    EXPECT(SNECK_OK, sneck_release(made.lock, &error));
    print_message("# figure: a release that found no connection took %d ms\n", (int)(test_now_ms() - begin_ms));
    zookeeper_scene_close(&made);
}

/*
 * A listener whose connections nobody ever takes: to a client it is a server that accepts them and is silent. So are
 * servers that have just been started: they forget who greets them too early.
 */
static int listen_silently(int *port_out)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 64), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
    *port_out = ntohs(address.sin_port);
    return fd;
}

/* The library begins with any of its servers, so a few clients are opened: that all of them are lucky is no chance. */
static void test_a_server_that_is_silent_is_given_up_for_another(void **state)
{
    (void)state;
    enum {
        CLIENTS = 10
    };
    int silent_port = 0;
    char url[128];
    const zookeeper_server *server = zookeeper_bed_server();
    int fd = listen_silently(&silent_port);
    (void)snprintf(url, sizeof url, "zk://127.0.0.1:%d,127.0.0.1:%d/test/silent?timeout=4s", silent_port, server->port);
    for (int i = 0; i < CLIENTS; i++) {
        zookeeper_scene made = zookeeper_scene_open(url, 30000);
        (void)zookeeper_scene_pair(&made);
        zookeeper_scene_close(&made);
    }
    (void)close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_a_long_session_is_no_reason_to_come_back_late, zookeeper_bed_set_up),
        cmocka_unit_test_setup(test_a_server_that_is_silent_is_given_up_for_another, zookeeper_bed_set_up),
    };
    int failed = cmocka_run_group_tests_name("zookeeper connect", tests, NULL, NULL);
    zookeeper_bed_stop();
    return failed;
}
