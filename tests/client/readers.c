/* The two sides of a read-write lock. */
#include <string.h>

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
        cmocka_unit_test(test_a_read_handle_may_own_for_itself),
        cmocka_unit_test(test_readers_never_see_half_a_record),
    };
    return test_run_on_stores_with_kinds(tests, sizeof tests / sizeof tests[0]);
}
