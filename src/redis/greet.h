/*
 * What is said first on every connection: who we are, which database, and which run of which server this is.
 */
#ifndef SNK_REDIS_GREET_H
#define SNK_REDIS_GREET_H

#include "redis/parser.h"
#include "redis/wire.h"

typedef struct snk_redis_greeting {
    snk_redis_run run; /* 0 when the server does not tell (an ACL without INFO) */
    unsigned version;
    int64_t started_at_ns; /* of the run; see snk_redis_server */
} snk_redis_greeting;

typedef struct snk_redis_greeter {
    snk_redis_wire *wire;     /* open, and nobody else uses it yet */
    snk_redis_parser *parser; /* fresh */
    const snk_redis_settings *settings;
    int stop_fd; /* readable: give up */
    int64_t until_ns;
} snk_redis_greeter;

/*
 * AUTH, SELECT, CLIENT SETNAME and INFO in one round trip. The name and the run are improvements only; being refused by
 * AUTH or SELECT is a failure.
 */
sneck_status snk_redis_greet(const snk_redis_greeter *peer, snk_redis_greeting *greeting_out, sneck_error *error);

#endif
