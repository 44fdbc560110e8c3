/* The two sides of a read-write lock. */
#include <string.h>
#include <unistd.h>

#include "bed.h"

typedef struct pair {
    sneck_lock *reader;
    sneck_lock *writer;
} pair;

static pair open_pair(sneck_client *client, const char *name)
{
    sneck_error error;
    pair sides = { NULL, NULL };
    sneck_status status = sneck_read_lock(client, name, NULL, &sides.reader, &error);
    if (status == SNECK_UNSUPPORTED)
        test_skip(error.message);
    EXPECT(SNECK_OK, status);
    EXPECT(SNECK_OK, sneck_write_lock(client, name, NULL, &sides.writer, &error));
    return sides;
}

static void close_pair(pair *sides)
{
    sneck_lock_free(sides->reader);
    sneck_lock_free(sides->writer);
}

static void read_and_release(void *argument)
{
    sneck_error error;
    sneck_lock *reader = ((pair *)argument)->reader;
    EXPECT(SNECK_OK, sneck_acquire(reader, 0, &error));
    assert_true(sneck_is_held(reader));
    EXPECT(SNECK_OK, sneck_release(reader, &error));
    EXPECT(SNECK_NOT_OWNER, sneck_release(reader, &error));
}

static void find_both_busy(void *argument)
{
    sneck_error error;
    pair *sides = argument;
    EXPECT(SNECK_BUSY, sneck_acquire(sides->writer, 0, &error));
    EXPECT(SNECK_BUSY, sneck_acquire(sides->reader, 0, &error));
}

static void find_writer_busy(void *argument)
{
    sneck_error error;
    EXPECT(SNECK_BUSY, sneck_acquire(((pair *)argument)->writer, 0, &error));
}

static void test_threads_of_one_client_read_together(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    pair sides = open_pair(bed->client, "rw");
    EXPECT(SNECK_OK, sneck_acquire(sides.reader, 0, &error));
    EXPECT(SNECK_OK, sneck_acquire(sides.reader, 0, &error));
    assert_int_equal(sneck_hold_count(sides.reader), 2);
    test_on_thread(read_and_release, &sides);
    test_on_thread(find_writer_busy, &sides);
    assert_int_equal(sneck_hold_count(sides.reader), 2);
    EXPECT(SNECK_OK, sneck_release(sides.reader, &error));
    EXPECT(SNECK_OK, sneck_release(sides.reader, &error));
    EXPECT(SNECK_NOT_OWNER, sneck_release(sides.reader, &error));
    assert_false(test_is_held_in_store(bed->client, "rw"));
    close_pair(&sides);
}

static void test_a_writer_excludes_readers_and_writers(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    pair sides = open_pair(bed->client, "rw");
    EXPECT(SNECK_OK, sneck_acquire(sides.writer, 0, &error));
    EXPECT(SNECK_OK, sneck_acquire(sides.writer, 0, &error));
    test_on_thread(find_both_busy, &sides);
    EXPECT(SNECK_OK, sneck_release(sides.writer, &error));
    EXPECT(SNECK_OK, sneck_release(sides.writer, &error));
    test_on_thread(read_and_release, &sides);
    close_pair(&sides);
}

static void test_an_upgrade_is_a_deadlock(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    pair sides = open_pair(bed->client, "rw");
    EXPECT(SNECK_OK, sneck_acquire(sides.reader, 0, &error));
    EXPECT(SNECK_DEADLOCK, sneck_acquire(sides.writer, SNECK_FOREVER, &error));
    assert_non_null(strstr(error.message, "read side"));
    EXPECT(SNECK_OK, sneck_release(sides.reader, &error));
    EXPECT(SNECK_OK, sneck_acquire(sides.writer, 0, &error));
    EXPECT(SNECK_OK, sneck_release(sides.writer, &error));
    close_pair(&sides);
}

typedef struct late {
    sneck_lock *lock;
    sneck_status status;
} late;

static void *acquire_and_release(void *argument)
{
    late *self = argument;
    self->status = sneck_acquire(self->lock, TEST_PATIENCE_MS, NULL);
    if (self->status == SNECK_OK)
        (void)sneck_release(self->lock, NULL);
    return NULL;
}

static void test_a_downgrade_lets_waiting_readers_in(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    pair sides = open_pair(bed->client, "rw");
    EXPECT(SNECK_OK, sneck_acquire(sides.writer, 0, &error));
    late waiter = { .lock = sides.reader, .status = SNECK_INVALID };
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, acquire_and_release, &waiter), 0);
    test_await_waiting(bed->client, "rw", 1);
    EXPECT(SNECK_OK, sneck_acquire(sides.reader, 0, &error));
    assert_true(sneck_is_held(sides.writer) && sneck_is_held(sides.reader));
    EXPECT(SNECK_OK, sneck_acquire(sides.writer, 0, &error)); /* it still writes */
    EXPECT(SNECK_OK, sneck_release(sides.writer, &error));
    EXPECT(SNECK_OK, sneck_release(sides.writer, &error));
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(waiter.status, SNECK_OK);
    assert_true(sneck_is_held(sides.reader));
    test_on_thread(find_writer_busy, &sides);
    EXPECT(SNECK_OK, sneck_release(sides.reader, &error));
    close_pair(&sides);
}

static void test_a_downgraded_writer_is_not_passed_on_inside(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    pair sides = open_pair(bed->client, "rw");
    EXPECT(SNECK_OK, sneck_acquire(sides.writer, 0, &error));
    late rival = { .lock = sides.writer, .status = SNECK_INVALID };
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, acquire_and_release, &rival), 0);
    test_await_waiting(bed->client, "rw", 1);
    EXPECT(SNECK_OK, sneck_acquire(sides.reader, 0, &error));
    EXPECT(SNECK_OK, sneck_release(sides.writer, &error));
    sneck_info *info = NULL;
    EXPECT(SNECK_OK, sneck_inspect(bed->client, "rw", &info, &error));
    assert_int_equal(info->holder_count, 1);
    assert_string_equal(info->holders[0].mode, "shared");
    sneck_info_free(info);
    EXPECT(SNECK_OK, sneck_release(sides.reader, &error));
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(rival.status, SNECK_OK);
    close_pair(&sides);
}

static void test_two_handles_on_the_read_side_share_the_threads_levels(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    pair one = open_pair(bed->client, "rw");
    pair other = open_pair(bed->client, "rw");
    EXPECT(SNECK_OK, sneck_acquire(one.reader, 0, &error));
    EXPECT(SNECK_OK, sneck_acquire(other.reader, 0, &error));
    assert_int_equal(sneck_hold_count(one.reader), 2);
    EXPECT(SNECK_OK, sneck_release(one.reader, &error));
    EXPECT(SNECK_OK, sneck_release(one.reader, &error));
    EXPECT(SNECK_NOT_OWNER, sneck_release(other.reader, &error));
    close_pair(&one);
    close_pair(&other);
}

static void test_a_reader_is_interrupted(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    pair sides = open_pair(bed->client, "rw");
    EXPECT(SNECK_OK, sneck_acquire(sides.writer, 0, &error));
    late waiter = { .lock = sides.reader, .status = SNECK_INVALID };
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, acquire_and_release, &waiter), 0);
    test_await_waiting(bed->client, "rw", 1);
    sneck_interrupt(sides.reader);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(waiter.status, SNECK_CANCELED);
    assert_int_equal(test_queue_in_store(bed->client, "rw"), 0);
    EXPECT(SNECK_OK, sneck_release(sides.writer, &error));
    close_pair(&sides);
}

static void test_a_cancelled_reader_leaves_nothing_behind(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    pair sides = open_pair(bed->client, "rw");
    EXPECT(SNECK_OK, sneck_acquire(sides.writer, 0, &error));
    late waiter = { .lock = sides.reader, .status = SNECK_INVALID };
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, acquire_and_release, &waiter), 0);
    test_await_waiting(bed->client, "rw", 1);
    assert_int_equal(pthread_cancel(thread), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(waiter.status, SNECK_INVALID);
    assert_int_equal(test_queue_in_store(bed->client, "rw"), 0);
    EXPECT(SNECK_OK, sneck_release(sides.writer, &error));
    close_pair(&sides);
}

static void test_a_broken_reader_has_lost(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    pair sides = open_pair(bed->client, "rw");
    EXPECT(SNECK_OK, sneck_acquire(sides.reader, 0, &error));
    int fd = sneck_lost_fd(sides.reader);
    assert_true(fd >= 0);
    test_break(bed->client, "rw");
    EXPECT(SNECK_LOST, sneck_extend(sides.reader, 5000, &error));
    assert_true(test_readable(fd, TEST_PATIENCE_MS));
    assert_false(sneck_is_held(sides.reader));
    EXPECT(SNECK_LOST, sneck_acquire(sides.reader, 0, &error));
    EXPECT(SNECK_LOST, sneck_release(sides.reader, &error));
    EXPECT(SNECK_NOT_OWNER, sneck_release(sides.reader, &error));
    EXPECT(SNECK_OK, sneck_acquire(sides.reader, 0, &error));
    EXPECT(SNECK_OK, sneck_release(sides.reader, &error));
    close_pair(&sides);
}

static void *read_and_end(void *read)
{
    return (void *)(uintptr_t)sneck_acquire(read, TEST_PATIENCE_MS, NULL);
}

/* What they held is given back by the watchdog; nothing of them may pile up in the handle either. */
static void test_threads_that_end_without_a_release_leave_nothing_in_the_handle(void **state)
{
    enum {
        THREADS = 100
    };
    test_bed *bed = *state;
    pair sides = open_pair(bed->client, "r");
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        void *status = NULL;
        assert_int_equal(pthread_create(&thread, NULL, read_and_end, sides.reader), 0);
        assert_int_equal(pthread_join(thread, &status), 0);
        assert_int_equal((uintptr_t)status, SNECK_OK);
        int64_t until_ms = test_now_ms() + TEST_PATIENCE_MS;
        while (test_health(bed->client).held > 0) {
            assert_true(test_now_ms() < until_ms);
            (void)usleep(1000);
        }
    }
    assert_true(test_health(bed->client).locks < THREADS / 2);
    close_pair(&sides);
}

static void test_a_read_handle_may_own_for_itself(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    pair sides = open_pair(bed->client, "rw");
    sneck_lock_options options = SNECK_LOCK_OPTIONS_INIT;
    options.owner = SNECK_OWNER_HANDLE;
    sneck_lock *own = NULL;
    EXPECT(SNECK_OK, sneck_read_lock(bed->client, "rw", &options, &own, &error));
    EXPECT(SNECK_OK, sneck_acquire(own, 0, &error));
    assert_false(sneck_is_held(sides.reader));
    EXPECT(SNECK_BUSY, sneck_acquire(sides.writer, 0, &error));
    sneck_lock_free(own); /* only this handle could release it */
    EXPECT(SNECK_OK, sneck_acquire(sides.writer, 0, &error));
    EXPECT(SNECK_OK, sneck_release(sides.writer, &error));
    close_pair(&sides);
}

/* Readers see two halves of a record that a writer changes one after the other. */
typedef struct record {
    pair sides;
    _Atomic int first;
    _Atomic int second;
    _Atomic int torn;
    _Atomic int reads;
} record;

static void *read_records(void *argument)
{
    record *self = argument;
    for (unsigned i = 0; i < test_scaled(1000); i++) {
        if (sneck_acquire(self->sides.reader, TEST_PATIENCE_MS, NULL) != SNECK_OK)
            return NULL;
        int first = self->first;
        if (first != self->second)
            self->torn++;
        self->reads++;
        (void)sneck_release(self->sides.reader, NULL);
    }
    return NULL;
}

static void *write_records(void *argument)
{
    record *self = argument;
    for (unsigned i = 0; i < test_scaled(1000); i++) {
        if (sneck_acquire(self->sides.writer, TEST_PATIENCE_MS, NULL) != SNECK_OK)
            return NULL;
        self->first++;
        (void)sched_yield();
        self->second++;
        (void)sneck_release(self->sides.writer, NULL);
    }
    return NULL;
}

static void test_readers_never_see_half_a_record(void **state)
{
    enum {
        READERS = 4,
        WRITERS = 2
    };
    test_bed *bed = *state;
    record shared = { .sides = open_pair(bed->client, "rw") };
    pthread_t threads[READERS + WRITERS];
    for (int i = 0; i < READERS + WRITERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, i < READERS ? read_records : write_records, &shared), 0);
    for (int i = 0; i < READERS + WRITERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(shared.torn, 0);
    assert_int_equal(shared.reads, READERS * test_scaled(1000));
    assert_int_equal(shared.first, WRITERS * test_scaled(1000));
    close_pair(&shared.sides);
}

/* ---- Circles ---- */

/* Three threads: one reads "x" and wants "l", one wants to write "x", one holds "l" and wants to read "x". */
typedef struct circle {
    sneck_client *client;
    pthread_barrier_t holds; /* two have what they hold */
    bool reader_waits_first; /* for "l"; then the one that is last to wait is the one that wants to read */
    sneck_error wants_l;
    sneck_error wants_to_write;
    sneck_error wants_to_read;
} circle;

static void await_queue(sneck_client *client, const char *name, size_t count)
{
    int64_t until_ms = test_now_ms() + TEST_PATIENCE_MS;
    while (test_queue_in_store(client, name) != count) {
        assert_true(test_now_ms() < until_ms);
        (void)usleep(1000);
    }
}

static void *read_and_want_l(void *argument)
{
    circle *self = argument;
    pair sides = open_pair(self->client, "x");
    sneck_lock *lock = test_mutex(self->client, "l", NULL);
    assert_int_equal(sneck_acquire(sides.reader, 0, NULL), SNECK_OK);
    (void)pthread_barrier_wait(&self->holds);
    await_queue(self->client, "x", self->reader_waits_first ? 1 : 2);
    if (sneck_acquire(lock, TEST_PATIENCE_MS, &self->wants_l) == SNECK_OK)
        (void)sneck_release(lock, NULL);
    (void)sneck_release(sides.reader, NULL);
    sneck_lock_free(lock);
    close_pair(&sides);
    return NULL;
}

static void *want_to_write(void *argument)
{
    circle *self = argument;
    pair sides = open_pair(self->client, "x");
    if (sneck_acquire(sides.writer, TEST_PATIENCE_MS, &self->wants_to_write) == SNECK_OK)
        (void)sneck_release(sides.writer, NULL);
    close_pair(&sides);
    return NULL;
}

static void *hold_l_and_want_to_read(void *argument)
{
    circle *self = argument;
    pair sides = open_pair(self->client, "x");
    sneck_lock *lock = test_mutex(self->client, "l", NULL);
    assert_int_equal(sneck_acquire(lock, 0, NULL), SNECK_OK);
    (void)pthread_barrier_wait(&self->holds);
    await_queue(self->client, "x", 1);
    if (self->reader_waits_first)
        test_await_waiting(self->client, "l", 1);
    if (sneck_acquire(sides.reader, TEST_PATIENCE_MS, &self->wants_to_read) == SNECK_OK)
        (void)sneck_release(sides.reader, NULL);
    (void)sneck_release(lock, NULL);
    sneck_lock_free(lock);
    close_pair(&sides);
    return NULL;
}

static void go_round(sneck_client *client, bool reader_waits_first)
{
    circle self = { .client = client, .reader_waits_first = reader_waits_first };
    pthread_t threads[3];
    assert_int_equal(pthread_barrier_init(&self.holds, NULL, 3), 0);
    assert_int_equal(pthread_create(&threads[0], NULL, read_and_want_l, &self), 0);
    assert_int_equal(pthread_create(&threads[1], NULL, hold_l_and_want_to_read, &self), 0);
    (void)pthread_barrier_wait(&self.holds);
    assert_int_equal(pthread_create(&threads[2], NULL, want_to_write, &self), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    /* The one that was last to find itself waiting is told; the others go on when it gives up. */
    const sneck_error *results[] = { &self.wants_l, &self.wants_to_write, &self.wants_to_read };
    int told = 0;
    for (int i = 0; i < 3; i++) {
        told += results[i]->status == SNECK_DEADLOCK;
        if (results[i]->status == SNECK_DEADLOCK)
            assert_non_null(strstr(results[i]->message, "waits first for x"));
        else
            assert_int_equal(results[i]->status, SNECK_OK);
    }
    assert_int_equal(told, 1);
    (void)pthread_barrier_destroy(&self.holds);
}

static void test_a_reader_behind_a_waiting_writer_is_part_of_a_circle(void **state)
{
    test_bed *bed = *state;
    go_round(bed->client, false);
    go_round(bed->client, true);
}

/* ---- Two circles through one thread ---- */

typedef struct knot {
    sneck_client *client;
    pthread_barrier_t all_hold;
    pthread_barrier_t first_waits;
    sneck_status status;
} knot;

/* Holds what both readers want, and wants what both read. */
static void *tie_knot(void *argument)
{
    knot *self = argument;
    sneck_lock *one = test_mutex(self->client, "one", NULL);
    sneck_lock *two = test_mutex(self->client, "two", NULL);
    sneck_lock *write = NULL;
    if (sneck_write_lock(self->client, "read", NULL, &write, NULL) == SNECK_OK &&
        sneck_acquire(one, 0, NULL) == SNECK_OK && sneck_acquire(two, 0, NULL) == SNECK_OK) {
        (void)pthread_barrier_wait(&self->all_hold);
        (void)pthread_barrier_wait(&self->first_waits);
        self->status = sneck_acquire(write, TEST_PATIENCE_MS, NULL);
        if (self->status == SNECK_OK)
            (void)sneck_release(write, NULL);
        (void)sneck_release(two, NULL);
        (void)sneck_release(one, NULL);
    }
    sneck_lock_free(write);
    sneck_lock_free(two);
    sneck_lock_free(one);
    return NULL;
}

typedef struct strand {
    knot *knot;
    const char *wanted;
    bool waits_first;
    sneck_status status;
} strand;

static void *read_and_want(void *argument)
{
    strand *self = argument;
    knot *all = self->knot;
    sneck_lock *read = NULL;
    sneck_lock *wanted = test_mutex(all->client, self->wanted, NULL);
    if (sneck_read_lock(all->client, "read", NULL, &read, NULL) == SNECK_OK &&
        sneck_acquire(read, TEST_PATIENCE_MS, NULL) == SNECK_OK) {
        (void)pthread_barrier_wait(&all->all_hold);
        if (!self->waits_first)
            (void)pthread_barrier_wait(&all->first_waits);
        self->status = sneck_acquire(wanted, TEST_PATIENCE_MS, NULL);
        if (self->status == SNECK_OK)
            (void)sneck_release(wanted, NULL);
        (void)sneck_release(read, NULL);
    }
    sneck_lock_free(wanted);
    sneck_lock_free(read);
    return NULL;
}

/*
 * One reader waits for the writer-to-be already; then that one and the other reader begin to wait at once. Whichever
 * circle is looked at first: nobody waits to its limit.
 */
static void test_of_two_circles_through_one_thread_both_are_told(void **state)
{
    test_bed *bed = *state;
    for (unsigned i = 0; i < test_scaled(1000); i++) {
        knot all = { .client = bed->client };
        assert_int_equal(pthread_barrier_init(&all.all_hold, NULL, 4), 0);
        assert_int_equal(pthread_barrier_init(&all.first_waits, NULL, 3), 0);
        strand first = { .knot = &all, .wanted = "one", .waits_first = true };
        strand second = { .knot = &all, .wanted = "two" };
        pthread_t threads[3];
        assert_int_equal(pthread_create(&threads[0], NULL, tie_knot, &all), 0);
        assert_int_equal(pthread_create(&threads[1], NULL, read_and_want, &first), 0);
        assert_int_equal(pthread_create(&threads[2], NULL, read_and_want, &second), 0);
        (void)pthread_barrier_wait(&all.all_hold);
        test_await_waiting(bed->client, "one", 1);
        (void)pthread_barrier_wait(&all.first_waits);
        for (size_t j = 0; j < 3; j++)
            assert_int_equal(pthread_join(threads[j], NULL), 0);
        assert_true(all.status == SNECK_OK || all.status == SNECK_DEADLOCK);
        assert_true(first.status == SNECK_OK || first.status == SNECK_DEADLOCK);
        assert_true(second.status == SNECK_OK || second.status == SNECK_DEADLOCK);
        (void)pthread_barrier_destroy(&all.all_hold);
        (void)pthread_barrier_destroy(&all.first_waits);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads_of_one_client_read_together),
        cmocka_unit_test(test_a_writer_excludes_readers_and_writers),
        cmocka_unit_test(test_an_upgrade_is_a_deadlock),
        cmocka_unit_test(test_a_downgrade_lets_waiting_readers_in),
        cmocka_unit_test(test_a_downgraded_writer_is_not_passed_on_inside),
        cmocka_unit_test(test_two_handles_on_the_read_side_share_the_threads_levels),
        cmocka_unit_test(test_a_reader_is_interrupted),
        cmocka_unit_test(test_a_cancelled_reader_leaves_nothing_behind),
        cmocka_unit_test(test_a_broken_reader_has_lost),
        cmocka_unit_test(test_threads_that_end_without_a_release_leave_nothing_in_the_handle),
        cmocka_unit_test(test_a_read_handle_may_own_for_itself),
        cmocka_unit_test(test_readers_never_see_half_a_record),
        cmocka_unit_test(test_a_reader_behind_a_waiting_writer_is_part_of_a_circle),
        cmocka_unit_test(test_of_two_circles_through_one_thread_both_are_told),
    };
    return test_run_kinds_on_stores(tests, sizeof tests / sizeof tests[0]);
}
