/* Processes that are killed while they hold together: nobody is let in who should not be, and all comes back. */
#include "test.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "bed.h"
#include "children.h"
#include "redis_bed.h"
#include "waiter.h"

enum {
    WORDS = 64,
    READERS_AND_WRITERS = 8,
    PERMITS = 5,
    WORKERS = 16,
    LEASE_MS = 3000
};

/* Shared between the processes. */
typedef struct board {
    _Atomic bool stop;
    _Atomic bool inside[WORKERS];  /* holds a permit */
    _Atomic bool writing[WORKERS]; /* must not be killed just now: nobody else could mend what it leaves */
    _Atomic unsigned torn;
    _Atomic unsigned crowded;
    _Atomic unsigned failures;
    _Atomic unsigned lost; /* by a process that could not run for a whole lease */
    _Atomic unsigned rounds;
    _Atomic uint32_t record[WORDS];
} board;

typedef struct job {
    char url[256];
    board *shared;
    unsigned number; /* which of the processes */
} job;

static board *new_board(void)
{
    board *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(shared != MAP_FAILED);
    return shared;
}

static bool is_ok(board *shared, sneck_status status, const sneck_error *error)
{
    if (status == SNECK_OK)
        return true;
    if (status == SNECK_LOST) {
        (void)atomic_fetch_add(&shared->lost, 1);
        return false;
    }
    fprintf(stderr, "# %s %s\n", sneck_status_name(status), error->message);
    (void)atomic_fetch_add(&shared->failures, 1);
    return false;
}

static sneck_client *open_client(const job *self, sneck_error *error)
{
    sneck_client *client = NULL;
    sneck_client_options options = SNECK_CLIENT_OPTIONS_INIT;
    options.lease_ms = LEASE_MS;
    return sneck_open(self->url, &options, &client, error) == SNECK_OK ? client : NULL;
}

/* ---- Readers and writers ---- */

static void write_record(board *shared, unsigned number)
{
    atomic_store(&shared->writing[number], true);
    uint32_t value = atomic_load(&shared->record[0]) + 1;
    for (size_t i = 0; i < WORDS; i++)
        atomic_store_explicit(&shared->record[i], value, memory_order_relaxed);
    atomic_store(&shared->writing[number], false);
}

static void read_record(board *shared, const sneck_lock *lock)
{
    uint32_t value = atomic_load_explicit(&shared->record[0], memory_order_relaxed);
    bool is_torn = false;
    redis_bed_pause(1);
    for (size_t i = 1; i < WORDS; i++)
        is_torn = is_torn || atomic_load_explicit(&shared->record[i], memory_order_relaxed) != value;
    if (is_torn && sneck_is_held(lock))
        (void)atomic_fetch_add(&shared->torn, 1);
}

static int read_and_write(void *context)
{
    job *self = context;
    board *shared = self->shared;
    sneck_error error;
    sneck_lock *reader = NULL;
    sneck_lock *writer = NULL;
    sneck_client *client = open_client(self, &error);
    CHECK(client != NULL);
    CHECK(sneck_read_lock(client, "a", NULL, &reader, &error) == SNECK_OK);
    CHECK(sneck_write_lock(client, "a", NULL, &writer, &error) == SNECK_OK);
    test_child_ready();
    for (unsigned i = self->number; !atomic_load(&shared->stop); i++) {
        bool writes = i % 4 == 0;
        sneck_lock *lock = writes ? writer : reader;
        if (!is_ok(shared, sneck_acquire(lock, 60000, &error), &error))
            continue;
        if (writes)
            write_record(shared, self->number);
        else
            read_record(shared, reader);
        (void)atomic_fetch_add(&shared->rounds, 1);
        (void)is_ok(shared, sneck_release(lock, &error), &error);
    }
    sneck_lock_free(reader);
    sneck_lock_free(writer);
    sneck_close(client);
    return 0;
}

/* ---- Permits ---- */

static int use_permits(void *context)
{
    job *self = context;
    board *shared = self->shared;
    sneck_error error;
    sneck_semaphore *semaphore = NULL;
    sneck_client *client = open_client(self, &error);
    CHECK(client != NULL);
    CHECK(sneck_semaphore_open(client, "a", NULL, &semaphore, &error) == SNECK_OK);
    test_child_ready();
    while (!atomic_load(&shared->stop)) {
        sneck_permit *permit = NULL;
        if (!is_ok(shared, sneck_semaphore_acquire(semaphore, 1, 60000, &permit, &error), &error))
            continue;
        atomic_store(&shared->inside[self->number], true);
        redis_bed_pause(1);
        unsigned inside = 0;
        for (unsigned i = 0; i < WORKERS; i++)
            inside += atomic_load(&shared->inside[i]);
        if (inside > PERMITS && sneck_permit_is_held(permit))
            (void)atomic_fetch_add(&shared->crowded, 1);
        (void)atomic_fetch_add(&shared->rounds, 1);
        atomic_store(&shared->inside[self->number], false);
        (void)is_ok(shared, sneck_permit_release(permit, &error), &error);
    }
    sneck_semaphore_free(semaphore);
    sneck_close(client);
    return 0;
}

/* ---- Deaths ---- */

/* Kills it, unless it is writing: stopped, it does not change its mind. */
static bool kill_one(test_child *child, board *shared, unsigned number)
{
    int status = 0;
    assert_int_equal(kill(child->pid, SIGSTOP), 0);
    assert_int_equal(waitpid(child->pid, &status, WUNTRACED), child->pid);
    if (!WIFSTOPPED(status) || atomic_load(&shared->writing[number])) {
        assert_int_equal(kill(child->pid, SIGCONT), 0);
        return false;
    }
    test_child_kill(child);
    atomic_store(&shared->inside[number], false); /* what is dead is not inside */
    return true;
}

/* Runs so many processes for a while, in which now one and now another is killed and replaced. Returns the deaths. */
static unsigned run_and_kill(redis_bed *bed, int (*work)(void *), unsigned count, board *shared)
{
    static job jobs[WORKERS];
    test_child children[WORKERS];
    unsigned killed = 0;
    for (unsigned i = 0; i < count; i++) {
        jobs[i] = (job){ .shared = shared, .number = i };
        (void)snprintf(jobs[i].url, sizeof jobs[i].url, "%s", redis_bed_url(bed, NULL));
        children[i] = test_child_start(work, &jobs[i]);
    }
    int64_t until_ms = test_now_ms() + test_scaled(60000);
    for (unsigned i = 0; test_now_ms() < until_ms; i = (i * 5 + 3) % count) {
        redis_bed_pause(150 + i);
        if (!kill_one(&children[i], shared, i))
            continue;
        killed++;
        children[i] = test_child_start(work, &jobs[i]);
    }
    atomic_store(&shared->stop, true);
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(test_child_join(&children[i]), 0);
    assert_int_equal(atomic_load(&shared->failures), 0);
    return killed;
}

static void test_no_reader_sees_half_a_record(void **state)
{
    redis_bed *bed = *state;
    board *shared = new_board();
    unsigned killed = run_and_kill(bed, read_and_write, READERS_AND_WRITERS, shared);
    printf("# figure: readers and writers: %u holds, %u processes killed, %u holds lost\n",
           atomic_load(&shared->rounds), killed, atomic_load(&shared->lost));
    assert_true(killed > 0);
    assert_true(atomic_load(&shared->rounds) > 0);
    assert_int_equal(atomic_load(&shared->torn), 0);
    /* The dead are gone one lease later. */
    redis_bed_pause(LEASE_MS);
    redis_bed_await(bed, "EXISTS lock:a {lock:a}:holders {lock:a}:holders:info", 0);
    redis_bed_expect_limits(bed);
    (void)munmap(shared, sizeof *shared);
}

static void test_permits_of_the_killed_come_back(void **state)
{
    redis_bed *bed = *state;
    board *shared = new_board();
    redis_bed_do(bed, "SET {lock:a}:count %d PX 600000", PERMITS);
    unsigned killed = run_and_kill(bed, use_permits, WORKERS, shared);
    printf("# figure: permits: %u holds, %u processes killed, %u lost\n", atomic_load(&shared->rounds), killed,
           atomic_load(&shared->lost));
    assert_true(killed > 0);
    assert_true(atomic_load(&shared->rounds) > 0);
    assert_int_equal(atomic_load(&shared->crowded), 0);
    sneck_error error;
    sneck_client *client = redis_bed_open(bed, NULL, NULL);
    sneck_semaphore *semaphore = NULL;
    sneck_permit *all = NULL;
    EXPECT(SNECK_OK, sneck_semaphore_open(client, "a", NULL, &semaphore, &error));
    EXPECT(SNECK_OK, sneck_semaphore_acquire(semaphore, PERMITS, TEST_PATIENCE_MS, &all, &error));
    EXPECT(SNECK_OK, sneck_permit_release(all, &error));
    assert_int_equal(redis_bed_number(bed, "EXISTS lock:a {lock:a}:holders {lock:a}:holders:info"), 0);
    redis_bed_expect_limits(bed); /* those who were killed when they waited go with the queue */
    sneck_semaphore_free(semaphore);
    sneck_close(client);
    (void)munmap(shared, sizeof *shared);
}

static sneck_semaphore *open_plain(sneck_client *client)
{
    sneck_error error;
    sneck_semaphore *semaphore = NULL;
    sneck_semaphore_options options = SNECK_SEMAPHORE_OPTIONS_INIT;
    options.leased = false;
    return sneck_semaphore_open(client, "a", &options, &semaphore, &error) == SNECK_OK ? semaphore : NULL;
}

static int use_one_and_die(void *context)
{
    sneck_error error;
    sneck_permit *permit = NULL;
    sneck_client *client = open_client(context, &error);
    CHECK(client != NULL);
    CHECK(sneck_semaphore_acquire(open_plain(client), 1, 0, &permit, &error) == SNECK_OK);
    CHECK(sneck_permit_release(permit, &error) == SNECK_OK);
    (void)raise(SIGKILL);
    return 0;
}

/* The claim by which a plain permit was taken may have a lease left; that must not bring the permit back once more. */
static void test_a_plain_permit_comes_back_once_though_its_holder_dies_at_once(void **state)
{
    redis_bed *bed = *state;
    sneck_error error;
    job self = { .shared = NULL };
    int64_t left = 0;
    (void)snprintf(self.url, sizeof self.url, "%s", redis_bed_url(bed, NULL));
    sneck_client *client = redis_bed_open(bed, NULL, NULL);
    sneck_semaphore *semaphore = open_plain(client);
    EXPECT(SNECK_OK, sneck_semaphore_set_permits(semaphore, PERMITS, &error));
    for (unsigned i = 0; i < test_scaled(200); i++) {
        test_child child = test_child_start(use_one_and_die, &self);
        assert_int_equal(test_child_join(&child), -1);
    }
    redis_bed_await(bed, "EXISTS lock:a", 0);
    EXPECT(SNECK_OK, sneck_semaphore_available(semaphore, &left, &error));
    assert_int_equal(left, PERMITS);
    sneck_semaphore_free(semaphore);
    sneck_close(client);
}

/* ---- The dead in a fair queue ---- */

static sneck_lock *open_fair(sneck_client *client)
{
    sneck_lock_options options = SNECK_LOCK_OPTIONS_INIT;
    options.fair = true;
    return test_mutex(client, "a", &options);
}

static int wait_in_line(void *context)
{
    sneck_error error;
    sneck_client *client = open_client(context, &error);
    CHECK(client != NULL);
    test_child_ready();
    CHECK(sneck_acquire(open_fair(client), 60000, &error) == SNECK_OK);
    return 0;
}

static long long scripts_run(redis_bed *bed)
{
    const char *found = strstr(redis_bed_text(bed, "INFO commandstats"), "cmdstat_evalsha:calls=");
    assert_non_null(found);
    return strtoll(strchr(found, '=') + 1, NULL, 10);
}

static void await_queue(sneck_client *client, size_t count)
{
    int64_t until_ms = test_now_ms() + TEST_PATIENCE_MS;
    while (test_queue_in_store(client, "a") != count) {
        assert_true(test_now_ms() < until_ms);
        redis_bed_pause(1);
    }
}

/* The first in the queue is offered the lock and does nothing: whoever is behind it sleeps until that is over. */
static void test_the_dead_at_the_head_of_a_fair_queue_cost_no_storm(void **state)
{
    enum {
        SCRIPTS_MAX = 20
    };
    redis_bed *bed = *state;
    sneck_error error;
    job jobs[1] = { 0 };
    (void)snprintf(jobs[0].url, sizeof jobs[0].url, "%s", redis_bed_url(bed, NULL));
    sneck_client *client = redis_bed_open(bed, NULL, NULL);
    sneck_client *other = open_client(jobs, &error);
    sneck_lock *holder = open_fair(client);
    sneck_lock *behind = open_fair(other);
    test_waiter waiter;
    EXPECT(SNECK_OK, sneck_acquire(holder, 0, &error));
    test_child dead = test_child_start(wait_in_line, jobs);
    test_child_await(&dead);
    await_queue(client, 1);
    test_waiter_start(&waiter, behind, TEST_PATIENCE_MS);
    await_queue(client, 2);
    assert_int_equal(kill(dead.pid, SIGSTOP), 0);
    long long before = scripts_run(bed);
    int64_t began_ms = test_now_ms();
    EXPECT(SNECK_OK, sneck_release(holder, &error));
    test_waiter_join(&waiter);
    long long count = scripts_run(bed) - before;
    printf("# figure: behind one who does not take the lock: served after %lld ms, %lld scripts\n",
           (long long)(waiter.served_at_ms - began_ms), count);
    assert_true(count <= SCRIPTS_MAX);
    test_child_kill(&dead);
    sneck_lock_free(holder);
    sneck_lock_free(behind);
    sneck_close(other);
    sneck_close(client);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, redis_bed_set_up, redis_bed_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_no_reader_sees_half_a_record),
        TEST(test_permits_of_the_killed_come_back),
        TEST(test_a_plain_permit_comes_back_once_though_its_holder_dies_at_once),
        TEST(test_the_dead_at_the_head_of_a_fair_queue_cost_no_storm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
