/* What the URL of a Redis store says. */
#ifndef SNK_STORE_REDIS_OPTIONS_H
#define SNK_STORE_REDIS_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/url.h"
#include "redis/redis.h"
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
    bool history;
    bool count_holds; /* holds=store */
    int64_t timeout_ns;
    int database;
    char password[SNK_PASSWORD_SIZE]; /* never printed */
} snk_redis_options;

/* The query keys of a single Redis server, beside those of every store; ends with NULL. */
extern const char *const snk_redis_keys[];
/* And those of the forms with several servers. */
extern const char *const snk_redis_later_keys[];

/* SNECK_INVALID, SNECK_UNSUPPORTED, or SNECK_DENIED when the password file cannot be read. No network I/O. */
sneck_status snk_redis_options_load(snk_redis_options *options, const snk_url *url, sneck_error *error);

#endif
