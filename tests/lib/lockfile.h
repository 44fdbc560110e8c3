/* For tests of the embedded store: a folder of its own for each, and looks into the file by plain SQL. */
#ifndef SNK_TEST_LOCKFILE_H
#define SNK_TEST_LOCKFILE_H

#include <stdint.h>

#include "claims.h"

typedef struct test_place {
    char folder[64];
    char path[96];
    char url[160];
    char shared_url[192]; /* for a group */
} test_place;

/* The set-up and tear-down of a cmocka test; its state is a test_place. */
int test_place_set_up(void **state);
int test_place_tear_down(void **state);

#define TEST_AT_PLACE(function) cmocka_unit_test_setup_teardown(function, test_place_set_up, test_place_tear_down)

/* As any other program might, with a connection of its own: runs statements, or gets the number that one answers with. */
void test_run_sql(const test_place *place, const char *sql);
int64_t test_ask_sql(const test_place *place, const char *sql);

#endif
