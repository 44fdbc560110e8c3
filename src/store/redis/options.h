/* What the URL of a Redis store says. */
#ifndef SNK_STORE_REDIS_OPTIONS_H
#define SNK_STORE_REDIS_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/url.h"
#include "redis/commit.h"
#include "store/redis/scripts.h"
#include "store/settings.h"

typedef enum snk_wake_mode {
    SNK_WAKE_GRANT, /* a release grants the lock to the next waiter */
    SNK_WAKE_ONE,   /* a release tells the next waiter that the lock may be had */
    SNK_WAKE_ALL    /* a release is announced to everybody, and all waiters try */
} snk_wake_mode;

typedef struct snk_redis_options {
    snk_layout layout;
    snk_wake_mode wake;
    bool announce;
    bool announce_plainly; /* announce=plain: by PUBLISH in a cluster too */
    bool history;
    bool count_holds; /* holds=store */
    int64_t timeout_ns;
    bool commits; /* replicas= */
    snk_commitment commitment;
    char password[SNK_PASSWORD_SIZE];          /* never printed, */
    char sentinel_password[SNK_PASSWORD_SIZE]; /* nor this */
} snk_redis_options;

/* The query keys of a Redis store, beside those of every store; ends with NULL. */
extern const char *const snk_redis_keys[];
/* And where there are sentinels; the second with the service as a key. */
extern const char *const snk_redis_sentinel_keys[];
extern const char *const snk_redis_lettuce_keys[];

/* SNECK_INVALID, SNECK_UNSUPPORTED, or SNECK_DENIED when the password file cannot be read. No network I/O. */
sneck_status snk_redis_options_load(snk_redis_options *options, const snk_url *url, sneck_error *error);

#endif
