#include "children.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

static int ready_fd = -1; /* in a child */
static int line_fd = -1;  /* in a child: where its result goes, which may not fit into an exit code */

test_child test_child_start(int (*work)(void *context), void *context)
{
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    (void)fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)close(fds[0]);
        ready_fd = fds[1];
        _exit(work(context) == 0 ? 0 : 1);
    }
    (void)close(fds[1]);
    return (test_child){ .pid = pid, .ready = fds[0] };
}

void test_child_ready(void)
{
    if (write(ready_fd, "r", 1) != 1)
        _exit(2);
}

void test_child_await(test_child *child)
{
    char byte = 0;
    ssize_t got = 0;
    do {
        got = read(child->ready, &byte, 1);
    } while (got < 0 && errno == EINTR);
    if (got != 1)
        fail_msg("the child ended before it was ready");
}

int test_child_join(test_child *child)
{
    int status = 0;
    while (waitpid(child->pid, &status, 0) < 0)
        assert_int_equal(errno, EINTR);
    (void)close(child->ready);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void test_child_kill(test_child *child)
{
    assert_int_equal(kill(child->pid, SIGKILL), 0);
    (void)test_child_join(child);
}

typedef struct checked {
    int (*work)(void *context);
    void *context;
} checked;

static int run_checked(void *context)
{
    checked *task = context;
    int line = task->work(task->context);
    if (write(line_fd, &line, sizeof line) != (ssize_t)sizeof line)
        return 1;
    return 0;
}

void test_in_child(int (*work)(void *context), void *context)
{
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    line_fd = fds[1];
    checked task = { .work = work, .context = context };
    test_child child = test_child_start(run_checked, &task);
    (void)close(fds[1]);
    int line = -1;
    ssize_t got = read(fds[0], &line, sizeof line);
    (void)close(fds[0]);
    (void)test_child_join(&child);
    if (got != (ssize_t)sizeof line)
        fail_msg("the child died");
    if (line != 0)
        fail_msg("the check in line %d of the child failed", line);
}
