#include "freezer.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* How many there are, and the id of the first. */
static unsigned find_threads(const char *name, pid_t *first_out)
{
    unsigned count = 0;
    *first_out = 0;
    DIR *tasks = opendir("/proc/self/task");
    const struct dirent *task = NULL;
    while (tasks != NULL && (task = readdir(tasks)) != NULL) {
        char path[64];
        char comm[32] = "";
        (void)snprintf(path, sizeof path, "/proc/self/task/%.16s/comm", task->d_name);
        FILE *file = fopen(path, "re");
        if (file == NULL)
            continue;
        bool found = fgets(comm, sizeof comm, file) != NULL && strncmp(comm, name, strlen(name)) == 0;
        if (found && count++ == 0)
            *first_out = (pid_t)strtol(task->d_name, NULL, 10);
        (void)fclose(file);
    }
    if (tasks != NULL)
        (void)closedir(tasks);
    return count;
}

pid_t test_thread_named(const char *name)
{
    pid_t first = 0;
    (void)find_threads(name, &first);
    return first;
}

unsigned test_threads_named(const char *name)
{
    pid_t first = 0;
    return find_threads(name, &first);
}

/* The other process: freezes, says so, and thaws when it is told to, or when the test is gone. */
static _Noreturn void trace(pid_t thread, int fd)
{
    int status = 0;
    char byte = 0;
    ssize_t rc = read(fd, &byte, 1); /* it is allowed from now on */
    bool frozen = rc == 1 && ptrace(PTRACE_SEIZE, thread, NULL, NULL) == 0 &&
                  ptrace(PTRACE_INTERRUPT, thread, NULL, NULL) == 0 && waitpid(thread, &status, __WALL) == thread;
    byte = frozen ? '+' : '-';
    bool said = write(fd, &byte, 1) == 1;
    rc = said ? read(fd, &byte, 1) : 0;
    (void)rc;
    if (frozen)
        (void)ptrace(PTRACE_DETACH, thread, NULL, NULL);
    _exit(0);
}

bool test_freeze(test_freezer *freezer, pid_t thread)
{
    int fds[2];
    char byte = '+';
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
        return false;
    freezer->pid = fork();
    if (freezer->pid == 0) {
        (void)close(fds[0]);
        trace(thread, fds[1]);
    }
    (void)close(fds[1]);
    freezer->order_fd = fds[0];
    (void)prctl(PR_SET_PTRACER, freezer->pid, 0, 0, 0);
    bool frozen = write(fds[0], &byte, 1) == 1 && read(fds[0], &byte, 1) == 1 && byte == '+';
    if (!frozen)
        test_thaw(freezer);
    return frozen;
}

void test_thaw(test_freezer *freezer)
{
    (void)close(freezer->order_fd);
    (void)waitpid(freezer->pid, NULL, 0);
}
