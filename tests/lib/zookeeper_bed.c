#include "zookeeper_bed.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "bed.h"

static zookeeper_server server;
static unsigned path;

zookeeper_server *zookeeper_bed_server(void)
{
    if (!zookeeper_server_exists())
        test_skip("there is no ZooKeeper server on this machine");
    if (server.pid == 0 && server.directory[0] == '\0')
        assert_true(zookeeper_server_start(&server, NULL));
    return &server;
}

void zookeeper_bed_stop(void)
{
    if (server.directory[0] != '\0')
        zookeeper_server_stop(&server);
}

int zookeeper_bed_set_up(void **state)
{
    (void)state;
    path++;
    return 0;
}

const char *zookeeper_bed_url(int port, const char *keys)
{
    static char url[256];
    (void)snprintf(url, sizeof url, "zk://127.0.0.1:%d/test/%u%s%s", port, path, keys == NULL ? "" : "?",
                   keys == NULL ? "" : keys);
    return url;
}

zookeeper_scene zookeeper_scene_open(const char *url, int64_t lease_ms)
{
    zookeeper_scene scene = { .client = NULL };
    sneck_error error;
    sneck_client_options options = SNECK_CLIENT_OPTIONS_INIT;
    options.lease_ms = lease_ms;
    EXPECT(SNECK_OK, sneck_open(url, &options, &scene.client, &error));
    scene.lock = test_mutex(scene.client, "a", NULL);
    return scene;
}

void zookeeper_scene_close(zookeeper_scene *scene)
{
    sneck_lock_free(scene->lock);
    sneck_close(scene->client);
}

int64_t zookeeper_scene_await_loss(const zookeeper_scene *scene)
{
    int64_t begin_ms = test_now_ms();
    assert_true(test_readable(sneck_lost_fd(scene->lock), 3 * TEST_PATIENCE_MS));
    assert_false(sneck_is_held(scene->lock));
    return test_now_ms() - begin_ms;
}

uint64_t zookeeper_scene_pair(const zookeeper_scene *scene)
{
    sneck_error error;
    EXPECT(SNECK_OK, sneck_acquire(scene->lock, INT64_C(3) * TEST_PATIENCE_MS, &error));
    uint64_t token = sneck_token(scene->lock);
    EXPECT(SNECK_OK, sneck_release(scene->lock, &error));
    return token;
}

void zookeeper_bed_await_watch(const zookeeper_server *server_of)
{
    int64_t limit_ms = test_now_ms() + TEST_PATIENCE_MS;
    const char *count = NULL;
    while ((count = strstr(zookeeper_server_ask(server_of, "mntr"), "zk_watch_count\t")) == NULL || count[15] == '0')
        assert_true(test_now_ms() < limit_ms);
}

void zookeeper_scene_await_claims(const zookeeper_scene *scene, size_t count)
{
    int64_t limit_ms = test_now_ms() + INT64_C(3) * TEST_PATIENCE_MS;
    size_t seen = count + 1;
    while (seen != count) {
        sneck_error error;
        sneck_info *info = NULL;
        EXPECT(SNECK_OK, sneck_inspect(scene->client, "a", &info, &error));
        seen = info->holder_count + info->waiter_count;
        sneck_info_free(info);
        if (test_now_ms() > limit_ms)
            fail_msg("%zu claims instead of %zu", seen, count);
        nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
    }
}
