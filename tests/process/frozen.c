/* A holder that is stopped past its lease: on waking it is told, and what it does touches nobody. */
#include "test.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "process.h"

typedef struct scene {
    _Atomic uint32_t victim_holds;
    _Atomic uint32_t heir_holds;
    _Atomic uint32_t victim_done; /* everything that it could try */
    _Atomic uint64_t victim_token;
    _Atomic uint64_t heir_token;
} scene;

static sneck_lock *short_lease(sneck_client *client)
{
    sneck_lock_options options = SNECK_LOCK_OPTIONS_INIT;
    options.lease_ms = 300;
    return test_child_mutex(client, "frozen", &options);
}

static int be_frozen(void *context)
{
    scene *s = context;
    sneck_error error;
    sneck_client *client = test_child_open(NULL);
    sneck_lock *lock = short_lease(client);
    test_child_expect(sneck_acquire(lock, 0, &error), SNECK_OK, &error, "acquire");
    test_child_expect(sneck_acquire(lock, 0, &error), SNECK_OK, &error, "second level");
    atomic_store(&s->victim_token, sneck_token(lock));
    test_signal(&s->victim_holds);
    /* Stopped here, until after the heir has the lock. */
    if (!test_await(&s->heir_holds, 1))
        return 2;
    if (sneck_is_held(lock) || sneck_token(lock) != 0 || sneck_hold_count(lock) != 0 || sneck_remaining_ms(lock) != 0)
        return 3;
    test_child_expect(sneck_extend(lock, 10000, &error), SNECK_LOST, &error, "extend");
    test_child_expect(sneck_acquire(lock, 0, &error), SNECK_LOST, &error, "acquire after loss");
    test_child_expect(sneck_release(lock, &error), SNECK_LOST, &error, "release of the inner level");
    test_child_expect(sneck_release(lock, &error), SNECK_LOST, &error, "release of the outer level");
    test_child_expect(sneck_release(lock, &error), SNECK_NOT_OWNER, &error, "release of nothing");
    test_signal(&s->victim_done);
    sneck_lock_free(lock);
    sneck_close(client);
    return 0;
}

static int be_heir(void *context)
{
    scene *s = context;
    sneck_error error;
    sneck_client *client = test_child_open(NULL);
    sneck_lock *lock = short_lease(client);
    test_child_expect(sneck_acquire(lock, SNECK_FOREVER, &error), SNECK_OK, &error, "acquire");
    atomic_store(&s->heir_token, sneck_token(lock));
    test_signal(&s->heir_holds);
    if (!test_await(&s->victim_done, 1))
        return 2;
    /* Three renewals later the lock is still ours: the victim neither released nor renewed nor replaced it. */
    struct pollfd lost = { .fd = sneck_lost_fd(lock), .events = POLLIN };
    if (poll(&lost, 1, 400) != 0)
        return 3;
    sneck_info *info = NULL;
    test_child_expect(sneck_inspect(client, "frozen", &info, &error), SNECK_OK, &error, "inspect");
    bool mine = info->held && info->token == sneck_token(lock) && info->holder.pid == getpid();
    sneck_info_free(info);
    test_child_expect(sneck_release(lock, &error), SNECK_OK, &error, "release");
    sneck_lock_free(lock);
    sneck_close(client);
    return mine ? 0 : 4;
}

static void test_a_holder_frozen_past_its_lease_is_told_and_harmless(void **state)
{
    (void)state;
    (void)test_make_directory();
    scene *s = test_share(sizeof *s);
    pid_t victim = test_spawn(be_frozen, s);
    assert_true(test_await(&s->victim_holds, 1));
    assert_int_equal(kill(victim, SIGSTOP), 0);
    pid_t heir = test_spawn(be_heir, s);
    assert_true(test_await(&s->heir_holds, 1));
    assert_true(s->heir_token > s->victim_token);
    assert_int_equal(kill(victim, SIGCONT), 0);
    assert_int_equal(test_join(victim), 0);
    assert_int_equal(test_join(heir), 0);
    test_remove_directory();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_holder_frozen_past_its_lease_is_told_and_harmless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
