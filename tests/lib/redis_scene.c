#include "redis_scene.h"

#include "bed.h"

redis_scene redis_scene_open(redis_bed *bed, const char *keys, int64_t lease_ms)
{
    sneck_client_options options = SNECK_CLIENT_OPTIONS_INIT;
    options.lease_ms = lease_ms;
    redis_scene scene = { .bed = bed, .client = redis_bed_open(bed, keys, &options) };
    scene.lock = test_mutex(scene.client, "a", NULL);
    return scene;
}

void redis_scene_close(redis_scene *scene)
{
    sneck_lock_free(scene->lock);
    sneck_close(scene->client);
}

int64_t redis_scene_await_loss(const redis_scene *scene)
{
    int64_t begin_ms = test_now_ms();
    while (sneck_is_held(scene->lock)) {
        assert_true(test_now_ms() - begin_ms < TEST_PATIENCE_MS);
        redis_bed_pause(1);
    }
    return test_now_ms() - begin_ms;
}

void redis_scene_pair(const redis_scene *scene)
{
    sneck_error error;
    EXPECT(SNECK_OK, sneck_acquire(scene->lock, TEST_PATIENCE_MS, &error));
    EXPECT(SNECK_OK, sneck_release(scene->lock, &error));
}

void redis_scene_expect_free(const redis_scene *scene)
{
    redis_bed_await(scene->bed, "EXISTS lock:a {lock:a}:queue {lock:a}:queue:info {lock:a}:queue:until", 0);
}
