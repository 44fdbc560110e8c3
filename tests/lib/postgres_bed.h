/*
 * What tests of the PostgreSQL store stand on: a server of its own, set up with the roles that docs/postgres.md describes,
 * and a connection to look at it with.
 */
#ifndef SNK_TEST_POSTGRES_BED_H
#define SNK_TEST_POSTGRES_BED_H

#include <stdbool.h>
#include <stdint.h>

#include <libpq-fe.h>

#include "postgres_server.h"
#include "sneck.h"

typedef struct postgres_bed {
    postgres_server server;
    PGconn *admin; /* may do anything; in the database `locks`, with the schema of the documentation */
} postgres_bed;

/* Each fails the test when the server does not start. */
void postgres_bed_start(postgres_bed *bed);
/* With extra words on the server's command line; ends with NULL. */
void postgres_bed_start_with(postgres_bed *bed, const char *const options[]);
void postgres_bed_stop(postgres_bed *bed);

/* Ends the server at once, as a crash does, and starts it again in its place. */
void postgres_bed_crash(postgres_bed *bed);
void postgres_bed_restart(postgres_bed *bed);

/* Forgets every lock; the tables stay. */
void postgres_bed_clear(postgres_bed *bed);

/* The URL of the server, by TCP and as the documented role, with query keys ("mode=row", or NULL); static memory. */
const char *postgres_bed_url(const postgres_bed *bed, const char *keys);
/* The same for a proxy or pooler at that port. */
const char *postgres_bed_url_at(int port, const char *keys);

/* Opens a client on the server; `keys` may be NULL. Fails the test when it cannot. */
sneck_client *postgres_bed_open(const postgres_bed *bed, const char *keys, const sneck_client_options *options);

/* A connection of its own to the server's database as `user`; PQfinish it. */
PGconn *postgres_bed_connect(const postgres_bed *bed, const char *user);

/* Runs SQL as the administrator, and fails the test if that fails. */
void postgres_bed_do(postgres_bed *bed, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Its first value as a number (NULL: 0), or as text in static memory (NULL: ""). */
long long postgres_bed_number(postgres_bed *bed, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *postgres_bed_text(postgres_bed *bed, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Waits until it is this number. */
void postgres_bed_await(postgres_bed *bed, const char *sql, long long expected);

/* How often a function of ours was called so far, by all sessions. */
long long postgres_bed_calls(postgres_bed *bed, const char *function);

void postgres_bed_pause(int64_t ms);

/* The state of tests that want a server: for cmocka. One server a program, made when first needed, cleared for each. */
int postgres_bed_set_up(void **state);
int postgres_bed_tear_down(void **state);
int postgres_bed_end(void **state);

#endif
