/* What tests of the ZooKeeper store stand on: one server for all tests of a program, and clients with a lock "a". */
#ifndef SNK_TEST_ZOOKEEPER_BED_H
#define SNK_TEST_ZOOKEEPER_BED_H

#include <stdint.h>

#include "sneck.h"
#include "zookeeper_server.h"

typedef struct zookeeper_scene {
    sneck_client *client;
    sneck_lock *lock;
} zookeeper_scene;

/* The server of this program; started when it is first asked for. Skips the test where there is none to start. */
zookeeper_server *zookeeper_bed_server(void);
/* For main: the server is stopped. */
void zookeeper_bed_stop(void);

/* A path that no other test has, from now on in the URLs; before each test, for cmocka. */
int zookeeper_bed_set_up(void **state);

/* The URL of a server or proxy at that port, with query keys ("timeout=500", or NULL); static memory. */
const char *zookeeper_bed_url(int port, const char *keys);

/* Fails the test when it cannot be opened. */
zookeeper_scene zookeeper_scene_open(const char *url, int64_t lease_ms);
void zookeeper_scene_close(zookeeper_scene *scene);
/* Waits until the holder knows that it lost the lock; returns how long that took, in ms. */
int64_t zookeeper_scene_await_loss(const zookeeper_scene *scene);
/* Takes and releases the lock, waiting if it must; returns the token. */
uint64_t zookeeper_scene_pair(const zookeeper_scene *scene);

/* Waits until somebody waits, and the server has answered so: a first request that is never answered ends the wait. */
void zookeeper_bed_await_watch(const zookeeper_server *server);
/* Waits until as many claims hold or wait for "a" as this, as that client sees it. */
void zookeeper_scene_await_claims(const zookeeper_scene *scene, size_t count);

#endif
