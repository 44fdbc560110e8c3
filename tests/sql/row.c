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
#include "sql_bed.h"
#include "waiter.h"

static sneck_client *open_with(const sql_bed *bed, int64_t lease_ms)
{
    return sql_bed_open(bed, NULL, lease_ms);
}

static const char queue[] = "SELECT count(*) FROM sneck_queue";
static const char holds[] = "SELECT count(*) FROM sneck_hold";

/* A program of somebody, which has nothing to do with sneck. */
typedef struct program {
    const sql_server *server;
    void *connection;
} program;

static program start_program(sql_bed *bed)
{
    return (program){ .server = bed->server, .connection = bed->server->connect(bed->bed) };
}

static bool run(const program *self, const char *sql)
{
    return self->server->execute(self->connection, sql);
}

static void end_program(const program *self)
{
    self->server->disconnect(self->connection);
}

#define LOCK_ROW "SELECT version FROM sneck_lock WHERE resource_name = 'lock:a' FOR UPDATE"

/* ---- Programs that lock the same row ---- */

static void test_a_program_that_locks_the_row_and_a_hold_exclude_each_other(void **state)
{
    sql_bed *bed = *state;
    sneck_error error;
    sneck_client *client = open_with(bed, 20000);
    sneck_lock *lock = test_mutex(client, "a", NULL);
    const program somebody = start_program(bed);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    assert_false(run(&somebody, LOCK_ROW " NOWAIT"));
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    assert_true(run(&somebody, "BEGIN"));
    assert_true(run(&somebody, LOCK_ROW " NOWAIT"));
    EXPECT(SNECK_BUSY, sneck_acquire(lock, 0, &error));
    EXPECT(SNECK_TIMEOUT, sneck_acquire(lock, 50, &error));
    assert_int_equal(sql_bed_number(bed, holds), 0); /* nothing is left of those */
    test_waiter self;
    test_waiter_start(&self, lock, TEST_PATIENCE_MS);
    sql_bed_await(bed, holds, 1); /* next in line, and not served while it is locked */
    sql_bed_pause(150);
    int64_t committed_ms = test_now_ms();
    assert_true(run(&somebody, "COMMIT"));
    test_waiter_join(&self);
    assert_true(self.served_at_ms >= committed_ms && self.served_at_ms - committed_ms < 5000);
    end_program(&somebody);
    sneck_lock_free(lock);
    sneck_close(client);
}

static void *lock_row(void *argument)
{
    return run(argument, LOCK_ROW) ? argument : NULL;
}

static void test_a_program_waits_in_the_servers_queue_until_the_release(void **state)
{
    sql_bed *bed = *state;
    sneck_error error;
    sneck_client *client = open_with(bed, 20000);
    sneck_lock *lock = test_mutex(client, "a", NULL);
    program somebody = start_program(bed);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    pthread_t thread;
    void *locked = NULL;
    assert_int_equal(pthread_create(&thread, NULL, lock_row, &somebody), 0);
    sql_bed_await(bed, bed->server->lock_waits, 1);
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    assert_int_equal(pthread_join(thread, &locked), 0);
    assert_non_null(locked);
    end_program(&somebody);
    sneck_lock_free(lock);
    sneck_close(client);
}

static void test_holders_of_both_modes_exclude_each_other(void **state)
{
    sql_bed *bed = *state;
    sneck_error error;
    sneck_client *of_rows = open_with(bed, 20000);
    sql_bed leases = *bed;
    leases.mode = "mode=lease";
    sneck_client *of_leases = sql_bed_open(&leases, NULL, 20000);
    sneck_lock *row = test_mutex(of_rows, "a", NULL);
    sneck_lock *lease = test_mutex(of_leases, "a", NULL);
    EXPECT(SNECK_OK, sneck_acquire(row, 0, &error));
    EXPECT(SNECK_BUSY, sneck_acquire(lease, 0, &error));
    test_waiter self;
    test_waiter_start(&self, lease, TEST_PATIENCE_MS);
    sql_bed_await(bed, queue, 1);
    uint64_t token = sneck_token(row);
    EXPECT(SNECK_OK, sneck_release(row, &error));
    test_waiter_join(&self);
    assert_true(self.token > token);
    EXPECT(SNECK_OK, sneck_acquire(lease, 0, &error));
    EXPECT(SNECK_BUSY, sneck_acquire(row, 0, &error));
    test_waiter_start(&self, row, TEST_PATIENCE_MS);
    sql_bed_await(bed, queue, 1);
    EXPECT(SNECK_OK, sneck_release(lease, &error));
    test_waiter_join(&self);
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

static holding hold_on(const sql_bed *bed, int64_t lease_ms)
{
    holding self = { .lease_ms = lease_ms };
    (void)snprintf(self.url, sizeof self.url, "%s", sql_bed_url(bed, NULL));
    return self;
}

static void test_a_killed_holder_is_replaced_at_once_and_its_token_is_kept(void **state)
{
    sql_bed *bed = *state;
    sneck_client *client = open_with(bed, 60000);
    test_waiter self;
    holding job = hold_on(bed, 60000);
    test_child child = test_child_start(hold_until_killed, &job);
    test_child_await(&child);
    long long token = sql_bed_number(bed, "SELECT token_first FROM sneck_hold");
    test_waiter_start(&self, test_mutex(client, "a", NULL), TEST_PATIENCE_MS);
    sql_bed_await(bed, queue, 1);
    int64_t killed_ms = test_now_ms();
    test_child_kill(&child);
    test_waiter_join(&self);
    int64_t took_ms = self.served_at_ms - killed_ms;
    assert_true(took_ms < 5000); /* of a lease of a minute */
    assert_true(self.token > (uint64_t)token);
    assert_string_equal(bed->server->text(bed->bed, "SELECT kind FROM sneck_incident"), "died");
    assert_int_equal(sql_bed_number(bed, "SELECT token FROM sneck_incident"), token);
    printf("# figure: %s mode=row: a killed holder was replaced after %lld ms\n", bed->server->name,
           (long long)took_ms);
    sneck_lock_free(self.lock);
    sneck_close(client);
}

static void test_a_stopped_holder_loses_the_row_with_its_lease(void **state)
{
    sql_bed *bed = *state;
    sneck_error error;
    sneck_client *client = open_with(bed, 20000);
    sneck_lock *lock = test_mutex(client, "a", NULL);
    holding job = hold_on(bed, 1000);
    test_child child = test_child_start(hold_until_killed, &job);
    test_child_await(&child);
    sql_bed_pause(1500); /* its heartbeat keeps it longer than a lease */
    EXPECT(SNECK_BUSY, sneck_acquire(lock, 0, &error));
    assert_int_equal(kill(child.pid, SIGSTOP), 0);
    int64_t stopped_ms = test_now_ms();
    EXPECT(SNECK_OK, sneck_acquire(lock, TEST_PATIENCE_MS, &error));
    assert_in_range(test_now_ms() - stopped_ms, 300, 4000);
    assert_int_equal(kill(child.pid, SIGCONT), 0);
    sql_bed_pause(300);
    assert_true(sneck_is_held(lock)); /* what the other does now touches nothing */
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    test_child_kill(&child);
    sneck_lock_free(lock);
    sneck_close(client);
}

static void test_a_holder_whose_session_was_ended_is_told_and_harmless(void **state)
{
    sql_bed *bed = *state;
    sneck_error error;
    sneck_client *client = open_with(bed, 900);
    sneck_client *other = open_with(bed, 20000);
    sneck_lock *lock = test_mutex(client, "a", NULL);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    uint64_t token = sneck_token(lock);
    int fd = sneck_lost_fd(lock);
    test_waiter self;
    test_waiter_start(&self, test_mutex(other, "a", NULL), TEST_PATIENCE_MS);
    sql_bed_await(bed, queue, 1);
    bed->server->run(bed->bed, bed->server->end_row_sessions);
    assert_true(test_readable(fd, TEST_PATIENCE_MS));
    test_waiter_join(&self);
    assert_true(self.token > token);
    EXPECT(SNECK_LOST, sneck_release(lock, &error));
    sneck_lock_free(lock);
    sneck_lock_free(self.lock);
    sneck_close(client);
    sneck_close(other);
}

/* The row is free in that moment, and somebody else may have it: the next heartbeat would be far too late. */
static void test_the_end_of_a_session_is_told_at_once(void **state)
{
    sql_bed *bed = *state;
    sneck_error error;
    sneck_client *client = sql_bed_open(bed, "watchdog=off", 60000);
    sneck_client *other = open_with(bed, 60000);
    sneck_lock *lock = test_mutex(client, "a", NULL);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    int fd = sneck_lost_fd(lock);
    test_waiter self;
    test_waiter_start(&self, test_mutex(other, "a", NULL), TEST_PATIENCE_MS);
    sql_bed_await(bed, queue, 1);
    sql_bed_await(bed, bed->server->row_sessions, 1);
    int64_t ended_ms = test_now_ms();
    bed->server->run(bed->bed, bed->server->end_row_sessions);
    assert_true(test_readable(fd, TEST_PATIENCE_MS));
    assert_in_range(test_now_ms() - ended_ms, 0, 1000); /* of heartbeats each 20 s */
    EXPECT(SNECK_LOST, sneck_release(lock, &error));
    test_waiter_join(&self);
    sneck_lock_free(lock);
    sneck_lock_free(self.lock);
    sneck_close(client);
    sneck_close(other);
}

static void test_a_crash_of_the_server_ends_every_hold(void **state)
{
    sql_bed *bed = *state;
    sneck_error error;
    sneck_client *client = open_with(bed, 20000);
    sneck_lock *lock = test_mutex(client, "a", NULL);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    uint64_t token = sneck_token(lock);
    bed->server->crash(bed->bed);
    bed->server->restart(bed->bed);
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
    sql_bed *bed = *state;
    sneck_error error;
    sneck_client *client = open_with(bed, 20000);
    sneck_lock_options options = SNECK_LOCK_OPTIONS_INIT;
    options.owner = SNECK_OWNER_HANDLE;
    releaser self = { .lock = test_mutex(client, "a", &options) };
    EXPECT(SNECK_OK, sneck_acquire(self.lock, 0, &error));
    const program somebody = start_program(bed);
    assert_true(run(&somebody, "BEGIN"));
    assert_true(run(&somebody, "SELECT token FROM sneck_state FOR UPDATE"));
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, release_it, &self), 0);
    sql_bed_await(bed, bed->server->lock_waits, 1);
    sql_bed_pause(100); /* the patience for a row is 20 ms */
    assert_true(run(&somebody, "COMMIT"));
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(self.status, SNECK_OK);
    assert_int_equal(sql_bed_number(bed, "SELECT count(*) FROM sneck_incident"), 0);
    end_program(&somebody);
    sneck_lock_free(self.lock);
    sneck_close(client);
}

/* What a row cannot be is refused, with the reason. */
static void test_a_row_is_neither_shared_nor_counted(void **state)
{
    sql_bed *bed = *state;
    sneck_error error;
    sneck_client *client = open_with(bed, 20000);
    sneck_lock *lock = NULL;
    sneck_semaphore *semaphore = NULL;
    sneck_latch *latch = NULL;
    EXPECT(SNECK_UNSUPPORTED, sneck_read_lock(client, "a", NULL, &lock, &error));
    assert_non_null(strstr(error.message, bed->server->scheme));
    assert_non_null(strstr(error.message, "with mode=row cannot keep read locks"));
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
    sql_bed *bed = *state;
    sneck_error error;
    const char *open_ones = bed->server->row_sessions;
    sneck_client *client = open_with(bed, 7000);
    sneck_lock *locks[3];
    for (int i = 0; i < 3; i++) {
        char name[8];
        (void)snprintf(name, sizeof name, "l%d", i);
        locks[i] = test_mutex(client, name, NULL);
        EXPECT(SNECK_OK, sneck_acquire(locks[i], 0, &error));
    }
    sql_bed_await(bed, open_ones, 3);
    for (int i = 0; i < 3; i++)
        EXPECT(SNECK_OK, sneck_release(locks[i], &error));
    sql_bed_await(bed, open_ones, 0);
    long long sessions = sql_bed_number(bed, bed->server->sessions);
    for (int i = 0; i < 30; i++) {
        EXPECT(SNECK_OK, sneck_acquire(locks[i % 3], 0, &error));
        EXPECT(SNECK_OK, sneck_release(locks[i % 3], &error));
    }
    /* Sessions are used again. */
    assert_int_equal(sql_bed_number(bed, bed->server->sessions), sessions);
    for (int i = 0; i < 3; i++)
        sneck_lock_free(locks[i]);
    sneck_close(client);
}

static void test_a_broken_hold_gives_its_row_up_though_its_holder_is_stopped(void **state)
{
    sql_bed *bed = *state;
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
#define TEST(function)                                                                                                 \
    {                                                                                                                  \
#function, function, SQL_ROW                                                                                   \
    }
    const sql_test tests[] = {
        TEST(test_a_program_that_locks_the_row_and_a_hold_exclude_each_other),
        TEST(test_a_program_waits_in_the_servers_queue_until_the_release),
        TEST(test_holders_of_both_modes_exclude_each_other),
        TEST(test_a_killed_holder_is_replaced_at_once_and_its_token_is_kept),
        TEST(test_a_stopped_holder_loses_the_row_with_its_lease),
        TEST(test_a_holder_whose_session_was_ended_is_told_and_harmless),
        TEST(test_the_end_of_a_session_is_told_at_once),
        TEST(test_a_crash_of_the_server_ends_every_hold),
        TEST(test_a_release_that_is_held_up_still_is_one),
        TEST(test_a_row_is_neither_shared_nor_counted),
        TEST(test_a_hold_is_one_transaction_and_a_release_leaves_none),
        TEST(test_a_broken_hold_gives_its_row_up_though_its_holder_is_stopped),
    };
    return sql_bed_run("row", tests, sizeof tests / sizeof tests[0], NULL, NULL);
}
