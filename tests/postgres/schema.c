/* Tables and rights: who may make them, who may use them, and programs that use the same rows. */
#include "test.h"

#include <string.h>

#include "base/clock.h"
#include "bed.h"
#include "claims.h"
#include "postgres_bed.h"
#include "store/postgres/postgres.h"

/* By the unix socket, where the server asks for no password. */
static sneck_status open_as(const postgres_bed *bed, const char *user, const char *database, sneck_error *error)
{
    char url[256];
    char folder[256] = "";
    sneck_client *client = NULL;
    for (const char *at = bed->server.directory; *at != '\0'; at++)
        test_append(folder, sizeof folder, *at == '/' ? "%2F" : (const char[]){ *at, '\0' });
    (void)snprintf(url, sizeof url, "postgres://%s@%s:%d/%s", user, folder, bed->server.port, database);
    sneck_status status = sneck_open(url, NULL, &client, error);
    sneck_close(client);
    return status;
}

static sneck_status set_up_as(const postgres_bed *bed, const char *user, const char *password, sneck_error *error)
{
    char text[256];
    snk_url url;
    snk_id client = test_id();
    bool needed = false;
    (void)snprintf(text, sizeof text, "postgres://%s:%s@127.0.0.1:%d/locks", user, password, bed->server.port);
    assert_int_equal(snk_url_parse(&url, text, error), SNECK_OK);
    snk_store_config config = { .url = &url, .prefix = "lock:", .identity = test_identity(&client) };
    sneck_status status = snk_store_setup(&config, &needed, error);
    snk_url_deinit(&url);
    return status;
}

/* ---- Making them ---- */

static void test_the_first_who_may_makes_the_tables(void **state)
{
    postgres_bed *bed = *state;
    sneck_error error;
    postgres_bed_do(bed, "CREATE DATABASE fresh");
    EXPECT(SNECK_DENIED, open_as(bed, "sneck", "fresh", &error)); /* in its schema, which is not there */
    assert_non_null(strstr(error.message, "sneck setup"));
    EXPECT(SNECK_OK, open_as(bed, "postgres", "fresh", &error));
    EXPECT(SNECK_OK, open_as(bed, "postgres", "fresh", &error));
    postgres_bed_do(bed, "DROP DATABASE fresh WITH (FORCE)");
}

static void test_setup_may_run_again_and_keeps_what_is_there(void **state)
{
    postgres_bed *bed = *state;
    sneck_error error;
    sneck_client *client = postgres_bed_open(bed, NULL, NULL);
    sneck_lock *lock = test_mutex(client, "a", NULL);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    uint64_t token = sneck_token(lock);
    EXPECT(SNECK_OK, set_up_as(bed, "sneck_owner", "owner-secret", &error));
    EXPECT(SNECK_OK, sneck_extend(lock, 30000, &error)); /* a session that was there before works on */
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    assert_true(sneck_token(lock) > token);
    sneck_lock_free(lock);
    sneck_close(client);
}

static void test_tables_of_another_version_are_refused(void **state)
{
    postgres_bed *bed = *state;
    sneck_error error;
    postgres_bed_do(bed, "UPDATE sneck_meta SET value = 999 WHERE key = 'schema'");
    EXPECT(SNECK_UNSUPPORTED, open_as(bed, "sneck", "locks", &error));
    assert_non_null(strstr(error.message, "later sneck"));
    EXPECT(SNECK_UNSUPPORTED, set_up_as(bed, "sneck_owner", "owner-secret", &error)); /* and not taken back */
    assert_non_null(strstr(error.message, "later sneck"));
    assert_int_equal(postgres_bed_number(bed, "SELECT value FROM sneck_meta WHERE key = 'schema'"), 999);
    postgres_bed_do(bed, "UPDATE sneck_meta SET value = 0 WHERE key = 'schema'");
    EXPECT(SNECK_UNSUPPORTED, open_as(bed, "sneck", "locks", &error));
    assert_non_null(strstr(error.message, "sneck setup"));
    EXPECT(SNECK_OK, set_up_as(bed, "sneck_owner", "owner-secret", &error));
    EXPECT(SNECK_OK, open_as(bed, "sneck", "locks", &error));
}

static void test_tables_that_are_gone_are_said_to_be_gone(void **state)
{
    postgres_bed *bed = *state;
    sneck_error error;
    sneck_client *client = postgres_bed_open(bed, NULL, NULL);
    sneck_lock *lock = test_mutex(client, "a", NULL);
    postgres_bed_do(bed, "ALTER SCHEMA sneck RENAME TO elsewhere");
    EXPECT(SNECK_UNAVAILABLE, sneck_acquire(lock, 0, &error));
    assert_non_null(strstr(error.message, "sneck setup"));
    postgres_bed_do(bed, "ALTER SCHEMA elsewhere RENAME TO sneck");
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    sneck_lock_free(lock);
    sneck_close(client);
}

/* ---- Rights ---- */

static void test_the_documented_role_can_call_and_touch_nothing(void **state)
{
    postgres_bed *bed = *state;
    PGconn *program = postgres_bed_connect(bed, "sneck");
    static const char *const refused[] = {
        "SELECT FROM sneck_state",
        "UPDATE sneck_state SET token = 1",
        "DELETE FROM sneck_hold",
        "INSERT INTO sneck_meta VALUES ('floor', 0)",
        "SELECT sneck_settle('x', now(), NULL)",
        "CREATE TABLE mine (a int)",
    };
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        PGresult *result = PQexec(program, refused[i]);
        if (PQresultStatus(result) != PGRES_FATAL_ERROR)
            fail_msg("%s: it was allowed", refused[i]);
        assert_string_equal(PQresultErrorField(result, PG_DIAG_SQLSTATE), "42501");
        PQclear(result);
    }
    PQfinish(program);
}

static void test_tables_of_the_caller_are_not_mistaken_for_ours(void **state)
{
    postgres_bed *bed = *state;
    postgres_bed_do(bed, "GRANT TEMPORARY ON DATABASE locks TO sneck");
    PGconn *program = postgres_bed_connect(bed, "sneck");
    PQclear(PQexec(program, "CREATE TEMPORARY TABLE sneck_meta (key text, value bigint)"));
    PQclear(PQexec(program, "INSERT INTO pg_temp.sneck_meta VALUES ('schema', 77)"));
    PGresult *result = PQexec(program, "SELECT sneck_schema()");
    assert_string_equal(PQgetvalue(result, 0, 0), "1");
    PQclear(result);
    PQfinish(program);
}

static void test_a_wrong_password_is_denied_and_a_wrong_database_invalid(void **state)
{
    postgres_bed *bed = *state;
    sneck_error error;
    sneck_client *client = NULL;
    char url[128];
    (void)snprintf(url, sizeof url, "postgres://sneck:wrong@127.0.0.1:%d/locks", bed->server.port);
    EXPECT(SNECK_DENIED, sneck_open(url, NULL, &client, &error));
    assert_null(strstr(error.message, "wrong"));
    (void)snprintf(url, sizeof url, "postgres://sneck:secret@127.0.0.1:%d/nosuch", bed->server.port);
    EXPECT(SNECK_INVALID, sneck_open(url, NULL, &client, &error));
    (void)snprintf(url, sizeof url, "postgres://sneck:secret@127.0.0.1:1/locks");
    EXPECT(SNECK_UNAVAILABLE, sneck_open(url, NULL, &client, &error));
    (void)snprintf(url, sizeof url, "postgres://sneck:secret@127.0.0.1:%d/locks?mode=column", bed->server.port);
    EXPECT(SNECK_INVALID, sneck_open(url, NULL, &client, &error));
    (void)snprintf(url, sizeof url, "postgres://sneck:secret@127.0.0.1:%d/locks?sslmod=require", bed->server.port);
    EXPECT(SNECK_INVALID, sneck_open(url, NULL, &client, &error));
    assert_non_null(strstr(error.message, "sslmode"));
    (void)snprintf(url, sizeof url, "postgres://sneck:secret@127.0.0.1:%d/locks?sslmode=require", bed->server.port);
    EXPECT(SNECK_UNAVAILABLE, sneck_open(url, NULL, &client, &error)); /* this server has no TLS: libpq was told */
}

/* ---- Programs ---- */

static const char *ask(PGconn *connection, const char *sql)
{
    static char text[64];
    PGresult *result = PQexec(connection, sql);
    ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        fail_msg("%s: %s", sql, PQerrorMessage(connection));
    (void)snprintf(text, sizeof text, "%s", PQntuples(result) > 0 ? PQgetvalue(result, 0, 0) : PQcmdTuples(result));
    PQclear(result);
    return text;
}

#define BUMP(expected)                                                                                                 \
    "UPDATE sneck_lock SET version = version + 1 WHERE resource_name = 'lock:order/7' AND version = " expected

/* CONTRACT: the same table and columns serve a program in its own business transaction, and the store. */
static void test_a_program_and_the_store_bump_the_same_version(void **state)
{
    postgres_bed *bed = *state;
    sneck_error error;
    uint64_t version = 99;
    snk_store *store = test_store(postgres_bed_url(bed, NULL));
    EXPECT(SNECK_OK, snk_pg_version(store, "order/7", NULL, &version, &error));
    assert_int_equal(version, 0); /* an unknown name */
    EXPECT(SNECK_OK, snk_pg_version(store, "order/7", &version, &version, &error));
    assert_int_equal(version, 1);
    postgres_bed_do(bed, "CREATE TABLE orders (id int PRIMARY KEY, state text); INSERT INTO orders VALUES (7, 'new')");
    postgres_bed_do(bed, "GRANT SELECT, INSERT, UPDATE (version) ON sneck_lock TO sneck; GRANT ALL ON orders TO sneck");
    PGconn *program = postgres_bed_connect(bed, "sneck");
    /* Read, work, and write only if nobody else has meanwhile. */
    assert_string_equal(ask(program, "SELECT version FROM sneck_lock WHERE resource_name = 'lock:order/7'"), "1");
    (void)ask(program, "BEGIN");
    (void)ask(program, "UPDATE orders SET state = 'paid' WHERE id = 7");
    assert_string_equal(ask(program, BUMP("1")), "1");
    (void)ask(program, "COMMIT");
    uint64_t expected = 1;
    EXPECT(SNECK_CONFLICT, snk_pg_version(store, "order/7", &expected, &version, &error));
    assert_int_equal(version, 2);
    EXPECT(SNECK_OK, snk_pg_version(store, "order/7", &version, &version, &error));
    assert_int_equal(version, 3);
    (void)ask(program, "BEGIN");
    (void)ask(program, "UPDATE orders SET state = 'sent' WHERE id = 7");
    assert_string_equal(ask(program, BUMP("2")), "0"); /* it moved: nothing of this is to be */
    (void)ask(program, "ROLLBACK");
    assert_string_equal(ask(program, "SELECT state FROM orders"), "paid");
    PQfinish(program);
    test_store_close(store);
    postgres_bed_do(bed, "DROP TABLE orders");
}

/* A long transaction on the row of a lock is in nobody's way who holds that lock by lease. */
static void test_a_long_transaction_on_the_row_holds_up_no_renewal(void **state)
{
    postgres_bed *bed = *state;
    sneck_error error;
    sneck_client *client = postgres_bed_open(bed, "timeout=800", NULL);
    sneck_lock *lock = test_mutex(client, "order/7", NULL);
    PGconn *program = postgres_bed_connect(bed, "postgres");
    (void)ask(program, "INSERT INTO sneck_lock VALUES ('lock:order/7', 5)");
    (void)ask(program, "BEGIN");
    assert_string_equal(ask(program, BUMP("5")), "1");
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    EXPECT(SNECK_OK, sneck_extend(lock, 30000, &error));
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    (void)ask(program, "COMMIT");
    PQfinish(program);
    sneck_lock_free(lock);
    sneck_close(client);
}

/* ---- Rows that nobody uses ---- */

static void test_unused_rows_are_removed_and_tokens_go_on_above_them(void **state)
{
    postgres_bed *bed = *state;
    snk_store *store = test_store(postgres_bed_url(bed, NULL));
    static const char *const names[] = { "used", "held", "unused" };
    snk_id claims[3];
    for (size_t i = 0; i < 3; i++)
        claims[i] = test_must_hold(store, names[i]);
    snk_answer answer = test_release(store, "unused", &claims[2]);
    test_expect_kind(&answer, SNK_ANSWER_DONE);
    answer = test_release(store, "used", &claims[0]);
    test_expect_kind(&answer, SNK_ANSWER_DONE);
    /* The clock cannot be the reason that tokens go on. */
    postgres_bed_do(bed, "UPDATE sneck_state SET token = 9000000000000000 WHERE resource_name = 'lock:unused'");
    postgres_bed_do(bed, "UPDATE sneck_state SET used_at = now() - interval '11 minutes'"
                         " WHERE resource_name IN ('lock:unused', 'lock:held')");
    assert_string_equal(postgres_bed_text(bed, "SELECT sneck_reap('')"), "lock:used");
    assert_string_equal(
        postgres_bed_text(bed, "SELECT string_agg(resource_name, ' ' ORDER BY resource_name) FROM sneck_state"),
        "lock:held lock:used");
    snk_id claim = test_id();
    answer = test_acquire(store, "unused", &claim, TEST_TRY);
    test_expect_kind(&answer, SNK_ANSWER_HELD);
    assert_true(answer.token_first > UINT64_C(9000000000000000));
    postgres_bed_do(bed, "UPDATE sneck_meta SET value = 0 WHERE key = 'floor'");
    test_store_close(store);
}

static void test_a_client_reaps_now_and_then(void **state)
{
    postgres_bed *bed = *state;
    snk_store *store = test_store(postgres_bed_url(bed, NULL));
    snk_id claim = test_must_hold(store, "a");
    (void)test_release(store, "a", &claim);
    postgres_bed_do(bed, "UPDATE sneck_state SET used_at = now() - interval '11 minutes'");
    atomic_store(&snk_pg_store_of(store)->requests, SNK_PG_REAP_EACH - 2);
    (void)test_must_hold(store, "b");
    assert_int_equal(postgres_bed_number(bed, "SELECT count(*) FROM sneck_state"), 2);
    (void)test_must_hold(store, "c");
    assert_int_equal(postgres_bed_number(bed, "SELECT count(*) FROM sneck_state"), 2);
    test_store_close(store);
}

/* Somebody changed the tables by hand: the lock is not stuck for ever. */
static void test_a_wrong_count_is_put_right(void **state)
{
    postgres_bed *bed = *state;
    snk_store *store = test_store(postgres_bed_url(bed, NULL));
    (void)test_must_hold(store, "a");
    postgres_bed_do(bed, "DELETE FROM sneck_hold");
    snk_id claim = test_must_hold(store, "a");
    postgres_bed_do(bed, "UPDATE sneck_state SET claims = 7");
    snk_answer answer = test_release(store, "a", &claim);
    test_expect_kind(&answer, SNK_ANSWER_DONE);
    (void)test_must_hold(store, "a");
    assert_int_equal(postgres_bed_number(bed, "SELECT claims FROM sneck_state"), 1);
    test_store_close(store);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, postgres_bed_set_up, postgres_bed_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_the_first_who_may_makes_the_tables),
        TEST(test_setup_may_run_again_and_keeps_what_is_there),
        TEST(test_tables_of_another_version_are_refused),
        TEST(test_tables_that_are_gone_are_said_to_be_gone),
        TEST(test_the_documented_role_can_call_and_touch_nothing),
        TEST(test_tables_of_the_caller_are_not_mistaken_for_ours),
        TEST(test_a_wrong_password_is_denied_and_a_wrong_database_invalid),
        TEST(test_a_program_and_the_store_bump_the_same_version),
        TEST(test_a_long_transaction_on_the_row_holds_up_no_renewal),
        TEST(test_unused_rows_are_removed_and_tokens_go_on_above_them),
        TEST(test_a_client_reaps_now_and_then),
        TEST(test_a_wrong_count_is_put_right),
    };
    return cmocka_run_group_tests(tests, NULL, postgres_bed_end);
}
