/* Several locks of several clients, asked for and given back at once; also when one of the stores does not answer. */
#include <dirent.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "bed.h"
#include "faulty.h"

enum {
    CLIENTS = 3
};

/* A lock "m<i>" in each of three clients: two on the bed's store, one in memory. */
typedef struct scene {
    sneck_client *clients[CLIENTS];
    test_faulty *faulty[CLIENTS];
    sneck_lock *members[CLIENTS];
    sneck_lock *all;
    pthread_t thread;
    int64_t wait_ms;
    sneck_error result;
    bool leaves_some; /* of the members, to the thread whose acquire failed */
} scene;

static const char *const names[CLIENTS] = { "m0", "m1", "m2" };

static scene open_scene(test_bed *bed)
{
    sneck_error error;
    test_bed in_memory = { .url = "memory:" };
    scene made = { .clients = { bed->client, test_open(bed, NULL), test_open(&in_memory, NULL) } };
    for (int i = 0; i < CLIENTS; i++) {
        made.faulty[i] = test_make_faulty(made.clients[i]);
        made.members[i] = test_mutex(made.clients[i], names[i], NULL);
    }
    EXPECT(SNECK_OK, sneck_multi_lock(made.members, CLIENTS, &made.all, &error));
    return made;
}

static void close_scene(scene *self)
{
    sneck_lock_free(self->all);
    for (int i = 0; i < CLIENTS; i++)
        sneck_lock_free(self->members[i]);
    sneck_close(self->clients[1]);
    sneck_close(self->clients[2]);
}

static void set_all(scene *self, snk_ask ask, test_fault fault)
{
    for (int i = 0; i < CLIENTS; i++)
        test_set_fault(self->faulty[i], ask, fault);
}

static void expect_in_stores(scene *self, bool held)
{
    for (int i = 0; i < CLIENTS; i++)
        assert_int_equal(test_is_held_in_store(self->clients[i], names[i]), held);
}

static void await_in_store(sneck_client *client, const char *name, bool held)
{
    int64_t until_ms = test_now_ms() + TEST_PATIENCE_MS;
    while (test_is_held_in_store(client, name) != held) {
        assert_true(test_now_ms() < until_ms);
        (void)usleep(1000);
    }
}

/* By the thread that acquired: what it leaves is given back when it ends. */
static void note_what_is_left(void *argument)
{
    scene *self = argument;
    for (int i = 0; i < CLIENTS; i++)
        self->leaves_some |= self->members[i] != NULL && sneck_is_held(self->members[i]);
}

static void *acquire_all(void *argument)
{
    scene *self = argument;
    pthread_cleanup_push(note_what_is_left, self);
    if (sneck_acquire(self->all, self->wait_ms, &self->result) == SNECK_OK)
        (void)sneck_release(self->all, &self->result);
    pthread_cleanup_pop(1);
    return NULL;
}

static void begin_acquire(scene *self, int64_t wait_ms)
{
    self->wait_ms = wait_ms;
    assert_int_equal(pthread_create(&self->thread, NULL, acquire_all, self), 0);
}

static void *end_acquire(scene *self)
{
    void *result = NULL;
    assert_int_equal(pthread_join(self->thread, &result), 0);
    assert_false(self->leaves_some);
    return result;
}

static int count_threads(void)
{
    DIR *listing = opendir("/proc/self/task");
    assert_non_null(listing);
    int count = 0;
    for (const struct dirent *entry = readdir(listing); entry != NULL; entry = readdir(listing))
        count += entry->d_name[0] != '.';
    (void)closedir(listing);
    return count;
}

/* A thread that was joined may be seen by the kernel for a moment longer. */
static void expect_no_more_threads_than(int count)
{
    int64_t until_ms = test_now_ms() + TEST_PATIENCE_MS;
    while (count_threads() > count) {
        assert_true(test_now_ms() < until_ms);
        (void)usleep(1000);
    }
}

/* Each waits for the others to have been asked: one after the other, they would wait for ever. */
static void test_members_of_several_stores_are_asked_at_once(void **state)
{
    scene self = open_scene(*state);
    begin_acquire(&self, 0); /* so that all threads of the clients are there */
    (void)end_acquire(&self);
    int threads = count_threads();
    set_all(&self, SNK_ASK_ACQUIRE, TEST_HANGS);
    begin_acquire(&self, 0);
    for (int i = 0; i < CLIENTS; i++)
        test_await_hanging(self.faulty[i], 1);
    set_all(&self, SNK_ASK_RELEASE, TEST_HANGS);
    set_all(&self, SNK_ASK_ACQUIRE, TEST_WORKS);
    for (int i = 0; i < CLIENTS; i++)
        await_in_store(self.clients[i], names[i], true);
    /* And so they are given back. */
    for (int i = 0; i < CLIENTS; i++)
        test_await_hanging(self.faulty[i], 1);
    set_all(&self, SNK_ASK_RELEASE, TEST_WORKS);
    (void)end_acquire(&self);
    assert_int_equal(self.result.status, SNECK_OK);
    expect_in_stores(&self, false);
    expect_no_more_threads_than(threads);
    close_scene(&self);
}

/* What the others granted is there for the call, and renewed, while one store hangs; and it is given back. */
static void test_a_store_that_hangs_and_never_answers_leaves_none_held(void **state)
{
    sneck_error error;
    scene self = open_scene(*state);
    for (int slow = 0; slow < CLIENTS; slow++) {
        test_set_fault(self.faulty[slow], SNK_ASK_ACQUIRE, TEST_HANGS);
        begin_acquire(&self, SNECK_FOREVER);
        test_await_hanging(self.faulty[slow], 1);
        for (int i = 0; i < CLIENTS; i++)
            await_in_store(self.clients[i], names[i], i != slow);
        test_set_fault(self.faulty[slow], SNK_ASK_ACQUIRE, TEST_NO_ANSWER);
        (void)end_acquire(&self);
        assert_int_equal(self.result.status, SNECK_UNKNOWN);
        test_set_fault(self.faulty[slow], SNK_ASK_ACQUIRE, TEST_WORKS);
        for (int i = 0; i < CLIENTS; i++)
            if (i != slow)
                assert_false(test_is_held_in_store(self.clients[i], names[i]));
        await_in_store(self.clients[slow], names[slow], false); /* it is chased */
    }
    EXPECT(SNECK_OK, sneck_acquire(self.all, 0, &error));
    EXPECT(SNECK_OK, sneck_release(self.all, &error));
    close_scene(&self);
}

/* A lease that is shorter than the store hangs is kept by its renewals. */
static void test_what_was_granted_is_renewed_while_another_store_hangs(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    test_bed in_memory = { .url = "memory:" };
    sneck_client *other = test_open(&in_memory, NULL);
    test_faulty *renewed = test_make_faulty(bed->client);
    test_faulty *slow = test_make_faulty(other);
    sneck_lock_options options = SNECK_LOCK_OPTIONS_INIT;
    options.lease_ms = 1000;
    options.renew_ms = 50;
    sneck_lock *members[] = { test_mutex(bed->client, "a", &options), test_mutex(other, "b", NULL) };
    scene self = { .wait_ms = 0 };
    EXPECT(SNECK_OK, sneck_multi_lock(members, 2, &self.all, &error));
    test_set_fault(slow, SNK_ASK_ACQUIRE, TEST_HANGS);
    begin_acquire(&self, 0);
    test_await_hanging(slow, 1);
    int64_t until_ms = test_now_ms() + TEST_PATIENCE_MS;
    while (atomic_load(&renewed->calls[SNK_ASK_RENEW]) < 2 && test_now_ms() < until_ms)
        (void)usleep(1000);
    unsigned renewals = atomic_load(&renewed->calls[SNK_ASK_RENEW]);
    test_set_fault(slow, SNK_ASK_ACQUIRE, TEST_WORKS);
    (void)end_acquire(&self);
    assert_true(renewals >= 2);
    assert_int_equal(self.result.status, SNECK_OK);
    sneck_lock_free(self.all);
    sneck_lock_free(members[0]);
    sneck_lock_free(members[1]);
    sneck_close(other);
}

/* Returns when one store hangs; one of the members is busy, so that the wait would go on. */
static sneck_lock *begin_before_one_that_is_busy(scene *self)
{
    sneck_error error;
    sneck_lock *holder = test_handle(self->clients[2], names[2]);
    EXPECT(SNECK_OK, sneck_acquire(holder, 0, &error));
    test_set_fault(self->faulty[1], SNK_ASK_ACQUIRE, TEST_HANGS);
    begin_acquire(self, SNECK_FOREVER);
    test_await_hanging(self->faulty[1], 1);
    return holder;
}

/* The wait is over, and has left nothing; it comes to nothing for those who come later. */
static void expect_nothing_left(scene *self, sneck_lock *holder)
{
    sneck_error error;
    assert_false(test_is_held_in_store(self->clients[0], names[0]));
    assert_false(test_is_held_in_store(self->clients[1], names[1]));
    EXPECT(SNECK_OK, sneck_release(holder, &error));
    expect_in_stores(self, false);
    EXPECT(SNECK_OK, sneck_acquire(self->all, SNECK_FOREVER, &error));
    EXPECT(SNECK_OK, sneck_release(self->all, &error));
    sneck_lock_free(holder);
}

/* Otherwise it would wait for ever for the one that is busy. */
static void test_an_interrupt_while_stores_are_asked_ends_the_wait(void **state)
{
    scene self = open_scene(*state);
    sneck_lock *holder = begin_before_one_that_is_busy(&self);
    sneck_interrupt(self.all);
    test_set_fault(self.faulty[1], SNK_ASK_ACQUIRE, TEST_WORKS);
    (void)end_acquire(&self);
    assert_int_equal(self.result.status, SNECK_CANCELED);
    expect_nothing_left(&self, holder);
    close_scene(&self);
}

static void test_a_thread_that_is_cancelled_while_stores_are_asked_leaves_none_held(void **state)
{
    scene self = open_scene(*state);
    sneck_lock *holder = begin_before_one_that_is_busy(&self);
    assert_int_equal(pthread_cancel(self.thread), 0);
    test_set_fault(self.faulty[1], SNK_ASK_ACQUIRE, TEST_WORKS);
    assert_true(end_acquire(&self) == PTHREAD_CANCELED);
    expect_nothing_left(&self, holder);
    close_scene(&self);
}

static void test_one_limit_of_time_is_for_all_of_them(void **state)
{
    sneck_error error;
    scene self = open_scene(*state);
    sneck_lock *holders[CLIENTS];
    for (int i = 0; i < CLIENTS; i++) {
        holders[i] = test_handle(self.clients[i], names[i]);
        EXPECT(SNECK_OK, sneck_acquire(holders[i], 0, &error));
    }
    int64_t from_ms = test_now_ms();
    begin_acquire(&self, 300);
    (void)end_acquire(&self);
    assert_int_equal(self.result.status, SNECK_TIMEOUT);
    assert_true(test_now_ms() - from_ms >= 300);
    for (int i = 0; i < CLIENTS; i++) {
        EXPECT(SNECK_OK, sneck_release(holders[i], &error));
        sneck_lock_free(holders[i]);
    }
    expect_in_stores(&self, false);
    close_scene(&self);
}

/* Whatever else one store says, "busy" is not the answer. */
static void test_a_trouble_counts_more_than_a_lock_that_is_busy(void **state)
{
    sneck_error error;
    scene self = open_scene(*state);
    sneck_lock *holder = test_handle(self.clients[0], names[0]);
    EXPECT(SNECK_OK, sneck_acquire(holder, 0, &error));
    test_set_fault(self.faulty[2], SNK_ASK_ACQUIRE, TEST_FAILS);
    begin_acquire(&self, SNECK_FOREVER);
    (void)end_acquire(&self);
    assert_int_equal(self.result.status, SNECK_UNAVAILABLE);
    assert_false(test_is_held_in_store(self.clients[1], names[1]));
    EXPECT(SNECK_OK, sneck_release(holder, &error));
    sneck_lock_free(holder);
    close_scene(&self);
}

/* ---- Of one client ---- */

static void open_sides(sneck_client *client, sneck_lock *members[3])
{
    sneck_error error;
    members[0] = test_mutex(client, "a", NULL);
    EXPECT(SNECK_OK, sneck_read_lock(client, "b", NULL, &members[1], &error));
    EXPECT(SNECK_OK, sneck_write_lock(client, "c", NULL, &members[2], &error));
}

static void free_all(sneck_lock *const locks[], size_t count)
{
    for (size_t i = 0; i < count; i++)
        sneck_lock_free(locks[i]);
}

static void test_both_sides_and_a_mutex_are_asked_at_once(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    test_faulty *faulty = test_make_faulty(bed->client);
    faulty->base.traits.lanes = 0;
    sneck_lock *members[3];
    sneck_lock *all = NULL;
    open_sides(bed->client, members);
    EXPECT(SNECK_OK, sneck_multi_lock(members, 3, &all, &error));
    EXPECT(SNECK_OK, sneck_acquire(all, 0, &error));
    assert_int_equal(atomic_load(&faulty->calls[SNK_ASK_ACQUIRE]), 1);
    assert_int_equal(atomic_load(&faulty->claims[SNK_ASK_ACQUIRE]), 3);
    for (int i = 0; i < 3; i++)
        assert_true(sneck_is_held(members[i]));
    EXPECT(SNECK_OK, sneck_release(all, &error));
    assert_int_equal(atomic_load(&faulty->calls[SNK_ASK_RELEASE]), 1);
    assert_int_equal(atomic_load(&faulty->claims[SNK_ASK_RELEASE]), 3);
    /* With a lease of its own, too. */
    EXPECT(SNECK_OK, sneck_acquire_for(all, 0, 5000, &error));
    assert_int_equal(atomic_load(&faulty->calls[SNK_ASK_ACQUIRE]), 2);
    assert_true(sneck_remaining_ms(all) <= 5000);
    EXPECT(SNECK_OK, sneck_release(all, &error));
    sneck_lock_free(all);
    free_all(members, 3);
}

static void test_a_store_that_does_one_after_the_other_is_asked_by_several(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    test_faulty *faulty = test_make_faulty(bed->client);
    faulty->base.traits.lanes = 3;
    sneck_lock *members[7];
    scene self = { .wait_ms = 0 };
    for (int i = 0; i < 7; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "m%d", i);
        members[i] = test_mutex(bed->client, name, NULL);
    }
    EXPECT(SNECK_OK, sneck_multi_lock(members, 7, &self.all, &error));
    test_set_fault(faulty, SNK_ASK_ACQUIRE, TEST_HANGS);
    begin_acquire(&self, 0);
    test_await_hanging(faulty, 3);
    test_set_fault(faulty, SNK_ASK_ACQUIRE, TEST_WORKS);
    (void)end_acquire(&self);
    assert_int_equal(self.result.status, SNECK_OK);
    assert_int_equal(atomic_load(&faulty->claims[SNK_ASK_ACQUIRE]), 7);
    sneck_lock_free(self.all);
    free_all(members, 7);
}

/* Whoever writes may read; whoever reads may not write. So the write side comes first. */
static void test_both_sides_of_one_lock_are_taken(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    for (int turned = 0; turned < 2; turned++) {
        sneck_lock *members[2];
        sneck_lock *all = NULL;
        EXPECT(SNECK_OK, sneck_read_lock(bed->client, "a", NULL, &members[turned], &error));
        EXPECT(SNECK_OK, sneck_write_lock(bed->client, "a", NULL, &members[1 - turned], &error));
        EXPECT(SNECK_OK, sneck_multi_lock(members, 2, &all, &error));
        EXPECT(SNECK_OK, sneck_acquire(all, 0, &error));
        assert_true(sneck_is_held(members[0]) && sneck_is_held(members[1]));
        EXPECT(SNECK_OK, sneck_release(all, &error));
        assert_false(test_is_held_in_store(bed->client, "a"));
        sneck_lock_free(all);
        free_all(members, 2);
    }
}

/* Who reads one of them already is refused, and has none of the others. */
static void test_an_upgrade_among_them_is_refused(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    sneck_lock *members[3];
    sneck_lock *all = NULL;
    sneck_lock *reading = NULL;
    open_sides(bed->client, members);
    EXPECT(SNECK_OK, sneck_read_lock(bed->client, "c", NULL, &reading, &error));
    EXPECT(SNECK_OK, sneck_multi_lock(members, 3, &all, &error));
    EXPECT(SNECK_OK, sneck_acquire(reading, 0, &error));
    EXPECT(SNECK_DEADLOCK, sneck_acquire(all, SNECK_FOREVER, &error));
    EXPECT(SNECK_DEADLOCK, sneck_acquire(all, 0, &error));
    assert_false(test_is_held_in_store(bed->client, "a") || test_is_held_in_store(bed->client, "b"));
    assert_true(sneck_is_held(reading));
    EXPECT(SNECK_OK, sneck_release(reading, &error));
    EXPECT(SNECK_OK, sneck_acquire(all, 0, &error));
    EXPECT(SNECK_OK, sneck_release(all, &error));
    sneck_lock_free(all);
    sneck_lock_free(reading);
    free_all(members, 3);
}

enum {
    MANY = 150
};

typedef struct crowd {
    sneck_client *client;
    sneck_lock *members[MANY];
    sneck_lock *all;
} crowd;

static void hold_some(void *argument)
{
    crowd *self = argument;
    sneck_error error;
    sneck_lock *busy[3];
    for (int i = 0; i < 3; i++) {
        busy[i] = test_mutex(self->client, (const char *[]){ "m005", "m070", "m149" }[i], NULL);
        EXPECT(SNECK_OK, sneck_acquire(busy[i], 0, &error));
    }
    scene waits = { .all = self->all };
    begin_acquire(&waits, SNECK_FOREVER);
    for (int i = 0; i < 3; i++) {
        test_await_waiting(self->client, (const char *[]){ "m005", "m070", "m149" }[i], 1);
        EXPECT(SNECK_OK, sneck_release(busy[i], &error));
    }
    (void)end_acquire(&waits);
    assert_int_equal(waits.result.status, SNECK_OK);
    free_all(busy, 3);
}

static void test_many_of_which_some_are_busy_are_had_in_the_end(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    crowd self = { .client = bed->client };
    for (int i = 0; i < MANY; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "m%03d", i);
        self.members[i] = test_mutex(bed->client, name, NULL);
    }
    EXPECT(SNECK_OK, sneck_multi_lock(self.members, MANY, &self.all, &error));
    EXPECT(SNECK_OK, sneck_acquire(self.all, 0, &error));
    assert_true(sneck_is_held(self.all));
    EXPECT(SNECK_OK, sneck_release(self.all, &error));
    test_on_thread(hold_some, &self);
    for (int i = 0; i < MANY; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "m%03d", i);
        assert_false(test_is_held_in_store(bed->client, name));
    }
    sneck_lock_free(self.all);
    free_all(self.members, MANY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_members_of_several_stores_are_asked_at_once),
        cmocka_unit_test(test_a_store_that_hangs_and_never_answers_leaves_none_held),
        cmocka_unit_test(test_what_was_granted_is_renewed_while_another_store_hangs),
        cmocka_unit_test(test_an_interrupt_while_stores_are_asked_ends_the_wait),
        cmocka_unit_test(test_a_thread_that_is_cancelled_while_stores_are_asked_leaves_none_held),
        cmocka_unit_test(test_one_limit_of_time_is_for_all_of_them),
        cmocka_unit_test(test_a_trouble_counts_more_than_a_lock_that_is_busy),
        cmocka_unit_test(test_both_sides_and_a_mutex_are_asked_at_once),
        cmocka_unit_test(test_a_store_that_does_one_after_the_other_is_asked_by_several),
        cmocka_unit_test(test_both_sides_of_one_lock_are_taken),
        cmocka_unit_test(test_an_upgrade_among_them_is_refused),
        cmocka_unit_test(test_many_of_which_some_are_busy_are_had_in_the_end),
    };
    return test_run_kinds_on_stores(tests, sizeof tests / sizeof tests[0]);
}
