/* Several locks, of which one is on a server that hangs: the others are there for everybody else again. */
#include "test.h"

#include <pthread.h>
#include <string.h>

#include "bed.h"
#include "claims.h"
#include "proxy.h"
#include "redis_bed.h"

#define TIMEOUT_MS 1500 /* a machine that is busy must not be taken for a server that hangs */

typedef struct scene {
    fault_proxy proxy;
    char folder[64];
    sneck_client *clients[3]; /* in a file, on a server, in memory */
    sneck_client *direct;     /* past the proxy */
    sneck_lock *members[3];
    sneck_lock *all;
} scene;

static sneck_client *open_client(const char *url)
{
    sneck_error error;
    sneck_client *client = NULL;
    EXPECT(SNECK_OK, sneck_open(url, NULL, &client, &error));
    return client;
}

static void open_scene(scene *self, redis_bed *bed)
{
    sneck_error error;
    char url[256];
    assert_true(proxy_start(&self->proxy, bed->server.port));
    test_make_folder(self->folder, sizeof self->folder);
    (void)snprintf(url, sizeof url, "sqlite://%s/locks.db", self->folder);
    self->clients[0] = open_client(url);
    self->clients[1] = open_client(redis_bed_url_at(self->proxy.port, "timeout=1500"));
    self->clients[2] = open_client("memory:");
    self->direct = open_client(redis_bed_url(bed, NULL));
    for (int i = 0; i < 3; i++)
        self->members[i] = test_mutex(self->clients[i], "a", NULL);
    EXPECT(SNECK_OK, sneck_multi_lock(self->members, 3, &self->all, &error));
    EXPECT(SNECK_OK, sneck_acquire(self->all, 0, &error));
    EXPECT(SNECK_OK, sneck_release(self->all, &error));
}

static void close_scene(scene *self)
{
    sneck_lock_free(self->all);
    for (int i = 0; i < 3; i++) {
        sneck_lock_free(self->members[i]);
        sneck_close(self->clients[i]);
    }
    sneck_close(self->direct);
    proxy_stop(&self->proxy);
    test_remove_folder(self->folder);
}

static void await_free(sneck_client *client)
{
    int64_t until_ms = test_now_ms() + TEST_PATIENCE_MS;
    while (test_is_held_in_store(client, "a")) {
        assert_true(test_now_ms() < until_ms);
        redis_bed_pause(5);
    }
}

/* Whichever way it hangs: the request never arrives, or is executed and never answered. */
static void test_a_server_that_hangs_leaves_no_lock_of_the_others_held(void **state)
{
    static const proxy_mode modes[] = { PROXY_STALL_REQUESTS, PROXY_STALL_REPLIES };
    redis_bed *bed = *state;
    sneck_error error;
    scene self = { .direct = NULL };
    open_scene(&self, bed);
    for (int i = 0; i < 2; i++) {
        proxy_harm(&self.proxy, modes[i], "");
        int64_t from_ms = test_now_ms();
        sneck_status status = sneck_acquire(self.all, SNECK_FOREVER, &error);
        int64_t took_ms = test_now_ms() - from_ms;
        assert_true(status == SNECK_UNKNOWN || status == SNECK_UNAVAILABLE);
        assert_true(took_ms >= TIMEOUT_MS / 2 && took_ms < TEST_PATIENCE_MS);
        assert_false(test_is_held_in_store(self.clients[0], "a"));
        assert_false(test_is_held_in_store(self.clients[2], "a"));
        proxy_harm(&self.proxy, PROXY_PASS, "");
        await_free(self.direct); /* what was executed is chased */
        EXPECT(SNECK_OK, sneck_acquire(self.all, TEST_PATIENCE_MS, &error));
        EXPECT(SNECK_OK, sneck_release(self.all, &error));
    }
    close_scene(&self);
}

/* Given back at once where that can be, though another server says nothing. */
static void test_a_server_that_hangs_at_the_release_holds_up_no_other(void **state)
{
    redis_bed *bed = *state;
    sneck_error error;
    scene self = { .direct = NULL };
    open_scene(&self, bed);
    EXPECT(SNECK_OK, sneck_acquire(self.all, 0, &error));
    proxy_harm(&self.proxy, PROXY_STALL_REPLIES, "");
    sneck_status status = sneck_release(self.all, &error);
    assert_true(status == SNECK_UNKNOWN || status == SNECK_UNAVAILABLE);
    assert_false(test_is_held_in_store(self.clients[0], "a"));
    assert_false(test_is_held_in_store(self.clients[2], "a"));
    assert_false(sneck_is_held(self.all));
    proxy_harm(&self.proxy, PROXY_PASS, "");
    await_free(self.direct);
    close_scene(&self);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, redis_bed_set_up, redis_bed_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_a_server_that_hangs_leaves_no_lock_of_the_others_held),
        TEST(test_a_server_that_hangs_at_the_release_holds_up_no_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
