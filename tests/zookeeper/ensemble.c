/* Three servers: the leader dies, a follower dies, and clients go on with the others. */
#include "test.h"

#include <pthread.h>
#include <string.h>

#include "bed.h"
#include "zookeeper_bed.h"

static zookeeper_server servers[ZOOKEEPER_ENSEMBLE];

static int start_ensemble(void **state)
{
    (void)state;
    if (!zookeeper_server_exists())
        return 0;
    return zookeeper_ensemble_start(servers, NULL) ? 0 : 1;
}

static int stop_ensemble(void **state)
{
    (void)state;
    for (int i = 0; i < ZOOKEEPER_ENSEMBLE; i++)
        zookeeper_server_stop(&servers[i]);
    return 0;
}

static const char *url_of_all(const char *path)
{
    static char url[256];
    if (!zookeeper_server_exists())
        test_skip("there is no ZooKeeper server on this machine");
    (void)snprintf(url, sizeof url, "zk://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d%s?timeout=20s", servers[0].port,
                   servers[1].port, servers[2].port, path);
    return url;
}

static zookeeper_server *find_mode(const char *mode)
{
    for (int i = 0; i < ZOOKEEPER_ENSEMBLE; i++) {
        if (strstr(zookeeper_server_ask(&servers[i], "srvr"), mode) != NULL)
            return &servers[i];
    }
    fail_msg("no server says %s", mode);
    return NULL;
}

typedef struct waiting {
    const zookeeper_scene *made;
    uint64_t token;
} waiting;

static void *wait_for_lock(void *argument)
{
    waiting *self = argument;
    self->token = zookeeper_scene_pair(self->made);
    return NULL;
}

/* One holds, one waits, a server dies: both go on, and the order stays. */
static void expect_survival(const char *path, const char *mode)
{
    sneck_error error;
    zookeeper_scene holder = zookeeper_scene_open(url_of_all(path), 30000);
    zookeeper_scene made = zookeeper_scene_open(url_of_all(path), 30000);
    EXPECT(SNECK_OK, sneck_acquire(holder.lock, 0, &error));
    uint64_t token = sneck_token(holder.lock);
    waiting self = { .made = &made };
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, wait_for_lock, &self), 0);
    zookeeper_scene_await_claims(&holder, 2);
    zookeeper_server *victim = find_mode(mode);
    zookeeper_server_kill(victim);
    EXPECT(SNECK_OK, sneck_extend(holder.lock, 30000, &error));
    assert_true(sneck_token(holder.lock) == token);
    EXPECT(SNECK_OK, sneck_release(holder.lock, &error));
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(self.token > token);
    assert_true(zookeeper_scene_pair(&holder) > self.token);
    zookeeper_scene_close(&made);
    zookeeper_scene_close(&holder);
    assert_true(zookeeper_server_restart(victim));
}

static void test_holder_and_waiter_survive_the_death_of_the_leader(void **state)
{
    (void)state;
    expect_survival("/leader", "Mode: leader");
}

static void test_holder_and_waiter_survive_the_death_of_a_follower(void **state)
{
    (void)state;
    expect_survival("/follower", "Mode: follower");
}

static void test_without_a_majority_nothing_is_granted_and_the_hold_is_lost_in_time(void **state)
{
    (void)state;
    sneck_error error;
    zookeeper_scene made = zookeeper_scene_open(url_of_all("/majority"), 4000);
    EXPECT(SNECK_OK, sneck_acquire(made.lock, 0, &error));
    uint64_t token = sneck_token(made.lock);
    zookeeper_server_kill(&servers[0]);
    zookeeper_server_kill(&servers[1]);
    assert_in_range(zookeeper_scene_await_loss(&made), 0, 4000);
    EXPECT(SNECK_LOST, sneck_release(made.lock, &error));
    sneck_status status = sneck_acquire(made.lock, 1000, &error);
    assert_true(status == SNECK_UNAVAILABLE || status == SNECK_UNKNOWN || status == SNECK_TIMEOUT);
    assert_true(zookeeper_server_restart(&servers[0]));
    assert_true(zookeeper_scene_pair(&made) > token);
    assert_true(zookeeper_server_restart(&servers[1]));
    zookeeper_scene_close(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_holder_and_waiter_survive_the_death_of_the_leader),
        cmocka_unit_test(test_holder_and_waiter_survive_the_death_of_a_follower),
        cmocka_unit_test(test_without_a_majority_nothing_is_granted_and_the_hold_is_lost_in_time),
    };
    return cmocka_run_group_tests_name("zookeeper ensemble", tests, start_ensemble, stop_ensemble);
}
