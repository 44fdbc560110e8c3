/* Several locks: as one, in segments, and in circles. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bed.h"

/* ---- Multi-locks ---- */

typedef struct trio {
    sneck_lock *a;
    sneck_lock *b;
    sneck_lock *all;
} trio;

static trio open_trio_with(sneck_client *client, const sneck_lock_options *a, const sneck_lock_options *b)
{
    sneck_error error;
    trio made = { .a = test_mutex(client, "a", a), .b = test_mutex(client, "b", b) };
    sneck_lock *members[] = { made.b, made.a };
    EXPECT(SNECK_OK, sneck_multi_lock(members, 2, &made.all, &error));
    return made;
}

static trio open_trio(sneck_client *client)
{
    return open_trio_with(client, NULL, NULL);
}

static void close_trio(trio *made)
{
    sneck_lock_free(made->all);
    sneck_lock_free(made->a);
    sneck_lock_free(made->b);
}

static void test_all_are_held_together(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    trio locks = open_trio(bed->client);
    assert_false(sneck_is_held(locks.all));
    EXPECT(SNECK_OK, sneck_acquire(locks.all, 0, &error));
    assert_true(sneck_is_held(locks.a) && sneck_is_held(locks.b) && sneck_is_held(locks.all));
    assert_true(sneck_token(locks.all) == sneck_token(locks.a));
    assert_true(sneck_remaining_ms(locks.all) > 0);
    EXPECT(SNECK_OK, sneck_acquire(locks.all, SNECK_FOREVER, &error));
    assert_int_equal(sneck_hold_count(locks.all), 2);
    EXPECT(SNECK_OK, sneck_extend(locks.all, bed->lease_max_ms, &error));
    EXPECT(SNECK_OK, sneck_release(locks.all, &error));
    EXPECT(SNECK_OK, sneck_release(locks.all, &error));
    EXPECT(SNECK_NOT_OWNER, sneck_release(locks.all, &error));
    assert_false(test_is_held_in_store(bed->client, "a") || test_is_held_in_store(bed->client, "b"));
    EXPECT(SNECK_OK, sneck_acquire_for(locks.all, 0, 1000, &error));
    EXPECT(SNECK_OK, sneck_release(locks.all, &error));
    close_trio(&locks);
}

static void find_all_busy(void *argument)
{
    sneck_error error;
    trio *locks = argument;
    EXPECT(SNECK_BUSY, sneck_acquire(locks->all, 0, &error));
    EXPECT(SNECK_TIMEOUT, sneck_acquire(locks->all, 20, &error));
    assert_false(sneck_is_held(locks->a) || sneck_is_held(locks->b));
}

static void test_all_or_none(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    trio locks = open_trio(bed->client);
    sneck_lock *const each[] = { locks.a, locks.b };
    for (int i = 0; i < 2; i++) {
        EXPECT(SNECK_OK, sneck_acquire(each[i], 0, &error));
        test_on_thread(find_all_busy, &locks);
        assert_false(test_is_held_in_store(bed->client, i == 0 ? "b" : "a"));
        EXPECT(SNECK_OK, sneck_release(each[i], &error));
    }
    close_trio(&locks);
}

static void test_the_loss_of_one_is_the_loss_of_all(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    trio locks = open_trio(bed->client);
    EXPECT(SNECK_OK, sneck_acquire(locks.all, 0, &error));
    int fd = sneck_lost_fd(locks.all);
    assert_true(fd >= 0 && !test_readable(fd, 0));
    test_break(bed->client, "b");
    EXPECT(SNECK_LOST, sneck_extend(locks.b, 5000, &error));
    assert_true(test_readable(fd, TEST_PATIENCE_MS));
    assert_false(sneck_is_held(locks.all));
    assert_int_equal(sneck_token(locks.all), 0);
    assert_true(sneck_is_held(locks.a));
    EXPECT(SNECK_LOST, sneck_release(locks.all, &error));
    assert_false(test_is_held_in_store(bed->client, "a"));
    close_trio(&locks);
}

static void test_the_time_left_is_that_of_the_shortest(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    sneck_lock_options options = SNECK_LOCK_OPTIONS_INIT;
    options.lease_ms = 2000;
    trio locks = open_trio_with(bed->client, NULL, &options);
    EXPECT(SNECK_OK, sneck_acquire(locks.all, 0, &error));
    assert_true(sneck_remaining_ms(locks.a) > 2000);
    assert_in_range(sneck_remaining_ms(locks.all), 1, 2000);
    EXPECT(SNECK_OK, sneck_release(locks.all, &error));
    close_trio(&locks);
}

static void *wait_until_cancelled(void *argument)
{
    const trio *locks = argument;
    return sneck_acquire(locks->all, SNECK_FOREVER, NULL) == SNECK_OK ? argument : NULL;
}

static void test_a_cancelled_thread_gives_back_what_it_had_of_them(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    sneck_lock_options options = SNECK_LOCK_OPTIONS_INIT;
    options.owner = SNECK_OWNER_HANDLE; /* which does not end with the thread: the watchdog would give it back too */
    trio locks = open_trio_with(bed->client, &options, &options);
    sneck_lock *holder = test_mutex(bed->client, "b", NULL);
    pthread_t thread;
    void *result = NULL;
    EXPECT(SNECK_OK, sneck_acquire(holder, 0, &error));
    assert_int_equal(pthread_create(&thread, NULL, wait_until_cancelled, &locks), 0);
    test_await_waiting(bed->client, "b", 1);
    assert_true(sneck_is_held(locks.a));
    assert_int_equal(pthread_cancel(thread), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, PTHREAD_CANCELED);
    assert_false(sneck_is_held(locks.a) || test_is_held_in_store(bed->client, "a"));
    EXPECT(SNECK_OK, sneck_release(holder, &error));
    assert_false(test_is_held_in_store(bed->client, "b"));
    sneck_lock_free(holder);
    close_trio(&locks);
}

static void test_locks_of_two_clients_are_one(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    sneck_client *other = test_open(bed, NULL);
    sneck_lock *here = test_mutex(bed->client, "here", NULL);
    sneck_lock *there = test_mutex(other, "there", NULL);
    sneck_lock *members[] = { there, here };
    sneck_lock *both = NULL;
    EXPECT(SNECK_OK, sneck_multi_lock(members, 2, &both, &error));
    EXPECT(SNECK_OK, sneck_acquire(both, 0, &error));
    assert_true(sneck_is_held(here) && sneck_is_held(there));
    EXPECT(SNECK_OK, sneck_release(both, &error));
    sneck_close(other);
    EXPECT(SNECK_INVALID, sneck_acquire(both, 0, &error));
    sneck_lock_free(both);
    sneck_lock_free(here);
    sneck_lock_free(there);
}

static void test_two_handles_of_one_lock_are_two_levels(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    sneck_lock *members[] = { test_mutex(bed->client, "a", NULL), test_mutex(bed->client, "a", NULL) };
    sneck_lock *both = NULL;
    EXPECT(SNECK_OK, sneck_multi_lock(members, 2, &both, &error));
    EXPECT(SNECK_OK, sneck_acquire(both, 0, &error));
    assert_int_equal(sneck_hold_count(members[0]), 2);
    EXPECT(SNECK_OK, sneck_release(both, &error));
    assert_false(test_is_held_in_store(bed->client, "a"));
    sneck_lock_free(both);
    sneck_lock_free(members[0]);
    sneck_lock_free(members[1]);
}

typedef struct waiting_for_all {
    sneck_lock *lock;
    sneck_status status;
} waiting_for_all;

static void *wait_for_all(void *argument)
{
    waiting_for_all *self = argument;
    self->status = sneck_acquire(self->lock, INT64_MAX, NULL); /* longer than any clock counts */
    if (self->status == SNECK_OK)
        self->status = sneck_release(self->lock, NULL);
    return NULL;
}

static bool add_waiters(void *context, const sneck_local *local)
{
    unsigned *waiters = context;
    *waiters += strcmp(local->name, "b") == 0 ? local->waiting : 0;
    return true;
}

static void await_waiter_for_b(sneck_client *client)
{
    int64_t until_ms = test_now_ms() + TEST_PATIENCE_MS;
    for (unsigned waiters = 0; waiters == 0; sneck_list_local(client, add_waiters, &waiters)) {
        assert_true(test_now_ms() < until_ms);
        (void)usleep(1000);
    }
}

/* Otherwise whoever wants b and c, in that order, and this one could wait for each other. */
static void test_locks_within_locks_are_taken_in_the_one_order(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    sneck_lock *a = test_mutex(bed->client, "a", NULL);
    sneck_lock *b = test_mutex(bed->client, "b", NULL);
    sneck_lock *c = test_mutex(bed->client, "c", NULL);
    sneck_lock *held = test_mutex(bed->client, "b", NULL);
    sneck_lock *inner = NULL;
    sneck_lock *outer = NULL;
    EXPECT(SNECK_OK, sneck_multi_lock((sneck_lock *const[]){ a, c }, 2, &inner, &error));
    EXPECT(SNECK_OK, sneck_multi_lock((sneck_lock *const[]){ inner, b }, 2, &outer, &error));
    EXPECT(SNECK_OK, sneck_acquire(held, 0, &error));
    waiting_for_all waits = { .lock = outer };
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, wait_for_all, &waits), 0);
    await_waiter_for_b(bed->client);
    assert_true(test_is_held_in_store(bed->client, "a"));
    assert_false(test_is_held_in_store(bed->client, "c"));
    EXPECT(SNECK_OK, sneck_release(held, &error));
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(waits.status, SNECK_OK);
    sneck_lock_free(outer);
    sneck_lock_free(inner);
    sneck_lock_free(held);
    sneck_lock_free(a);
    sneck_lock_free(b);
    sneck_lock_free(c);
}

/* In whatever order the clients were opened: where one is in memory decides nothing. */
static void expect_a_before_c(test_bed *bed, const char *first, const char *second)
{
    sneck_error error;
    const char *prefixes[] = { first, second };
    sneck_client *clients[2];
    sneck_lock *members[2];
    for (int i = 0; i < 2; i++) {
        sneck_client_options options = SNECK_CLIENT_OPTIONS_INIT;
        options.prefix = prefixes[i];
        clients[i] = test_open(bed, &options);
        members[i] = test_mutex(clients[i], strcmp(prefixes[i], "lock:c") == 0 ? "b" : "cb", NULL);
    }
    int of_c = strcmp(first, "lock:c") == 0 ? 0 : 1;
    sneck_lock *held = test_handle(clients[of_c], "b");
    waiting_for_all waits = { 0 };
    pthread_t thread;
    EXPECT(SNECK_OK, sneck_multi_lock(members, 2, &waits.lock, &error));
    EXPECT(SNECK_OK, sneck_acquire(held, 0, &error));
    assert_int_equal(pthread_create(&thread, NULL, wait_for_all, &waits), 0);
    await_waiter_for_b(clients[of_c]);
    assert_true(test_is_held_in_store(clients[1 - of_c], "cb"));
    EXPECT(SNECK_OK, sneck_release(held, &error));
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(waits.status, SNECK_OK);
    sneck_lock_free(waits.lock);
    sneck_lock_free(held);
    for (int i = 0; i < 2; i++) {
        sneck_lock_free(members[i]);
        sneck_close(clients[i]);
    }
}

/* The store knows "lock:acb" and "lock:cb": in another process these may be names of one client. */
static void test_the_order_is_that_of_the_names_in_the_store(void **state)
{
    const test_bed *bed = *state;
    if (strncmp(bed->url, "redlock:", strlen("redlock:")) == 0)
        test_skip("nodes of a quorum count only after a while with another prefix");
    expect_a_before_c(*state, "lock:a", "lock:c");
    expect_a_before_c(*state, "lock:c", "lock:a");
}

static void test_bad_members_are_refused(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    trio locks = open_trio(bed->client);
    sneck_lock *twice[] = { locks.a, locks.a };
    sneck_lock *none[] = { locks.a, NULL };
    sneck_lock *made = locks.a;
    EXPECT(SNECK_INVALID, sneck_multi_lock(twice, 2, &made, &error));
    assert_null(made);
    EXPECT(SNECK_INVALID, sneck_multi_lock(none, 2, &made, &error));
    EXPECT(SNECK_INVALID, sneck_multi_lock(none, 0, &made, &error));
    EXPECT(SNECK_INVALID, sneck_multi_lock(NULL, 1, &made, &error));
    EXPECT(SNECK_INVALID, sneck_multi_lock(twice, 1, NULL, &error));
    close_trio(&locks);
}

static void test_locks_within_locks_count_for_the_limit(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    sneck_lock *segments = NULL;
    sneck_lock *one_more = test_mutex(bed->client, "a", NULL);
    sneck_lock *made = NULL;
    EXPECT(SNECK_OK, sneck_segments_all(bed->client, "hot", SNECK_MULTI_MAX, NULL, &segments, &error));
    EXPECT(SNECK_INVALID, sneck_multi_lock((sneck_lock *const[]){ segments, one_more }, 2, &made, &error));
    assert_null(made);
    sneck_lock_free(one_more);
    sneck_lock_free(segments);
}

static void never_done(void *context, sneck_status status, const sneck_error *error)
{
    (void)status;
    (void)error;
    *(bool *)context = true;
}

static void test_several_locks_have_no_asynchronous_calls(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    bool is_done = false;
    trio locks = open_trio(bed->client);
    EXPECT(SNECK_INVALID, sneck_acquire_async(locks.all, 0, never_done, &is_done, NULL, &error));
    EXPECT(SNECK_INVALID, sneck_release_async(locks.all, never_done, &is_done, NULL, &error));
    assert_false(is_done);
    close_trio(&locks);
}

static void test_a_child_of_fork_owns_none_of_them(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    trio locks = open_trio(bed->client);
    EXPECT(SNECK_OK, sneck_acquire(locks.all, 0, &error));
    pid_t pid = fork();
    if (pid == 0) {
        bool owns_nothing = sneck_release(locks.all, &error) == SNECK_NOT_OWNER && !sneck_is_held(locks.all) &&
                            sneck_acquire(locks.all, 0, &error) == SNECK_INVALID;
        close_trio(&locks);
        _exit(owns_nothing ? 0 : 1);
    }
    int result = 0;
    assert_int_equal(waitpid(pid, &result, 0), pid);
    assert_int_equal(result, 0);
    EXPECT(SNECK_OK, sneck_release(locks.all, &error));
    close_trio(&locks);
}

/* It would be no success otherwise: all of them are taken anew. */
static void test_what_is_lost_while_others_are_waited_for_is_taken_again(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    trio locks = open_trio(bed->client);
    sneck_lock *holder = test_mutex(bed->client, "b", NULL);
    waiting_for_all waits = { .lock = locks.all };
    pthread_t thread;
    EXPECT(SNECK_OK, sneck_acquire(holder, 0, &error));
    assert_int_equal(pthread_create(&thread, NULL, wait_for_all, &waits), 0);
    await_waiter_for_b(bed->client);
    test_break(bed->client, "a");
    test_find_loss(bed->client, 1);
    EXPECT(SNECK_OK, sneck_release(holder, &error));
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(waits.status, SNECK_OK);
    sneck_lock_free(holder);
    close_trio(&locks);
}

typedef struct pushing {
    sneck_client *client;
    bool turned;
    _Atomic int *inside;
    _Atomic int *wrong;
    sneck_status status;
} pushing;

static void *take_both_again_and_again(void *argument)
{
    pushing *self = argument;
    sneck_lock *one = test_mutex(self->client, self->turned ? "b" : "a", NULL);
    sneck_lock *two = test_mutex(self->client, self->turned ? "a" : "b", NULL);
    sneck_lock *members[] = { one, two };
    sneck_lock *both = NULL;
    self->status = sneck_multi_lock(members, 2, &both, NULL);
    for (unsigned i = 0; i < test_scaled(500) && self->status == SNECK_OK; i++) {
        self->status = sneck_acquire(both, TEST_PATIENCE_MS, NULL);
        if (self->status != SNECK_OK)
            break;
        if (++*self->inside != 1)
            ++*self->wrong;
        --*self->inside;
        self->status = sneck_release(both, NULL);
    }
    sneck_lock_free(both);
    sneck_lock_free(one);
    sneck_lock_free(two);
    return NULL;
}

static void test_callers_with_another_order_do_not_wait_for_each_other(void **state)
{
    enum {
        THREADS = 4
    };
    test_bed *bed = *state;
    _Atomic int inside = 0;
    _Atomic int wrong = 0;
    pthread_t threads[THREADS];
    pushing each[THREADS];
    for (int i = 0; i < THREADS; i++) {
        each[i] = (pushing){ .client = bed->client, .turned = i % 2 == 1, .inside = &inside, .wrong = &wrong };
        assert_int_equal(pthread_create(&threads[i], NULL, take_both_again_and_again, &each[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(each[i].status, SNECK_OK);
    }
    assert_int_equal(wrong, 0);
}

/* ---- Segments ---- */

static void test_a_key_has_its_segment(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    sneck_lock *one = NULL;
    sneck_lock *same = NULL;
    EXPECT(SNECK_OK, sneck_segment(bed->client, "hot", sneck_segment_of("key", 3, 8), NULL, &one, &error));
    EXPECT(SNECK_OK, sneck_segment(bed->client, "hot", sneck_segment_of("key", 3, 8), NULL, &same, &error));
    EXPECT(SNECK_OK, sneck_acquire(one, 0, &error));
    assert_true(sneck_is_held(same));
    assert_true(test_is_held_in_store(bed->client, "hot#5")); /* in every process, for ever */
    EXPECT(SNECK_OK, sneck_release(one, &error));
    sneck_lock_free(one);
    sneck_lock_free(same);
    EXPECT(SNECK_INVALID, sneck_segment(bed->client, "hot", SNECK_MULTI_MAX, NULL, &one, &error));
    EXPECT(SNECK_INVALID, sneck_segment(bed->client, NULL, 0, NULL, &one, &error));
}

static void test_all_segments_are_one_lock(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    sneck_lock *all = NULL;
    sneck_lock *one = NULL;
    EXPECT(SNECK_OK, sneck_segments_all(bed->client, "hot", 8, NULL, &all, &error));
    EXPECT(SNECK_OK, sneck_segment(bed->client, "hot", sneck_segment_of("key", 3, 8), NULL, &one, &error));
    EXPECT(SNECK_OK, sneck_acquire(all, 0, &error));
    assert_true(sneck_is_held(one));
    EXPECT(SNECK_OK, sneck_release(all, &error));
    assert_false(sneck_is_held(one));
    sneck_lock_free(one);
    sneck_lock_free(all);
}

/* ---- Deadlocks ---- */

typedef struct ring {
    sneck_client *own;  /* for the lock that it has */
    sneck_client *next; /* for the one that it wants */
    int index;
    int count;
    pthread_barrier_t *all_hold;
    sneck_error result;
} ring;

static void *hold_one_and_want_the_next(void *argument)
{
    ring *self = argument;
    char own[16];
    char next[16];
    (void)snprintf(own, sizeof own, "r%d", self->index);
    (void)snprintf(next, sizeof next, "r%d", (self->index + 1) % self->count);
    sneck_lock *first = test_mutex(self->own, own, NULL);
    sneck_lock *second = test_mutex(self->next, next, NULL);
    if (sneck_acquire(first, TEST_PATIENCE_MS, &self->result) == SNECK_OK) {
        (void)pthread_barrier_wait(self->all_hold);
        if (sneck_acquire(second, TEST_PATIENCE_MS, &self->result) == SNECK_OK)
            (void)sneck_release(second, NULL);
        (void)sneck_release(first, NULL);
    }
    sneck_lock_free(first);
    sneck_lock_free(second);
    return NULL;
}

/* Locks are taken through the one client and the other in turn, or all locks of a thread are. */
static void go_round(sneck_client *const clients[2], bool by_lock, int count)
{
    pthread_barrier_t all_hold;
    assert_int_equal(pthread_barrier_init(&all_hold, NULL, (unsigned)count), 0);
    pthread_t threads[8];
    ring each[8];
    for (int i = 0; i < count; i++) {
        each[i] = (ring){
            .own = clients[i % 2],
            .next = clients[by_lock ? (i + 1) % count % 2 : i % 2],
            .index = i,
            .count = count,
            .all_hold = &all_hold,
        };
        assert_int_equal(pthread_create(&threads[i], NULL, hold_one_and_want_the_next, &each[i]), 0);
    }
    int deadlocks = 0;
    for (int i = 0; i < count; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        if (each[i].result.status == SNECK_DEADLOCK) {
            deadlocks++;
            assert_non_null(strstr(each[i].result.message, "the caller holds r"));
        } else {
            assert_int_equal(each[i].result.status, SNECK_OK);
        }
    }
    assert_int_equal(deadlocks, 1);
    (void)pthread_barrier_destroy(&all_hold);
}

static void test_the_last_one_of_a_circle_is_told(void **state)
{
    test_bed *bed = *state;
    sneck_client *const clients[2] = { bed->client, bed->client };
    for (unsigned i = 0; i < test_scaled(100); i++)
        go_round(clients, false, 2);
    go_round(clients, false, 3);
    go_round(clients, false, 8);
}

static void test_a_circle_through_two_clients_is_told(void **state)
{
    test_bed *bed = *state;
    sneck_client *const clients[2] = { bed->client, test_open(bed, NULL) };
    bool is_one_store = strcmp(bed->url, "memory:") != 0;
    for (unsigned i = 0; i < test_scaled(100); i++) {
        go_round(clients, true, 2);
        if (is_one_store)
            go_round(clients, false, 2);
    }
    go_round(clients, true, 8);
    if (is_one_store)
        go_round(clients, false, 8);
    sneck_close(clients[1]);
}

static void test_a_queue_is_no_circle(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    sneck_lock *a = test_mutex(bed->client, "r0", NULL);
    EXPECT(SNECK_OK, sneck_acquire(a, 0, &error));
    pthread_barrier_t all_hold;
    assert_int_equal(pthread_barrier_init(&all_hold, NULL, 1), 0);
    ring waiter = { .own = bed->client, .next = bed->client, .index = 7, .count = 8, .all_hold = &all_hold };
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, hold_one_and_want_the_next, &waiter), 0);
    test_await_waiting(bed->client, "r0", 1);
    EXPECT(SNECK_OK, sneck_release(a, &error));
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(waiter.result.status, SNECK_OK);
    (void)pthread_barrier_destroy(&all_hold);
    sneck_lock_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_are_held_together),
        cmocka_unit_test(test_all_or_none),
        cmocka_unit_test(test_the_loss_of_one_is_the_loss_of_all),
        cmocka_unit_test(test_the_time_left_is_that_of_the_shortest),
        cmocka_unit_test(test_a_cancelled_thread_gives_back_what_it_had_of_them),
        cmocka_unit_test(test_locks_of_two_clients_are_one),
        cmocka_unit_test(test_two_handles_of_one_lock_are_two_levels),
        cmocka_unit_test(test_locks_within_locks_are_taken_in_the_one_order),
        cmocka_unit_test(test_the_order_is_that_of_the_names_in_the_store),
        cmocka_unit_test(test_bad_members_are_refused),
        cmocka_unit_test(test_locks_within_locks_count_for_the_limit),
        cmocka_unit_test(test_several_locks_have_no_asynchronous_calls),
        cmocka_unit_test(test_a_child_of_fork_owns_none_of_them),
        cmocka_unit_test(test_what_is_lost_while_others_are_waited_for_is_taken_again),
        cmocka_unit_test(test_callers_with_another_order_do_not_wait_for_each_other),
        cmocka_unit_test(test_a_key_has_its_segment),
        cmocka_unit_test(test_all_segments_are_one_lock),
        cmocka_unit_test(test_the_last_one_of_a_circle_is_told),
        cmocka_unit_test(test_a_circle_through_two_clients_is_told),
        cmocka_unit_test(test_a_queue_is_no_circle),
    };
    return test_run_on_stores(tests, sizeof tests / sizeof tests[0]);
}
