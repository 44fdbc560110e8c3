/*
 * What tests of the Redis store stand on: a server of its own in a folder of its own, with the user that docs/redis.md
 * describes, and a connection to look at it with.
 */
#ifndef SNK_TEST_REDIS_BED_H
#define SNK_TEST_REDIS_BED_H

#include <stdbool.h>
#include <stdint.h>

#include <hiredis/hiredis.h>

#include "redis_server.h"
#include "sneck.h"

typedef struct redis_bed {
    redis_server server;
    char rules[64]; /* file with its users */
    redisContext *admin;
} redis_bed;

/* Makes a file with the users: an administrator without a password, and the documented one. */
void redis_bed_write_users(char path[64]);

/* Fails the test when the server does not start. */
void redis_bed_start(redis_bed *bed);
void redis_bed_stop(redis_bed *bed);

/* Ends the server at once, as a crash does. `saved`: what it has is written first, and found again by the next start. */
void redis_bed_crash(redis_bed *bed, bool saved);
/* Starts it again in its place. */
void redis_bed_restart(redis_bed *bed);
/* Connects to a server that runs, after the connection was freed. */
void redis_bed_connect(redis_bed *bed);

/* The URL of the server, by TCP and as the documented user, with query keys ("wake=all", or NULL); static memory. */
const char *redis_bed_url(const redis_bed *bed, const char *keys);
/* The same for a proxy at that port. */
const char *redis_bed_url_at(int port, const char *keys);

/* Runs a command as the administrator; free the reply. Fails the test if the server does not answer. */
redisReply *redis_bed_command(redis_bed *bed, const char *format, ...);
/* For its effect alone. */
void redis_bed_do(redis_bed *bed, const char *format, ...);
/* Its answer as a number, or as text in static memory ("" for nil), or the elements of an array joined by ' '. */
long long redis_bed_number(redis_bed *bed, const char *format, ...);
const char *redis_bed_text(redis_bed *bed, const char *format, ...);

/* Sends a command on a connection of its own, whose answer nobody awaits; free the connection. */
redisContext *redis_bed_send_aside(const redis_bed *bed, const char *format, ...);

/* Waits until the command answers with this number. */
void redis_bed_await(redis_bed *bed, const char *command, long long expected);
void redis_bed_pause(int64_t ms);

/* All keys of the server, sorted and joined by ' '; in static memory. */
const char *redis_bed_keys(redis_bed *bed);
/* Fails the test if a key has no time limit. */
void redis_bed_expect_limits(redis_bed *bed);

/* Opens a client on the server; `keys` may be NULL. Fails the test when it cannot. */
sneck_client *redis_bed_open(const redis_bed *bed, const char *keys, const sneck_client_options *options);

/* The state of tests that want a server: for cmocka. */
int redis_bed_set_up(void **state);
int redis_bed_tear_down(void **state);

#endif
