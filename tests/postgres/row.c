/* mode=row: a hold is a row that is locked in an open transaction, and ends with it. */
#include "test.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "bed.h"
#include "children.h"
#include "postgres_bed.h"

static sneck_client *open_with(const postgres_bed *bed, int64_t lease_ms)
{
    sneck_client_options options = SNECK_CLIENT_OPTIONS_INIT;
    options.lease_ms = lease_ms;
    return postgres_bed_open(bed, "mode=row", &options);
}

/* A statement of some program; the code of its error, or "" when it worked. */
static const char *run(PGconn *connection, const char *sql)
{
    static char state[8];
    PGresult *result = PQexec(connection, sql);
    const char *code = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    (void)snprintf(state, sizeof state, "%s", code == NULL ? "" : code);
    PQclear(result);
    return state;
}

#define LOCK_ROW "SELECT FROM sneck_lock WHERE resource_name = 'lock:a' FOR UPDATE"

typedef struct waiter {
    sneck_lock *lock;
    pthread_t thread;
    sneck_status status;
    sneck_error error;
    uint64_t token;
    int64_t at_ms;
} waiter;

static void *acquire(void *argument)
{
    waiter *self = argument;
    self->status = sneck_acquire(self->lock, TEST_PATIENCE_MS, &self->error);
    self->at_ms = test_now_ms();
    self->token = sneck_token(self->lock);
    if (self->status == SNECK_OK)
        (void)sneck_release(self->lock, NULL);
    return NULL;
}

static void start_waiting(waiter *self, sneck_lock *lock)
{
    self->lock = lock;
    assert_int_equal(pthread_create(&self->thread, NULL, acquire, self), 0);
}

static void expect_served(waiter *self)
{
    assert_int_equal(pthread_join(self->thread, NULL), 0);
    test_expect(SNECK_OK, self->status, &self->error, "sneck_acquire");
}

/* ---- Programs that lock the same row ---- */

static void test_a_program_that_locks_the_row_and_a_hold_exclude_each_other(void **state)
{
    postgres_bed *bed = *state;
    sneck_error error;
    sneck_client *client = open_with(bed, 20000);
    sneck_lock *lock = test_mutex(client, "a", NULL);
    PGconn *program = postgres_bed_connect(bed, "postgres");
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    assert_string_equal(run(program, LOCK_ROW " NOWAIT"), "55P03");
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    assert_string_equal(run(program, "BEGIN"), "");
    assert_string_equal(run(program, LOCK_ROW " NOWAIT"), "");
    EXPECT(SNECK_BUSY, sneck_acquire(lock, 0, &error));
    EXPECT(SNECK_TIMEOUT, sneck_acquire(lock, 50, &error));
    assert_int_equal(postgres_bed_number(bed, "SELECT count(*) FROM sneck_hold"), 0); /* nothing is left of those */
    waiter self;
    start_waiting(&self, lock);
    postgres_bed_await(bed, "SELECT count(*) FROM sneck_hold", 1); /* next in line, and not served while it is locked */
    postgres_bed_pause(150);
    int64_t committed_ms = test_now_ms();
    assert_string_equal(run(program, "COMMIT"), "");
    expect_served(&self);
    assert_true(self.at_ms >= committed_ms && self.at_ms - committed_ms < 5000);
    PQfinish(program);
    sneck_lock_free(lock);
    sneck_close(client);
}

static void test_a_program_waits_in_the_servers_queue_until_the_release(void **state)
{
    postgres_bed *bed = *state;
    sneck_error error;
    sneck_client *client = open_with(bed, 20000);
    sneck_lock *lock = test_mutex(client, "a", NULL);
    PGconn *program = postgres_bed_connect(bed, "postgres");
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    assert_int_equal(PQsendQuery(program, LOCK_ROW), 1);
    postgres_bed_await(bed, "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'", 1);
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    PGresult *result = PQgetResult(program);
    assert_int_equal(PQresultStatus(result), PGRES_TUPLES_OK);
    PQclear(result);
    PQfinish(program);
    sneck_lock_free(lock);
    sneck_close(client);
}

static void test_holders_of_both_modes_exclude_each_other(void **state)
{
    postgres_bed *bed = *state;
    sneck_error error;
    sneck_client *of_rows = open_with(bed, 20000);
    sneck_client *of_leases = postgres_bed_open(bed, "mode=lease", NULL);
    sneck_lock *row = test_mutex(of_rows, "a", NULL);
    sneck_lock *lease = test_mutex(of_leases, "a", NULL);
    EXPECT(SNECK_OK, sneck_acquire(row, 0, &error));
    EXPECT(SNECK_BUSY, sneck_acquire(lease, 0, &error));
    waiter self;
    start_waiting(&self, lease);
    postgres_bed_await(bed, "SELECT count(*) FROM sneck_queue", 1);
    uint64_t token = sneck_token(row);
    EXPECT(SNECK_OK, sneck_release(row, &error));
    expect_served(&self);
    assert_true(self.token > token);
    EXPECT(SNECK_OK, sneck_acquire(lease, 0, &error));
    EXPECT(SNECK_BUSY, sneck_acquire(row, 0, &error));
    start_waiting(&self, row);
    postgres_bed_await(bed, "SELECT count(*) FROM sneck_queue", 1);
    EXPECT(SNECK_OK, sneck_release(lease, &error));
    expect_served(&self);
    sneck_lock_free(row);
    sneck_lock_free(lease);
    sneck_close(of_rows);
    sneck_close(of_leases);
}

/* ---- The end of a connection is the end of the hold ---- */

typedef struct holding {
    char url[256];
    int64_t lease_ms;
} holding;

static int hold_until_killed(void *context)
{
    const holding *self = context;
    sneck_error error;
    sneck_client *client = NULL;
    sneck_lock *lock = NULL;
    sneck_client_options options = SNECK_CLIENT_OPTIONS_INIT;
    options.lease_ms = self->lease_ms;
    CHECK(sneck_open(self->url, &options, &client, &error) == SNECK_OK);
    CHECK(sneck_mutex(client, "a", NULL, &lock, &error) == SNECK_OK);
    CHECK(sneck_acquire(lock, 0, &error) == SNECK_OK);
    test_child_ready();
    for (;;)
        (void)pause();
}

static holding hold_on(const postgres_bed *bed, int64_t lease_ms)
{
    holding self = { .lease_ms = lease_ms };
    (void)snprintf(self.url, sizeof self.url, "%s", postgres_bed_url(bed, "mode=row"));
    return self;
}

static void test_a_killed_holder_is_replaced_at_once_and_its_token_is_kept(void **state)
{
    postgres_bed *bed = *state;
    sneck_client *client = open_with(bed, 60000);
    waiter self;
    holding job = hold_on(bed, 60000);
    test_child child = test_child_start(hold_until_killed, &job);
    test_child_await(&child);
    long long token = postgres_bed_number(bed, "SELECT token_first FROM sneck_hold");
    start_waiting(&self, test_mutex(client, "a", NULL));
    postgres_bed_await(bed, "SELECT count(*) FROM sneck_queue", 1);
    int64_t killed_ms = test_now_ms();
    test_child_kill(&child);
    expect_served(&self);
    int64_t took_ms = self.at_ms - killed_ms;
    assert_true(took_ms < 5000); /* of a lease of a minute */
    assert_true(self.token > (uint64_t)token);
    assert_string_equal(postgres_bed_text(bed, "SELECT kind FROM sneck_incident"), "died");
    assert_int_equal(postgres_bed_number(bed, "SELECT token FROM sneck_incident"), token);
    printf("# figure: PostgreSQL mode=row: a killed holder was replaced after %lld ms\n", (long long)took_ms);
    sneck_lock_free(self.lock);
    sneck_close(client);
}

static void test_a_stopped_holder_loses_the_row_with_its_lease(void **state)
{
    postgres_bed *bed = *state;
    sneck_error error;
    sneck_client *client = open_with(bed, 20000);
    sneck_lock *lock = test_mutex(client, "a", NULL);
    holding job = hold_on(bed, 1000);
    test_child child = test_child_start(hold_until_killed, &job);
    test_child_await(&child);
    postgres_bed_pause(1500); /* its heartbeat keeps it longer than a lease */
    EXPECT(SNECK_BUSY, sneck_acquire(lock, 0, &error));
    assert_int_equal(kill(child.pid, SIGSTOP), 0);
    int64_t stopped_ms = test_now_ms();
    EXPECT(SNECK_OK, sneck_acquire(lock, TEST_PATIENCE_MS, &error));
    assert_in_range(test_now_ms() - stopped_ms, 300, 4000);
    assert_int_equal(kill(child.pid, SIGCONT), 0);
    postgres_bed_pause(300);
    assert_true(sneck_is_held(lock)); /* what the other does now touches nothing */
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    test_child_kill(&child);
    sneck_lock_free(lock);
    sneck_close(client);
}

static void test_a_holder_whose_session_was_ended_is_told_and_harmless(void **state)
{
    postgres_bed *bed = *state;
    sneck_error error;
    sneck_client *client = open_with(bed, 900);
    sneck_client *other = open_with(bed, 20000);
    sneck_lock *lock = test_mutex(client, "a", NULL);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    uint64_t token = sneck_token(lock);
    int fd = sneck_lost_fd(lock);
    waiter self;
    start_waiting(&self, test_mutex(other, "a", NULL));
    postgres_bed_await(bed, "SELECT count(*) FROM sneck_queue", 1);
    postgres_bed_do(bed, "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
                         " WHERE state = 'idle in transaction' AND usename = 'sneck'");
    assert_true(test_readable(fd, TEST_PATIENCE_MS));
    expect_served(&self);
    assert_true(self.token > token);
    EXPECT(SNECK_LOST, sneck_release(lock, &error));
    sneck_lock_free(lock);
    sneck_lock_free(self.lock);
    sneck_close(client);
    sneck_close(other);
}

static void test_a_crash_of_the_server_ends_every_hold(void **state)
{
    postgres_bed *bed = *state;
    sneck_error error;
    sneck_client *client = open_with(bed, 20000);
    sneck_lock *lock = test_mutex(client, "a", NULL);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    uint64_t token = sneck_token(lock);
    postgres_bed_crash(bed);
    postgres_bed_restart(bed);
    EXPECT(SNECK_LOST, sneck_extend(lock, 20000, &error));
    EXPECT(SNECK_LOST, sneck_release(lock, &error));
    EXPECT(SNECK_OK, sneck_acquire(lock, 5000, &error));
    assert_true(sneck_token(lock) > token);
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    sneck_lock_free(lock);
    sneck_close(client);
}

/* ---- Releases ---- */

typedef struct releaser {
    sneck_lock *lock;
    sneck_status status;
} releaser;

static void *release_it(void *argument)
{
    releaser *self = argument;
    self->status = sneck_release(self->lock, NULL);
    return NULL;
}

/* The short patience of those who try for the row is not that of a release: that one is not taken for a loss. */
static void test_a_release_that_is_held_up_still_is_one(void **state)
{
    postgres_bed *bed = *state;
    sneck_error error;
    sneck_client *client = open_with(bed, 20000);
    sneck_lock_options options = SNECK_LOCK_OPTIONS_INIT;
    options.owner = SNECK_OWNER_HANDLE;
    releaser self = { .lock = test_mutex(client, "a", &options) };
    EXPECT(SNECK_OK, sneck_acquire(self.lock, 0, &error));
    PGconn *program = postgres_bed_connect(bed, "postgres");
    assert_string_equal(run(program, "BEGIN"), "");
    assert_string_equal(run(program, "SELECT FROM sneck_state FOR UPDATE"), "");
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, release_it, &self), 0);
    postgres_bed_await(bed, "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'", 1);
    postgres_bed_pause(100); /* the patience for a row is 20 ms */
    assert_string_equal(run(program, "COMMIT"), "");
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(self.status, SNECK_OK);
    assert_int_equal(postgres_bed_number(bed, "SELECT count(*) FROM sneck_incident"), 0);
    PQfinish(program);
    sneck_lock_free(self.lock);
    sneck_close(client);
}

/* What a row cannot be is refused, with the reason. */
static void test_a_row_is_neither_shared_nor_counted(void **state)
{
    postgres_bed *bed = *state;
    sneck_error error;
    sneck_client *client = open_with(bed, 20000);
    sneck_lock *lock = NULL;
    sneck_semaphore *semaphore = NULL;
    sneck_latch *latch = NULL;
    EXPECT(SNECK_UNSUPPORTED, sneck_read_lock(client, "a", NULL, &lock, &error));
    assert_non_null(strstr(error.message, "postgres with mode=row cannot keep read locks"));
    EXPECT(SNECK_UNSUPPORTED, sneck_semaphore_open(client, "a", NULL, &semaphore, &error));
    assert_non_null(strstr(error.message, "mode=row"));
    EXPECT(SNECK_UNSUPPORTED, sneck_latch_open(client, "a", NULL, &latch, &error));
    assert_non_null(strstr(error.message, "mode=row"));
    uint64_t version = 1;
    EXPECT(SNECK_OK, sneck_version_get(client, "a", &version, &error));
    assert_int_equal(version, 0);
    sneck_close(client);
}

/* ---- What it looks like on the server ---- */

static void test_a_hold_is_one_transaction_and_a_release_leaves_none(void **state)
{
    postgres_bed *bed = *state;
    sneck_error error;
    static const char open_ones[] = "SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'";
    sneck_client *client = open_with(bed, 7000);
    sneck_lock *locks[3];
    for (int i = 0; i < 3; i++) {
        char name[8];
        (void)snprintf(name, sizeof name, "l%d", i);
        locks[i] = test_mutex(client, name, NULL);
        EXPECT(SNECK_OK, sneck_acquire(locks[i], 0, &error));
    }
    postgres_bed_await(bed, open_ones, 3);
    for (int i = 0; i < 3; i++)
        EXPECT(SNECK_OK, sneck_release(locks[i], &error));
    postgres_bed_await(bed, open_ones, 0);
    long long sessions = postgres_bed_number(bed, "SELECT count(*) FROM pg_stat_activity WHERE usename = 'sneck'");
    for (int i = 0; i < 30; i++) {
        EXPECT(SNECK_OK, sneck_acquire(locks[i % 3], 0, &error));
        EXPECT(SNECK_OK, sneck_release(locks[i % 3], &error));
    }
    /* Sessions are used again. */
    assert_int_equal(postgres_bed_number(bed, "SELECT count(*) FROM pg_stat_activity WHERE usename = 'sneck'"),
                     sessions);
    for (int i = 0; i < 3; i++)
        sneck_lock_free(locks[i]);
    sneck_close(client);
}

static void test_a_broken_hold_gives_its_row_up_though_its_holder_is_stopped(void **state)
{
    postgres_bed *bed = *state;
    sneck_error error;
    sneck_client *client = open_with(bed, 20000);
    sneck_lock *lock = test_mutex(client, "a", NULL);
    holding job = hold_on(bed, 60000);
    test_child child = test_child_start(hold_until_killed, &job);
    test_child_await(&child);
    assert_int_equal(kill(child.pid, SIGSTOP), 0);
    test_break(client, "a");
    EXPECT(SNECK_OK, sneck_acquire(lock, 5000, &error));
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    test_child_kill(&child);
    sneck_lock_free(lock);
    sneck_close(client);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, postgres_bed_set_up, postgres_bed_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_a_program_that_locks_the_row_and_a_hold_exclude_each_other),
        TEST(test_a_program_waits_in_the_servers_queue_until_the_release),
        TEST(test_holders_of_both_modes_exclude_each_other),
        TEST(test_a_killed_holder_is_replaced_at_once_and_its_token_is_kept),
        TEST(test_a_stopped_holder_loses_the_row_with_its_lease),
        TEST(test_a_holder_whose_session_was_ended_is_told_and_harmless),
        TEST(test_a_crash_of_the_server_ends_every_hold),
        TEST(test_a_release_that_is_held_up_still_is_one),
        TEST(test_a_row_is_neither_shared_nor_counted),
        TEST(test_a_hold_is_one_transaction_and_a_release_leaves_none),
        TEST(test_a_broken_hold_gives_its_row_up_though_its_holder_is_stopped),
    };
    return cmocka_run_group_tests(tests, NULL, postgres_bed_end);
}
