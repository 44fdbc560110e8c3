/* The MariaDB store when its server, its connections or other programs do harm. */
#include "test.h"

#include <mysqld_error.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "bed.h"
#include "claims.h"
#include "mysql_bed.h"
#include "store/mysql/mysql_store.h"
#include "waiter.h"

static const char holds[] = "SELECT COUNT(*) FROM sneck_hold";

static sneck_client *open_at(int port, const char *keys, int64_t lease_ms)
{
    sneck_error error;
    sneck_client *client = NULL;
    sneck_client_options options = SNECK_CLIENT_OPTIONS_INIT;
    options.lease_ms = lease_ms;
    EXPECT(SNECK_OK, sneck_open(mysql_bed_url_at(port, keys), &options, &client, &error));
    return client;
}

static void run(MYSQL *program, const char *sql)
{
    if (mysql_query(program, sql) != 0)
        fail_msg("%s: %s", sql, mysql_error(program));
    mysql_free_result(mysql_store_result(program));
}

/* ---- The server ---- */

typedef struct extender {
    sneck_lock *lock;
    pthread_t thread;
    sneck_status status;
    sneck_error error;
} extender;

static void test_a_server_that_takes_no_writes_grants_nothing_and_costs_no_hold(void **state)
{
    mysql_bed *bed = *state;
    sneck_error error;
    sneck_client *client = open_at(bed->server.port, NULL, 20000);
    sneck_lock *lock = test_mutex(client, "a", NULL);
    sneck_lock *other = test_mutex(client, "b", NULL);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    mysql_bed_do(bed, "SET GLOBAL read_only = 1");
    EXPECT(SNECK_UNAVAILABLE, sneck_acquire(other, 0, &error));
    EXPECT(SNECK_UNAVAILABLE, sneck_extend(lock, 20000, &error));
    assert_true(sneck_is_held(lock));
    mysql_bed_do(bed, "SET GLOBAL read_only = 0");
    EXPECT(SNECK_OK, sneck_extend(lock, 20000, &error));
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    sneck_lock_free(lock);
    sneck_lock_free(other);
    sneck_close(client);
}

static void test_of_several_servers_the_one_that_takes_writes_is_found_also_after_a_change(void **state)
{
    mysql_bed *bed = *state;
    mysql_bed other;
    sneck_error error;
    sneck_client *client = NULL;
    char url[256];
    mysql_bed_start(&other);
    mysql_bed_do(&other, "SET GLOBAL read_only = 1");
    (void)snprintf(url, sizeof url, "mysql://sneck:secret@127.0.0.1:%d,127.0.0.1:%d/locks", other.server.port,
                   bed->server.port);
    EXPECT(SNECK_OK, sneck_open(url, NULL, &client, &error));
    sneck_lock *lock = test_mutex(client, "a", NULL);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    uint64_t token = sneck_token(lock);
    assert_int_equal(mysql_bed_number(bed, "%s", holds), 1);
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    mysql_bed_do(bed, "SET GLOBAL read_only = 1");
    mysql_bed_do(&other, "SET GLOBAL read_only = 0");
    int64_t limit_ms = test_now_ms() + TEST_PATIENCE_MS;
    while (sneck_acquire(lock, 0, &error) != SNECK_OK)
        assert_true(test_now_ms() < limit_ms);
    assert_true(sneck_token(lock) > token);
    assert_int_equal(mysql_bed_number(&other, "%s", holds), 1);
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    mysql_bed_do(bed, "SET GLOBAL read_only = 0");
    sneck_lock_free(lock);
    sneck_close(client);
    mysql_bed_stop(&other);
}

/* ---- Other transactions ---- */

static void *extend(void *argument)
{
    extender *self = argument;
    self->status = sneck_extend(self->lock, 20000, &self->error);
    return NULL;
}

/* The program has more to lose, so the server ends our transaction (1213): it is tried again. */
static void test_a_deadlock_is_tried_again(void **state)
{
    mysql_bed *bed = *state;
    sneck_error error;
    sneck_client *client = open_at(bed->server.port, "timeout=20s", 20000);
    sneck_lock_options options = SNECK_LOCK_OPTIONS_INIT;
    options.owner = SNECK_OWNER_HANDLE;
    extender self = { .lock = test_mutex(client, "a", &options) };
    EXPECT(SNECK_OK, sneck_acquire(self.lock, 0, &error));
    static const char deadlocks[] =
        "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'Innodb_deadlocks'";
    long long before = mysql_bed_number(bed, "%s", deadlocks);
    MYSQL *program = mysql_bed_connect(bed, "root", "");
    run(program, "CREATE TABLE ballast (a INT PRIMARY KEY)");
    run(program, "BEGIN");
    run(program, "INSERT INTO ballast SELECT seq FROM seq_1_to_1000");
    run(program, "UPDATE sneck_hold SET pid = pid + 1");
    assert_int_equal(pthread_create(&self.thread, NULL, extend, &self), 0);
    mysql_bed_await(bed,
                    "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS"
                    " WHERE VARIABLE_NAME = 'Innodb_row_lock_current_waits'",
                    1);
    run(program, "SELECT token FROM sneck_state FOR UPDATE");
    run(program, "COMMIT");
    assert_int_equal(pthread_join(self.thread, NULL), 0);
    test_expect(SNECK_OK, self.status, &self.error, "extend");
    assert_true(mysql_bed_number(bed, "%s", deadlocks) > before);
    EXPECT(SNECK_OK, sneck_release(self.lock, &error));
    run(program, "DROP TABLE ballast");
    mysql_close(program);
    sneck_lock_free(self.lock);
    sneck_close(client);
}

/* A lock wait that takes too long (1205) is no deadlock: it fails, clearly, and did not happen. */
static void test_a_statement_that_is_held_up_fails_and_does_not_happen(void **state)
{
    mysql_bed *bed = *state;
    sneck_error error;
    sneck_client *client = open_at(bed->server.port, "timeout=2s", 20000);
    sneck_lock *lock = test_mutex(client, "a", NULL);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    MYSQL *program = mysql_bed_connect(bed, "root", "");
    run(program, "BEGIN");
    run(program, "SELECT token FROM sneck_state FOR UPDATE");
    EXPECT(SNECK_UNAVAILABLE, sneck_acquire(lock, 0, &error));
    run(program, "COMMIT");
    assert_int_equal(mysql_bed_number(bed, "%s", holds), 0);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    mysql_close(program);
    sneck_lock_free(lock);
    sneck_close(client);
}

/* ---- Rights, and other programs ---- */

static void test_the_documented_user_can_call_and_touch_nothing(void **state)
{
    mysql_bed *bed = *state;
    MYSQL *program = mysql_bed_connect(bed, "sneck", "secret");
    static const char *const refused[] = {
        "SELECT * FROM sneck_state", "UPDATE sneck_state SET token = 1",
        "DELETE FROM sneck_hold",    "INSERT INTO sneck_meta VALUES ('floor', 0)",
        "CALL sneck_settle('x', 0)", "CREATE TABLE mine (a INT)",
    };
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        if (mysql_query(program, refused[i]) == 0)
            fail_msg("%s: it was allowed", refused[i]);
    mysql_close(program);
}

static void note_polling(void *context, sneck_log_level level, const char *text)
{
    (void)level;
    if (strstr(text, "event=polling") != NULL)
        atomic_store((_Atomic bool *)context, true);
}

/* Whoever set the tables up may not end statements of others: nobody is told, and those who wait look for themselves. */
static void test_without_the_right_to_call_sessions_those_who_wait_look(void **state)
{
    mysql_bed *bed = *state;
    sneck_error error;
    mysql_bed_do(bed, "REVOKE CONNECTION ADMIN ON *.* FROM sneck_owner");
    _Atomic bool polls = false;
    sneck_client_options options = SNECK_CLIENT_OPTIONS_INIT;
    options.lease_ms = 60000;
    options.log = note_polling;
    options.log_context = &polls;
    sneck_client *clients[2] = { open_at(bed->server.port, NULL, 60000), NULL };
    EXPECT(SNECK_OK, sneck_open(mysql_bed_url(bed, NULL), &options, &clients[1], &error));
    sneck_lock *lock = test_mutex(clients[0], "a", NULL);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    test_waiter self;
    test_waiter_start(&self, test_mutex(clients[1], "a", NULL), TEST_PATIENCE_MS);
    mysql_bed_await(bed, "SELECT COUNT(*) FROM sneck_queue", 1);
    int64_t limit_ms = test_now_ms() + TEST_PATIENCE_MS;
    while (!atomic_load(&polls)) /* and it says so */
        assert_true(test_now_ms() < limit_ms);
    int64_t released_ms = test_now_ms();
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    test_waiter_join(&self);
    assert_true(test_now_ms() - released_ms < 5000); /* of a lease of a minute */
    assert_int_equal(mysql_bed_number(bed, "SELECT COUNT(*) FROM sneck_bell"), 0);
    mysql_bed_do(bed, "GRANT CONNECTION ADMIN ON *.* TO sneck_owner");
    sneck_lock_free(lock);
    sneck_lock_free(self.lock);
    sneck_close(clients[0]);
    sneck_close(clients[1]);
}

/* CONTRACT: the same table and columns serve a program in its own business transaction, and the store. */
static void test_a_program_and_the_store_bump_the_same_version(void **state)
{
    mysql_bed *bed = *state;
    sneck_error error;
    uint64_t version = 99;
    sneck_client *client = open_at(bed->server.port, NULL, 20000);
    EXPECT(SNECK_OK, sneck_version_get(client, "order/7", &version, &error));
    assert_int_equal(version, 0); /* an unknown name */
    EXPECT(SNECK_OK, sneck_version_bump(client, "order/7", 0, &error));
    MYSQL *program = mysql_bed_connect(bed, "root", "");
    run(program, "CREATE TABLE orders (id INT PRIMARY KEY, state VARCHAR(10))");
    run(program, "INSERT INTO orders VALUES (7, 'new')");
    run(program, "BEGIN");
    run(program, "UPDATE orders SET state = 'paid' WHERE id = 7");
    run(program, "UPDATE sneck_lock SET version = version + 1 WHERE resource_name = 'lock:order/7' AND version = 1");
    assert_int_equal(mysql_affected_rows(program), 1);
    run(program, "COMMIT");
    EXPECT(SNECK_CONFLICT, sneck_version_bump(client, "order/7", 1, &error));
    EXPECT(SNECK_OK, sneck_version_bump(client, "order/7", 2, &error));
    run(program, "BEGIN");
    run(program, "UPDATE sneck_lock SET version = version + 1 WHERE resource_name = 'lock:order/7' AND version = 2");
    assert_int_equal(mysql_affected_rows(program), 0); /* it moved */
    run(program, "ROLLBACK");
    run(program, "DROP TABLE orders");
    mysql_close(program);
    sneck_close(client);
}

static void test_what_is_not_there_is_refused(void **state)
{
    mysql_bed *bed = *state;
    sneck_error error;
    sneck_client *client = NULL;
    char url[256];
    EXPECT(SNECK_INVALID, sneck_open(mysql_bed_url(bed, "mode=column"), NULL, &client, &error));
    (void)snprintf(url, sizeof url, "mysql://sneck:wrong@127.0.0.1:%d/locks", bed->server.port);
    EXPECT(SNECK_DENIED, sneck_open(url, NULL, &client, &error));
    assert_null(strstr(error.message, "wrong"));
    (void)snprintf(url, sizeof url, "mysql://sneck:secret@127.0.0.1:%d/", bed->server.port);
    EXPECT(SNECK_INVALID, sneck_open(url, NULL, &client, &error));
    mysql_bed_do(bed, "UPDATE sneck_meta SET value = 99 WHERE name = 'schema'");
    EXPECT(SNECK_UNSUPPORTED, sneck_open(mysql_bed_url(bed, NULL), NULL, &client, &error));
    mysql_bed_do(bed, "UPDATE sneck_meta SET value = 1 WHERE name = 'schema'");
}

static void test_unused_rows_are_removed_and_tokens_go_on_above_them(void **state)
{
    mysql_bed *bed = *state;
    sneck_error error;
    sneck_client *client = open_at(bed->server.port, NULL, 20000);
    sneck_lock *lock = test_mutex(client, "a", NULL);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    uint64_t token = sneck_token(lock);
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    mysql_bed_do(bed, "UPDATE sneck_state SET used_at = 0, token = token + 3600000000");
    assert_int_equal(mysql_bed_number(bed, "SELECT sneck_reap('')"), 0);
    assert_int_equal(mysql_bed_number(bed, "SELECT COUNT(*) FROM sneck_state"), 0);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    assert_true(sneck_token(lock) > token + 3600000000);
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    mysql_bed_do(bed, "UPDATE sneck_meta SET value = 0 WHERE name = 'floor'");
    sneck_lock_free(lock);
    sneck_close(client);
}

static sneck_status set_up_as_owner(const mysql_bed *bed, sneck_error *error)
{
    char text[256];
    snk_url url;
    snk_id client = test_id();
    bool needed = false;
    (void)snprintf(text, sizeof text, "mysql://sneck_owner:owner-secret@127.0.0.1:%d/locks", bed->server.port);
    assert_int_equal(snk_url_parse(&url, text, error), SNECK_OK);
    snk_store_config config = { .url = &url, .prefix = "lock:", .identity = test_identity(&client) };
    sneck_status status = snk_store_setup(&config, &needed, error);
    snk_url_deinit(&url);
    return status;
}

static void test_setup_may_run_again_and_takes_nothing_back(void **state)
{
    mysql_bed *bed = *state;
    sneck_error error;
    sneck_client *client = open_at(bed->server.port, NULL, 20000);
    sneck_lock *lock = test_mutex(client, "a", NULL);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    EXPECT(SNECK_OK, set_up_as_owner(bed, &error));
    EXPECT(SNECK_OK, sneck_extend(lock, 20000, &error));
    mysql_bed_do(bed, "UPDATE sneck_meta SET value = 99 WHERE name = 'schema'");
    EXPECT(SNECK_UNSUPPORTED, set_up_as_owner(bed, &error));
    assert_int_equal(mysql_bed_number(bed, "SELECT value FROM sneck_meta WHERE name = 'schema'"), 99);
    mysql_bed_do(bed, "UPDATE sneck_meta SET value = 1 WHERE name = 'schema'");
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    sneck_lock_free(lock);
    sneck_close(client);
}

/* A server may ask for a file in place of an answer: it gets none. */
static void test_no_file_of_ours_is_sent(void **state)
{
    mysql_bed *bed = *state;
    char url[256];
    sneck_error error;
    snk_my_reply reply;
    static const char ask[] = "LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE prey";
    mysql_bed_do(bed, "CREATE OR REPLACE TABLE prey (line TEXT)");
    (void)snprintf(url, sizeof url, "mysql://sneck_owner:owner-secret@127.0.0.1:%d/locks", bed->server.port);
    snk_store *store = test_store(url);
    snk_my_store *self = snk_my_store_of(store);
    snk_my_conn *conn = snk_my_pool_take(&self->pool, &error);
    assert_non_null(conn);
    snk_my_conn_query(conn, "test", ask, sizeof ask - 1, &reply);
    assert_int_not_equal(reply.outcome, SNK_SQL_ANSWERED);
    snk_my_reply_clear(&reply);
    snk_my_pool_give(&self->pool, conn, true);
    assert_int_equal(mysql_bed_number(bed, "SELECT COUNT(*) FROM prey"), 0);
    mysql_bed_do(bed, "DROP TABLE prey");
    test_store_close(store);
}

/* ---- A change of servers while connections to the old one are left ---- */

static snk_my_conn *left_over;

static bool listen_with_left_over(snk_store *base)
{
    snk_my_store *store = snk_my_store_of(base);
    store->waiters.listen = snk_my_listen;
    snk_my_pool_give(&store->pool, left_over, false);
    return snk_my_listen(base);
}

static void test_a_call_that_went_to_the_old_server_is_tried_again(void **state)
{
    mysql_bed *bed = *state;
    mysql_bed other;
    sneck_error error;
    char url[256];
    mysql_bed_start(&other);
    mysql_bed_do(&other, "SET GLOBAL read_only = 1");
    (void)snprintf(url, sizeof url, "mysql://sneck:secret@127.0.0.1:%d,127.0.0.1:%d/locks", bed->server.port,
                   other.server.port);
    snk_store *store = test_store(url);
    snk_my_store *self = snk_my_store_of(store);
    left_over = snk_my_pool_take(&self->pool, &error);
    assert_non_null(left_over);
    mysql_bed_do(bed, "SET GLOBAL read_only = 1");
    mysql_bed_do(&other, "SET GLOBAL read_only = 0");
    snk_store *holder = test_store(mysql_bed_url(&other, NULL));
    (void)test_must_hold(holder, "a");
    self->waiters.listen = listen_with_left_over;
    snk_id claim = test_must_queue(store, "a", NULL);
    int64_t limit_ms = test_now_ms() + TEST_PATIENCE_MS;
    while (atomic_load(&self->ear.state) == SNK_SQL_SILENT) {
        assert_true(test_now_ms() < limit_ms);
        (void)poll(NULL, 0, 100);
        (void)test_renew(store, "a", &claim, TEST_LEASE_MS); /* looks, and finds connections that are of no use */
    }
    assert_int_equal(atomic_load(&self->ear.state), SNK_SQL_HEARS);
    mysql_bed_do(bed, "SET GLOBAL read_only = 0");
    test_store_close(holder);
    test_store_close(store);
    mysql_bed_stop(&other);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, mysql_bed_set_up, mysql_bed_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_a_server_that_takes_no_writes_grants_nothing_and_costs_no_hold),
        TEST(test_of_several_servers_the_one_that_takes_writes_is_found_also_after_a_change),
        TEST(test_a_deadlock_is_tried_again),
        TEST(test_a_statement_that_is_held_up_fails_and_does_not_happen),
        TEST(test_the_documented_user_can_call_and_touch_nothing),
        TEST(test_without_the_right_to_call_sessions_those_who_wait_look),
        TEST(test_a_program_and_the_store_bump_the_same_version),
        TEST(test_what_is_not_there_is_refused),
        TEST(test_setup_may_run_again_and_takes_nothing_back),
        TEST(test_no_file_of_ours_is_sent),
        TEST(test_a_call_that_went_to_the_old_server_is_tried_again),
        TEST(test_unused_rows_are_removed_and_tokens_go_on_above_them),
    };
    return cmocka_run_group_tests(tests, NULL, mysql_bed_end);
}
