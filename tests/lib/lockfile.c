#include "lockfile.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

#include "test.h"

int test_place_set_up(void **state)
{
    test_place *place = calloc(1, sizeof *place);
    test_make_folder(place->folder, sizeof place->folder);
    (void)snprintf(place->path, sizeof place->path, "%s/locks.db", place->folder);
    (void)snprintf(place->url, sizeof place->url, "sqlite://%s", place->path);
    (void)snprintf(place->shared_url, sizeof place->shared_url, "%s?file_mode=0660", place->url);
    *state = place;
    return 0;
}

int test_place_tear_down(void **state)
{
    test_place *place = *state;
    test_remove_folder(place->folder);
    free(place);
    return 0;
}

static sqlite3 *connect_to(const test_place *place)
{
    sqlite3 *connection = NULL;
    assert_int_equal(sqlite3_open_v2(place->path, &connection, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL),
                     SQLITE_OK);
    (void)sqlite3_busy_timeout(connection, 5000);
    return connection;
}

void test_run_sql(const test_place *place, const char *sql)
{
    sqlite3 *connection = connect_to(place);
    char *message = NULL;
    if (sqlite3_exec(connection, sql, NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s: %s", sql, message);
    assert_int_equal(sqlite3_close(connection), SQLITE_OK);
}

int64_t test_ask_sql(const test_place *place, const char *sql)
{
    sqlite3 *connection = connect_to(place);
    sqlite3_stmt *statement = NULL;
    assert_int_equal(sqlite3_prepare_v2(connection, sql, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    int64_t number = sqlite3_column_int64(statement, 0);
    assert_int_equal(sqlite3_finalize(statement), SQLITE_OK);
    assert_int_equal(sqlite3_close(connection), SQLITE_OK);
    return number;
}
