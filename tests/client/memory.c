/*
 * Out of memory: every public call is tried with its first allocation failing, then its second, and so on until it
 * succeeds. Each failure must be SNECK_NO_MEMORY (or another way of saying "no"), and must leave nothing behind.
 */
#include "bed.h"

#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "allocations.h"

/* One way to use the library; false when it was refused, which it must be without a trace. */
typedef bool (*attempt_fn)(test_bed *bed, sneck_error *error);

/* Repeats an attempt with one more allocation allowed each time, until none fails. */
static void sweep(test_bed *bed, attempt_fn attempt)
{
    if (!allocations_can_fail()) {
        test_skip("sanitizers have an allocator of their own");
        return;
    }
    if (strncmp(bed->url, "mysql", 5) == 0)
        return; /* libmariadb looks at memory that it did not get, when it connects */
    for (int allowed = 0; allowed < 1000; allowed++) {
        sneck_error error = { .status = SNECK_OK };
        allocations_have_failed = false;
        allocations_left = allowed;
        bool done = attempt(bed, &error);
        allocations_left = -1;
        assert_false(allowed == 0 && done); /* nothing here works without memory */
        if (!allocations_have_failed) {
            if (!done)
                fail_msg("with all memory: %s", error.message);
            assert_true(allowed > 0); /* it does allocate, or this shows nothing */
            return;
        }
        /* Without memory for the answer of a server nobody knows what it was. */
        if (!done && error.status != SNECK_NO_MEMORY && error.status != SNECK_UNAVAILABLE &&
            error.status != SNECK_UNKNOWN)
            fail_msg("allocation %d: %s: %s", allowed + 1, sneck_status_name(error.status), error.message);
    }
    fail_msg("it never succeeds");
}

static bool open_and_close(test_bed *bed, sneck_error *error)
{
    sneck_client *client = NULL;
    if (sneck_open(bed->url, NULL, &client, error) != SNECK_OK)
        return client != NULL;
    sneck_close(client);
    return true;
}

static void test_open_fails_cleanly(void **state)
{
    sweep(*state, open_and_close);
}

static void ignore_event(void *context, const sneck_event *event)
{
    (void)context;
    (void)event;
}

static bool make_lock(test_bed *bed, sneck_error *error)
{
    sneck_lock_options options = SNECK_LOCK_OPTIONS_INIT;
    options.why = "a reason";
    options.on_event = ignore_event;
    sneck_lock *lock = NULL;
    if (sneck_mutex(bed->client, "a", &options, &lock, error) != SNECK_OK)
        return lock != NULL;
    sneck_lock_free(lock);
    return true;
}

static void test_mutex_fails_cleanly(void **state)
{
    sweep(*state, make_lock);
}

static bool acquire_first(test_bed *bed, sneck_error *error)
{
    int left = allocations_left;
    allocations_left = -1;
    sneck_client *client = test_open(bed, NULL);
    /* A new name each time: what a server could not even be asked to forget, for want of memory, stays for its lease. */
    char name[32];
    (void)snprintf(name, sizeof name, "first%d", left);
    sneck_lock *lock = test_mutex(client, name, NULL);
    allocations_left = left;
    bool acquired = sneck_acquire(lock, 0, error) == SNECK_OK;
    bool held = sneck_is_held(lock);
    if (acquired)
        (void)sneck_release(lock, NULL);
    allocations_left = -1;
    if (held != acquired)
        fail_msg("%s, but held is %d: %s", sneck_status_name(error->status), held, error->message);
    sneck_lock_free(lock);
    sneck_close(client);
    return acquired;
}

static void test_the_first_acquire_which_starts_threads_fails_cleanly(void **state)
{
    sweep(*state, acquire_first);
}

static bool extend_and_look(test_bed *bed, sneck_error *error)
{
    int left = allocations_left;
    allocations_left = -1;
    sneck_lock *lock = test_mutex(bed->client, "a", NULL);
    sneck_error ignored;
    test_expect(SNECK_OK, sneck_acquire(lock, 0, &ignored), &ignored, "sneck_acquire");
    allocations_left = left;
    int fd = sneck_lost_fd(lock);
    sneck_info *info = NULL;
    sneck_status status = sneck_inspect(bed->client, "a", &info, error);
    bool agrees = (status == SNECK_OK) == (info != NULL);
    sneck_info_free(info);
    if (status == SNECK_OK)
        status = sneck_extend(lock, 5000, error);
    allocations_left = -1;
    assert_true(agrees);
    if (fd < 0 && status == SNECK_OK)
        status = error->status = SNECK_NO_MEMORY;
    assert_true(sneck_is_held(lock));
    sneck_lock_free(lock);
    return status == SNECK_OK;
}

static void test_looking_fails_cleanly(void **state)
{
    sweep(*state, extend_and_look);
}

typedef struct outcome {
    atomic_int status;
} outcome;

static void note(void *context, sneck_status status, const sneck_error *error)
{
    (void)error;
    atomic_store(&((outcome *)context)->status, (int)status);
}

static int await_outcome(outcome *self)
{
    while (atomic_load(&self->status) == -1)
        (void)usleep(200);
    return atomic_load(&self->status);
}

static bool acquire_by_request(test_bed *bed, sneck_error *error)
{
    int left = allocations_left;
    allocations_left = -1;
    sneck_client *client = test_open(bed, NULL);
    sneck_lock *lock = test_handle(client, "requested");
    allocations_left = left;
    outcome result = { -1 };
    sneck_request *request = NULL;
    sneck_status status = sneck_acquire_async(lock, 0, note, &result, &request, error);
    allocations_left = -1;
    if (status == SNECK_OK)
        assert_int_equal(await_outcome(&result), SNECK_OK);
    else
        assert_null(request);
    sneck_request_free(request);
    sneck_lock_free(lock);
    sneck_close(client);
    return status == SNECK_OK;
}

static void test_requests_fail_cleanly(void **state)
{
    sweep(*state, acquire_by_request);
}

/* The waiter cannot have memory for its hold while another one has the lock. */
static bool wait_contended(test_bed *bed, sneck_error *error)
{
    int left = allocations_left;
    allocations_left = -1;
    sneck_error ignored;
    sneck_lock *holder = test_handle(bed->client, "b");
    sneck_lock *waiter = test_handle(bed->client, "b");
    test_expect(SNECK_OK, sneck_acquire(holder, 0, &ignored), &ignored, "sneck_acquire");
    allocations_left = left;
    sneck_status status = sneck_acquire(waiter, 1, error);
    allocations_left = -1;
    assert_true(status == SNECK_TIMEOUT || status == SNECK_NO_MEMORY || status == SNECK_UNAVAILABLE);
    sneck_lock_free(holder);
    sneck_lock_free(waiter);
    assert_false(test_is_held_in_store(bed->client, "b"));
    assert_int_equal(test_queue_in_store(bed->client, "b"), 0);
    return status == SNECK_TIMEOUT;
}

static void test_waiting_fails_cleanly(void **state)
{
    sweep(*state, wait_contended);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open_fails_cleanly),
        cmocka_unit_test(test_mutex_fails_cleanly),
        cmocka_unit_test(test_the_first_acquire_which_starts_threads_fails_cleanly),
        cmocka_unit_test(test_looking_fails_cleanly),
        cmocka_unit_test(test_requests_fail_cleanly),
        cmocka_unit_test(test_waiting_fails_cleanly),
    };
    return test_run_on_stores(tests, sizeof tests / sizeof tests[0]);
}
