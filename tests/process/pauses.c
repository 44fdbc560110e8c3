/* A process that is stopped for a moment and goes on: everything in it stood still, so nothing in it is stuck. */
#include "test.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bed.h"

#define PAUSES 20
#define PAUSE_MS 250
#define BETWEEN_MS 150

/* The other process: stops this one again and again. */
static _Noreturn void stop_and_continue(pid_t process, int go_fd)
{
    char byte = 0;
    ssize_t rc = read(go_fd, &byte, 1);
    for (int i = 0; rc == 1 && i < PAUSES; i++) {
        (void)kill(process, SIGSTOP);
        (void)usleep(PAUSE_MS * 1000);
        (void)kill(process, SIGCONT);
        (void)usleep(BETWEEN_MS * 1000);
    }
    _exit(0);
}

static void test_a_pause_of_the_process_is_no_stuck_renewal_thread(void **state)
{
    (void)state;
    sneck_error error;
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        stop_and_continue(getppid(), fds[0]);
    sneck_client_options options = SNECK_CLIENT_OPTIONS_INIT;
    options.watchdog_ms = 100; /* less than a pause: a round is missed in each */
    sneck_client *client = NULL;
    EXPECT(SNECK_OK, sneck_open("memory:", &options, &client, &error));
    sneck_lock_options lock_options = SNECK_LOCK_OPTIONS_INIT;
    lock_options.renew_ms = 20;
    sneck_lock *lock = test_mutex(client, "a", &lock_options);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    assert_int_equal(write(fds[1], "", 1), 1);
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    sneck_health_report report = test_health(client);
    assert_int_equal(report.renewal_threads_replaced, 0);
    assert_int_equal(report.checks[SNECK_CHECK_RENEWAL].findings, 0);
    assert_true(report.checks[SNECK_CHECK_RENEWAL].runs >= PAUSES);
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    sneck_lock_free(lock);
    sneck_close(client);
    (void)close(fds[0]);
    (void)close(fds[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_pause_of_the_process_is_no_stuck_renewal_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
