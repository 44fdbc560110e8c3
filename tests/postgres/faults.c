/* Servers that crash, freeze, refuse and turn away; sessions that are ended; deadlocks and serialization failures. */
#include "test.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "bed.h"
#include "claims.h"
#include "postgres_bed.h"
#include "waiter.h"

static sneck_client *open_with(const postgres_bed *bed, const char *keys, int64_t lease_ms)
{
    sneck_client_options options = SNECK_CLIENT_OPTIONS_INIT;
    options.lease_ms = lease_ms;
    return postgres_bed_open(bed, keys, &options);
}

/* Ends every session of our clients. */
static void end_sessions(postgres_bed *bed, const char *which)
{
    postgres_bed_do(bed, "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = 'sneck' AND %s",
                    which);
}

static void start_waiting(test_waiter *self, postgres_bed *bed, sneck_lock *lock)
{
    test_waiter_start(self, lock, TEST_PATIENCE_MS);
    postgres_bed_await(bed, "SELECT count(*) FROM sneck_queue", 1);
}

/* ---- The server ---- */

static void test_a_server_that_takes_no_writes_grants_nothing_and_costs_no_hold(void **state)
{
    postgres_bed *bed = *state;
    sneck_error error;
    sneck_client *client = open_with(bed, NULL, 20000);
    sneck_lock *lock = test_mutex(client, "a", NULL);
    sneck_lock *another = test_mutex(client, "b", NULL);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    postgres_bed_do(bed, "SET default_transaction_read_only = off");
    postgres_bed_do(bed, "ALTER DATABASE locks SET default_transaction_read_only = on");
    end_sessions(bed, "true");
    EXPECT(SNECK_UNAVAILABLE, sneck_acquire(another, 0, &error));
    assert_non_null(strstr(error.message, "25006"));
    EXPECT(SNECK_UNAVAILABLE, sneck_extend(lock, 20000, &error));
    assert_true(sneck_is_held(lock));
    postgres_bed_do(bed, "ALTER DATABASE locks RESET default_transaction_read_only");
    EXPECT(SNECK_OK, sneck_extend(lock, 20000, &error));
    EXPECT(SNECK_OK, sneck_acquire(another, 0, &error));
    sneck_lock_free(lock);
    sneck_lock_free(another);
    sneck_close(client);
}

/*
 * The server ends a transaction that was silent for its lease, and may be slow to: the hold is over when the row is free,
 * so that whoever comes next is never told to have the lock while the row is not to be had.
 */
static void test_a_hold_with_a_row_is_over_when_its_session_is(void **state)
{
    postgres_bed *bed = *state;
    snk_store *a = test_store(postgres_bed_url(bed, "mode=row"));
    snk_store *b = test_store(postgres_bed_url(bed, "mode=row"));
    snk_id holder = test_id();
    test_expect_answer(test_acquire(a, "x", &holder, (test_ask){ .lease_ms = 500 }), SNK_ANSWER_HELD);
    snk_id waiter = test_must_queue(b, "x", NULL);
    pid_t session = (pid_t)postgres_bed_number(bed, "SELECT pid FROM pg_stat_activity WHERE usename = 'sneck'"
                                                    " AND state = 'idle in transaction'");
    assert_true(session > 0);
    assert_int_equal(kill(session, SIGSTOP), 0);
    postgres_bed_await(bed, "SELECT count(*) FROM sneck_hold WHERE ends_at > clock_timestamp()", 0);
    test_expect_answer(test_renew(b, "x", &waiter, 20000), SNK_ANSWER_QUEUED);
    assert_int_equal(postgres_bed_number(bed, "SELECT count(*) FROM sneck_queue"), 1); /* it was not given the lock */
    assert_int_equal(kill(session, SIGCONT), 0);
    postgres_bed_await(bed, "SELECT count(*) FROM sneck_inspect('lock:x') WHERE what = 'holder'", 0);
    test_expect_answer(test_renew(b, "x", &waiter, 20000), SNK_ANSWER_HELD);
    test_expect_answer(test_release(b, "x", &waiter), SNK_ANSWER_DONE);
    test_store_close(b);
    test_store_close(a);
}

static void test_of_several_servers_the_one_that_takes_writes_is_found_also_after_a_failover(void **state)
{
    postgres_bed *bed = *state;
    sneck_error error;
    postgres_server standby;
    assert_true(postgres_server_start_standby(&standby, &bed->server));
    char url[256];
    (void)snprintf(url, sizeof url, "postgres://sneck:secret@127.0.0.1:%d,127.0.0.1:%d/locks", standby.port,
                   bed->server.port);
    sneck_client *client = NULL;
    EXPECT(SNECK_OK, sneck_open(url, NULL, &client, &error));
    sneck_lock *lock = test_mutex(client, "a", NULL);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    uint64_t token = sneck_token(lock);
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    /* The standby alone can be looked at, and gives nothing. */
    sneck_client *reader = NULL;
    EXPECT(SNECK_OK, sneck_open(postgres_bed_url_at(standby.port, NULL), NULL, &reader, &error));
    sneck_lock *refused = test_mutex(reader, "a", NULL);
    EXPECT(SNECK_UNAVAILABLE, sneck_acquire(refused, 0, &error));
    assert_false(test_is_held_in_store(reader, "a"));
    sneck_lock_free(refused);
    sneck_close(reader);
    /* It takes over. */
    postgres_bed_crash(bed);
    postgres_bed promoted = { .server = standby };
    promoted.admin = postgres_bed_connect(&promoted, "postgres");
    postgres_bed_do(&promoted, "SELECT pg_promote()");
    int64_t limit_ms = test_now_ms() + TEST_PATIENCE_MS;
    while (sneck_acquire(lock, 0, &error) != SNECK_OK)
        assert_true(test_now_ms() < limit_ms);
    assert_true(sneck_token(lock) > token);
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    sneck_lock_free(lock);
    sneck_close(client);
    postgres_bed_stop(&promoted);
    postgres_bed_restart(bed);
}

/* The server does not wait for its log at a commit, unless it is told to. */
static void test_a_server_that_commits_late_forgets_no_hold_in_a_crash(void **state)
{
    (void)state;
    static const char *const late[] = { "-c", "synchronous_commit=off", "-c", "wal_writer_delay=10s", NULL };
    postgres_bed bed;
    sneck_error error;
    postgres_bed_start_with(&bed, late);
    sneck_client *client = open_with(&bed, NULL, 60000);
    sneck_lock *lock = test_mutex(client, "a", NULL);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    postgres_bed_crash(&bed);
    postgres_bed_restart(&bed);
    assert_int_equal(postgres_bed_number(&bed, "SELECT count(*) FROM sneck_hold"), 1);
    assert_true((uint64_t)postgres_bed_number(&bed, "SELECT token FROM sneck_state") >= sneck_token(lock));
    sneck_lock_free(lock);
    sneck_close(client);
    postgres_bed_stop(&bed);
}

/* ---- Sessions ---- */

static void test_forged_messages_grant_nothing(void **state)
{
    postgres_bed *bed = *state;
    sneck_error error;
    sneck_client *client = open_with(bed, NULL, 20000);
    sneck_client *other = open_with(bed, NULL, 20000);
    sneck_lock *lock = test_mutex(client, "a", NULL);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    test_waiter self;
    start_waiting(&self, bed, test_mutex(other, "a", NULL));
    postgres_bed_do(bed, "SELECT pg_notify('sneck_' || client, claim::text) FROM sneck_queue");
    postgres_bed_do(bed, "SELECT pg_notify('sneck_' || client, repeat('x', 7000)) FROM sneck_queue");
    postgres_bed_do(bed, "SELECT pg_notify('sneck_' || client, '') FROM sneck_queue");
    postgres_bed_do(bed, "SELECT pg_notify('sneck_' || client, gen_random_uuid()::text) FROM sneck_queue");
    postgres_bed_pause(100);
    assert_true(sneck_is_held(lock));
    assert_int_equal(postgres_bed_number(bed, "SELECT count(*) FROM sneck_queue"), 1);
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    test_waiter_join(&self);
    sneck_lock_free(lock);
    sneck_lock_free(self.lock);
    sneck_close(client);
    sneck_close(other);
}

/* ---- Statements that fail and may be tried again ---- */

static void test_serialization_failures_are_tried_again(void **state)
{
    postgres_bed *bed = *state;
    sneck_error error;
    sneck_client *client = open_with(bed, NULL, 20000);
    sneck_lock *lock = test_mutex(client, "a", NULL);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    postgres_bed_do(bed, "CREATE SEQUENCE troubles;"
                         "CREATE FUNCTION trouble() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN"
                         " IF nextval('sneck.troubles') %% 4 <> 0 THEN"
                         "  RAISE EXCEPTION 'made by a test' USING ERRCODE = '40001';"
                         " END IF; RETURN NEW; END $$;"
                         "CREATE TRIGGER trouble BEFORE UPDATE ON sneck_state FOR EACH ROW EXECUTE FUNCTION trouble()");
    for (int i = 0; i < 5; i++) {
        EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
        EXPECT(SNECK_OK, sneck_release(lock, &error));
    }
    assert_true(postgres_bed_number(bed, "SELECT last_value FROM troubles") >= 40);
    postgres_bed_do(bed, "DROP TRIGGER trouble ON sneck_state; DROP FUNCTION trouble; DROP SEQUENCE troubles");
    sneck_lock_free(lock);
    sneck_close(client);
}

typedef struct renewal {
    snk_store *store;
    snk_id claims[2];
    snk_answer answers[2];
} renewal;

static void ignore(snk_call *call)
{
    (void)call;
}

static void *renew_both(void *argument)
{
    renewal *self = argument;
    static const char *const names[] = { "a", "b" };
    snk_claim claims[2];
    for (int i = 0; i < 2; i++)
        claims[i] = (snk_claim){
            .name = names[i],
            .send = { .ask = SNK_ASK_RENEW, .claim = self->claims[i], .lease_ns = TEST_LEASE_MS * SNK_NS_PER_MS }
        };
    snk_call call = { .claims = claims, .answers = self->answers, .count = 2, .done = ignore };
    snk_store_submit(self->store, &call);
    return NULL;
}

static void run(PGconn *connection, const char *sql)
{
    PGresult *result = PQexec(connection, sql);
    if (PQresultStatus(result) != PGRES_COMMAND_OK && PQresultStatus(result) != PGRES_TUPLES_OK)
        fail_msg("%s: %s", sql, PQerrorMessage(connection));
    PQclear(result);
}

/* A program locks two of our rows in the wrong order, while a client renews both in one statement. */
static void test_a_deadlock_is_tried_again(void **state)
{
    postgres_bed *bed = *state;
    renewal self = { .store = test_store(postgres_bed_url(bed, NULL)) };
    self.claims[0] = test_must_hold(self.store, "a");
    self.claims[1] = test_must_hold(self.store, "b");
    long long before = postgres_bed_number(bed, "SELECT deadlocks FROM pg_stat_database WHERE datname = 'locks'");
    PGconn *program = postgres_bed_connect(bed, "postgres");
    run(program, "SET deadlock_timeout = '60s'"); /* not this one is to give way */
    run(program, "BEGIN");
    run(program, "SELECT FROM sneck_state WHERE resource_name = 'lock:b' FOR UPDATE");
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, renew_both, &self), 0);
    postgres_bed_await(bed,
                       "SELECT count(*) FROM pg_stat_activity WHERE usename = 'sneck' AND wait_event_type = 'Lock'", 1);
    run(program, "SELECT FROM sneck_state WHERE resource_name = 'lock:a' FOR UPDATE");
    run(program, "COMMIT");
    assert_int_equal(pthread_join(thread, NULL), 0);
    test_expect_kind(&self.answers[0], SNK_ANSWER_HELD);
    test_expect_kind(&self.answers[1], SNK_ANSWER_HELD);
    PQfinish(program);
    test_store_close(self.store); /* and its sessions tell what they counted */
    char sql[128];
    (void)snprintf(sql, sizeof sql, "SELECT (deadlocks > %lld)::int FROM pg_stat_database WHERE datname = 'locks'",
                   before);
    postgres_bed_await(bed, sql, 1);
}

/* A statement that is held up on the server fails there, with a clear answer, before we give it up. */
static void test_a_statement_that_is_held_up_fails_and_does_not_happen(void **state)
{
    postgres_bed *bed = *state;
    sneck_error error;
    sneck_client *client = open_with(bed, "timeout=800", 20000);
    sneck_lock *lock = test_mutex(client, "a", NULL);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    PGconn *program = postgres_bed_connect(bed, "postgres");
    run(program, "BEGIN");
    run(program, "SELECT FROM sneck_state FOR UPDATE");
    EXPECT(SNECK_UNAVAILABLE, sneck_acquire(lock, 0, &error));
    run(program, "COMMIT");
    assert_int_equal(postgres_bed_number(bed, "SELECT count(*) FROM sneck_hold"), 0);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    PQfinish(program);
    sneck_lock_free(lock);
    sneck_close(client);
}

/* Time limits are those of our sessions alone. */
static void test_other_sessions_keep_their_settings(void **state)
{
    postgres_bed *bed = *state;
    sneck_client *client = open_with(bed, NULL, 20000);
    PGconn *program = postgres_bed_connect(bed, "sneck");
    PGresult *result =
        PQexec(program, "SELECT current_setting('statement_timeout') || current_setting('lock_timeout')");
    assert_string_equal(PQgetvalue(result, 0, 0), "00");
    PQclear(result);
    PQfinish(program);
    sneck_close(client);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, postgres_bed_set_up, postgres_bed_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_a_server_that_takes_no_writes_grants_nothing_and_costs_no_hold),
        TEST(test_a_server_that_commits_late_forgets_no_hold_in_a_crash),
        TEST(test_forged_messages_grant_nothing),
        TEST(test_serialization_failures_are_tried_again),
        TEST(test_a_deadlock_is_tried_again),
        TEST(test_a_statement_that_is_held_up_fails_and_does_not_happen),
        TEST(test_other_sessions_keep_their_settings),
        TEST(test_a_hold_with_a_row_is_over_when_its_session_is),
        TEST(test_of_several_servers_the_one_that_takes_writes_is_found_also_after_a_failover),
    };
    return cmocka_run_group_tests(tests, NULL, postgres_bed_end);
}
