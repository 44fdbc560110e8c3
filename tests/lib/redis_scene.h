/* What tests of a faulty Redis server need: a client with a lock to try, and one that it holds all the while. */
#ifndef SNK_TEST_REDIS_SCENE_H
#define SNK_TEST_REDIS_SCENE_H

#include "redis_bed.h"

typedef struct redis_scene {
    redis_bed *bed;
    sneck_client *client;
    sneck_lock *lock; /* "a" */
} redis_scene;

/* `keys` are those of the URL; may be NULL. */
redis_scene redis_scene_open(redis_bed *bed, const char *keys, int64_t lease_ms);
void redis_scene_close(redis_scene *scene);

/* Waits until the holder knows that it lost the lock; returns how long that took. */
int64_t redis_scene_await_loss(const redis_scene *scene);
/* Takes and releases the lock, waiting if it must. */
void redis_scene_pair(const redis_scene *scene);
/* Fails the test if anything is in the store that stands for a holder or a waiter of the lock, some time from now. */
void redis_scene_expect_free(const redis_scene *scene);

#endif
