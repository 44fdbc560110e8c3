/* The end of a client, and children of fork(). */
#include "bed.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct caller {
    pthread_t thread;
    sneck_lock *lock;
    sneck_status status;
    sneck_status again;
} caller;

static void *call(void *argument)
{
    caller *self = argument;
    self->status = sneck_acquire(self->lock, SNECK_FOREVER, NULL);
    self->again = sneck_acquire(self->lock, SNECK_FOREVER, NULL);
    return NULL;
}

static void note(void *context, sneck_status status, const sneck_error *error)
{
    (void)error;
    ((caller *)context)->status = status;
}

static void expect_inert(sneck_lock *lock)
{
    sneck_error error;
    EXPECT(SNECK_INVALID, sneck_acquire(lock, 0, &error));
    EXPECT(SNECK_INVALID, sneck_acquire_for(lock, 0, 1000, &error));
    EXPECT(SNECK_INVALID, sneck_extend(lock, 1000, &error));
    assert_false(sneck_is_held(lock));
    assert_int_equal(sneck_hold_count(lock), 0);
    assert_true(sneck_token(lock) == 0);
    assert_true(sneck_remaining_ms(lock) == 0);
    assert_int_equal(sneck_lost_fd(lock), -1);
    sneck_interrupt(lock);
}

static void test_closing_ends_waits_and_releases_holds(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    sneck_client *client = test_open(bed, NULL);
    sneck_lock_options fair = SNECK_LOCK_OPTIONS_INIT;
    fair.fair = bed->is_fair;
    sneck_lock *holder = test_handle(client, "a");
    EXPECT(SNECK_OK, sneck_acquire(holder, 0, &error));
    EXPECT(SNECK_OK, sneck_acquire(holder, 0, &error));
    caller callers[6] = { 0 };
    for (int i = 0; i < 6; i++) {
        callers[i].lock = test_mutex(client, "a", i % 2 == 0 ? &fair : NULL);
        callers[i].status = SNECK_DENIED;
        assert_int_equal(pthread_create(&callers[i].thread, NULL, call, &callers[i]), 0);
    }
    caller request = { .lock = test_handle(client, "a"), .status = SNECK_DENIED };
    EXPECT(SNECK_OK, sneck_acquire_async(request.lock, SNECK_FOREVER, note, &request, NULL, &error));
    test_await_waiting(client, "a", 7);
    sneck_close(client);
    assert_int_equal(request.status, SNECK_CANCELED); /* told before closing has returned */
    for (int i = 0; i < 6; i++) {
        assert_int_equal(pthread_join(callers[i].thread, NULL), 0);
        assert_int_equal(callers[i].status, SNECK_CANCELED);
        assert_int_equal(callers[i].again, SNECK_INVALID);
        sneck_lock_free(callers[i].lock);
    }
    if (bed->directory[0] != '\0') {
        assert_false(test_is_held_in_store(bed->client, "a"));
        assert_int_equal(test_queue_in_store(bed->client, "a"), 0);
    }
    expect_inert(holder);
    EXPECT(SNECK_INVALID, sneck_release(holder, &error));
    sneck_lock_free(holder);
    sneck_lock_free(request.lock);
    sneck_close(NULL);
    sneck_lock_free(NULL);
}

static void test_a_client_that_was_never_used_closes(void **state)
{
    test_bed *bed = *state;
    sneck_close(test_open(bed, NULL));
    sneck_client *client = test_open(bed, NULL);
    sneck_lock *lock = test_mutex(client, "a", NULL);
    sneck_close(client);
    expect_inert(lock);
    sneck_lock_free(lock);
}

typedef struct user {
    pthread_t thread;
    sneck_lock *lock;
    unsigned strange;
} user;

/* Uses its handle until the client is closed under its hands. */
static void *use(void *argument)
{
    user *self = argument;
    for (;;) {
        sneck_status status = sneck_acquire(self->lock, SNECK_FOREVER, NULL);
        if (status == SNECK_INVALID)
            break;
        if (status == SNECK_OK)
            status = sneck_release(self->lock, NULL);
        if (status != SNECK_OK && status != SNECK_CANCELED && status != SNECK_NOT_OWNER && status != SNECK_INVALID)
            self->strange++;
    }
    sneck_lock_free(self->lock);
    return NULL;
}

static void test_a_client_can_be_closed_under_the_hands_of_its_users(void **state)
{
    test_bed *bed = *state;
    for (unsigned i = 0; i < test_scaled(200); i++) {
        sneck_client *client = test_open(bed, NULL);
        user users[4] = { 0 };
        for (int t = 0; t < 4; t++)
            users[t].lock = test_mutex(client, t % 2 == 0 ? "busy" : "idle", NULL);
        for (int t = 0; t < 4; t++)
            assert_int_equal(pthread_create(&users[t].thread, NULL, use, &users[t]), 0);
        (void)usleep(500 * (i % 8));
        sneck_close(client);
        for (int t = 0; t < 4; t++) {
            assert_int_equal(pthread_join(users[t].thread, NULL), 0);
            assert_int_equal(users[t].strange, 0);
        }
        if (bed->directory[0] != '\0')
            assert_false(test_is_held_in_store(bed->client, "busy"));
    }
}

/* ---- fork() ---- */

/* The child's checks; 0 when all is well, else which one failed. */
static int check_child(sneck_client *client, sneck_lock *lock, sneck_lock *handle)
{
    sneck_error error;
    sneck_info *info = NULL;
    sneck_lock *made = NULL;
    if (sneck_acquire(lock, SNECK_FOREVER, &error) != SNECK_INVALID || strstr(error.message, "fork") == NULL)
        return 1;
    if (sneck_release(lock, &error) != SNECK_NOT_OWNER || sneck_release(handle, NULL) != SNECK_NOT_OWNER)
        return 2;
    if (sneck_is_held(lock) || sneck_is_held(handle) || sneck_token(handle) != 0 || sneck_hold_count(lock) != 0)
        return 3;
    if (sneck_extend(lock, 1000, NULL) != SNECK_INVALID || sneck_lost_fd(lock) != -1)
        return 4;
    if (sneck_mutex(client, "b", NULL, &made, NULL) != SNECK_INVALID ||
        sneck_inspect(client, "a", &info, NULL) != SNECK_INVALID)
        return 5;
    if (sneck_event_fd(client) != -1)
        return 6;
    sneck_interrupt(lock);
    sneck_lock_free(lock);
    sneck_close(client);
    sneck_lock_free(handle);
    return 0;
}

static void test_a_child_of_fork_owns_nothing_and_can_drop_what_it_has(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    sneck_lock *lock = test_mutex(bed->client, "a", NULL);
    sneck_lock *handle = test_handle(bed->client, "b");
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    EXPECT(SNECK_OK, sneck_acquire(handle, 0, &error));
    assert_true(sneck_event_fd(bed->client) >= 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(check_child(bed->client, lock, handle));
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_true(test_is_held_in_store(bed->client, "a"));
    assert_true(test_is_held_in_store(bed->client, "b"));
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    EXPECT(SNECK_OK, sneck_release(handle, &error));
    sneck_lock_free(lock);
    sneck_lock_free(handle);
}

/* The child opens a client of its own on the same store and waits for the parent's lock. */
static int use_own_client(const char *url)
{
    sneck_client *client = NULL;
    sneck_lock *lock = NULL;
    if (sneck_open(url, NULL, &client, NULL) != SNECK_OK || sneck_mutex(client, "a", NULL, &lock, NULL) != SNECK_OK)
        return 1;
    if (sneck_acquire(lock, 0, NULL) != SNECK_BUSY)
        return 2;
    if (sneck_acquire(lock, TEST_PATIENCE_MS, NULL) != SNECK_OK || sneck_release(lock, NULL) != SNECK_OK)
        return 3;
    sneck_lock_free(lock);
    sneck_close(client);
    return 0;
}

static void test_a_child_of_fork_can_open_its_own_client(void **state)
{
    test_bed *bed = *state;
    if (bed->directory[0] == '\0')
        return; /* processes meet only in a file */
    if (TEST_HAS_TSAN)
        test_skip("ThreadSanitizer allows no threads after fork()");
    sneck_error error;
    sneck_lock *lock = test_mutex(bed->client, "a", NULL);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(use_own_client(bed->url));
    int64_t until_ms = test_now_ms() + TEST_PATIENCE_MS;
    while (test_queue_in_store(bed->client, "a") == 0)
        assert_true(test_now_ms() < until_ms);
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    sneck_lock_free(lock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_closing_ends_waits_and_releases_holds),
        cmocka_unit_test(test_a_client_that_was_never_used_closes),
        cmocka_unit_test(test_a_client_can_be_closed_under_the_hands_of_its_users),
        cmocka_unit_test(test_a_child_of_fork_owns_nothing_and_can_drop_what_it_has),
        cmocka_unit_test(test_a_child_of_fork_can_open_its_own_client),
    };
    return test_run_on_stores(tests, sizeof tests / sizeof tests[0]);
}
