/*
 * What tests of the MariaDB store stand on: a server of its own, set up with the users that docs/mysql.md describes, and a
 * connection to look at it with.
 */
#ifndef SNK_TEST_MYSQL_BED_H
#define SNK_TEST_MYSQL_BED_H

#include <mysql.h>

#include "mysql_server.h"
#include "sneck.h"

typedef struct mysql_bed {
    mysql_server server;
    MYSQL *admin; /* may do anything; in the database `locks` */
} mysql_bed;

/* Each fails the test when the server does not start. */
void mysql_bed_start(mysql_bed *bed);
/* With further words of the server's command line, ending with NULL; borrowed. */
void mysql_bed_start_with(mysql_bed *bed, const char *const options[]);
void mysql_bed_stop(mysql_bed *bed);
/* Ends the server at once, as a crash does, and starts it again in its place. */
void mysql_bed_crash(mysql_bed *bed);
void mysql_bed_restart(mysql_bed *bed);

/* Forgets every lock; the tables stay. */
void mysql_bed_clear(mysql_bed *bed);

/* The URL of the server, by TCP and as the documented user, with query keys (or NULL); static memory. */
const char *mysql_bed_url(const mysql_bed *bed, const char *keys);
const char *mysql_bed_url_at(int port, const char *keys);

/* A connection of its own as `user`; mysql_close it. */
MYSQL *mysql_bed_connect(const mysql_bed *bed, const char *user, const char *password);

/* Runs a statement as the administrator, and fails the test if that fails. */
void mysql_bed_do(mysql_bed *bed, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Its first value as a number; NULL: 0. */
long long mysql_bed_number(mysql_bed *bed, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same as text, in static memory; NULL: "". */
const char *mysql_bed_text(mysql_bed *bed, const char *sql);
/* Waits until it is this number. */
void mysql_bed_await(mysql_bed *bed, const char *sql, long long expected);

/* The state of tests that want a server: for cmocka. One server a program, made when first needed, cleared for each. */
int mysql_bed_set_up(void **state);
int mysql_bed_tear_down(void **state);
int mysql_bed_end(void **state);

#endif
