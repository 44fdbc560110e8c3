/*
 * Tests that run on both SQL servers, in one mode of the store or in both: what they ask of a server, whichever it is.
 * Statements are such as both understand.
 */
#ifndef SNK_TEST_SQL_BED_H
#define SNK_TEST_SQL_BED_H

#include <stdbool.h>
#include <stdint.h>

#include "sneck.h"
#include "test.h"

/* What a server can be asked; `bed` is that of postgres_bed.h or mysql_bed.h. */
typedef struct sql_server {
    const char *name;
    const char *scheme;
    int (*set_up)(void **bed_out);
    int (*end)(void **state);
    int (*port)(const void *bed);
    const char *(*url_at)(int port, const char *keys); /* static memory */
    void (*run)(void *bed, const char *sql);           /* as the administrator */
    const char *(*text)(void *bed, const char *sql);   /* the first value, in static memory; NULL: "" */
    void (*crash)(void *bed);
    void (*restart)(void *bed);
    void (*freeze)(const void *bed);
    void (*thaw)(const void *bed);
    const char *lock_waits;       /* a statement: how many sessions wait for a row */
    const char *row_sessions;     /* a statement: how many transactions of mode=row are open */
    const char *sessions;         /* a statement: how many sessions our clients have */
    const char *end_row_sessions; /* ends them */
    const char *listeners;        /* a statement: how many sessions wait to be told */
    const char *end_listeners;    /* ends one */
    const char *end_all_sessions; /* ends those of our clients */
    const char *end_sessions;     /* ends some of our clients' */
    const char *work;             /* a statement: a count that goes up with what clients ask */
    const char *work_reset;       /* or NULL */
    const char *work_unit;        /* what it counts */
    double work_lease, work_row;  /* of it, for a turn of one of many; more would be a herd */
    /* A program of somebody. */
    void *(*connect)(void *bed);
    bool (*execute)(void *program, const char *sql); /* false: an error */
    void (*disconnect)(void *program);
} sql_server;

/* The state of a test. */
typedef struct sql_bed {
    const sql_server *server;
    const char *mode; /* "mode=lease" or "mode=row" */
    void *bed;
    void *extra; /* of the test program */
} sql_bed;

enum {
    SQL_LEASE = 1,
    SQL_ROW = 2
};

typedef struct sql_test {
    const char *name;
    void (*run)(void **state);
    int modes; /* SQL_LEASE, SQL_ROW or both */
} sql_test;

/* Runs each test on each server that is there; `prepare` and `clear_up` (or NULL) are called around each. */
int sql_bed_run(const char *group, const sql_test tests[], size_t count, void (*prepare)(sql_bed *bed),
                void (*clear_up)(sql_bed *bed));

/* The URL of the server, or of a proxy at a port, in the mode of the test, with further keys or NULL; static memory. */
const char *sql_bed_url(const sql_bed *bed, const char *keys);
const char *sql_bed_url_at(const sql_bed *bed, int port, const char *keys);
/* A client, in the mode of the test. */
sneck_client *sql_bed_open(const sql_bed *bed, const char *keys, int64_t lease_ms);

long long sql_bed_number(sql_bed *bed, const char *sql);
void sql_bed_pause(int64_t ms);
/* Waits until it is this number. */
void sql_bed_await(sql_bed *bed, const char *sql, long long expected);

#endif
