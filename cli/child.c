#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exit.h"

enum go {
    GO_BACKGROUND = 'b',
    GO_FOREGROUND = 'f'
};

/* Runs in the child, after fork in a process with threads: only calls that are safe there. */
static _Noreturn void become(int go_fd, int failure_fd, char *const argv[], char *const environment[],
                             const snk_signals *signals, const snk_terminal *terminal)
{
    char go = 0;
    ssize_t length = 0;
    setpgid(0, 0);
    do
        length = read(go_fd, &go, 1);
    while (length < 0 && errno == EINTR);
    if (length != 1)
        _exit(SNK_EXIT_INTERNAL); /* sneck is gone */
    if (go == GO_FOREGROUND)
        snk_terminal_give(terminal, getpid());
    snk_signals_restore(signals);
    execvpe(argv[0], argv, environment);
    int failure = errno;
    while (write(failure_fd, &failure, sizeof failure) < 0 && errno == EINTR)
        ;
    _exit(failure == ENOENT ? SNK_EXIT_NOT_FOUND : SNK_EXIT_CANNOT_EXECUTE);
}

bool snk_child_fork(snk_child *child, char *const argv[], char *const environment[], const snk_signals *signals,
                    const snk_terminal *terminal)
{
    int go[2];
    int failure[2];
    *child = (snk_child){ .go_fd = -1, .failure_fd = -1 };
    if (pipe2(go, O_CLOEXEC) != 0)
        return false;
    if (pipe2(failure, O_CLOEXEC | O_NONBLOCK) != 0) {
        close(go[0]);
        close(go[1]);
        return false;
    }
    child->pid = fork();
    if (child->pid == 0) {
        close(go[1]); /* or it would never see the end of this pipe */
        close(failure[0]);
        become(go[0], failure[1], argv, environment, signals, terminal);
    }
    int fork_errno = errno;
    close(go[0]);
    close(failure[1]);
    child->go_fd = go[1];
    child->failure_fd = failure[0];
    if (child->pid < 0) {
        snk_child_close(child);
        errno = fork_errno;
        return false;
    }
    setpgid(child->pid, child->pid); /* whoever of us two is first: the group is there from here on */
    return true;
}

void snk_child_go(snk_child *child, bool in_foreground)
{
    char go = in_foreground ? GO_FOREGROUND : GO_BACKGROUND;
    while (write(child->go_fd, &go, 1) < 0 && errno == EINTR)
        ;
    close(child->go_fd);
    child->go_fd = -1;
}

void snk_child_abandon(snk_child *child)
{
    snk_child_close(child);
    while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

void snk_child_read_failure(snk_child *child)
{
    int failure = 0;
    if (child->failure_fd < 0)
        return;
    ssize_t length = read(child->failure_fd, &failure, sizeof failure);
    if (length < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (length == (ssize_t)sizeof failure)
        child->failure = failure;
    close(child->failure_fd);
    child->failure_fd = -1;
}

void snk_child_close(snk_child *child)
{
    if (child->go_fd >= 0)
        close(child->go_fd);
    if (child->failure_fd >= 0)
        close(child->failure_fd);
    child->go_fd = -1;
    child->failure_fd = -1;
}
