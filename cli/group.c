#include "group.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STAT_SIZE 1024

/* What /proc/PID/stat says. */
struct process {
    pid_t pid;
    char state;
    pid_t parent;
    pid_t group;
    long threads;
};

static bool read_process(pid_t pid, struct process *process)
{
    char path[64];
    char text[STAT_SIZE];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    if (length <= 0)
        return false;
    text[length] = '\0';
    /* The name in parentheses may itself hold any character: what we want begins after the last ')'. */
    const char *rest = strrchr(text, ')');
    int parent = 0;
    int group = 0;
    process->pid = pid;
    if (rest == NULL || sscanf(rest + 1, " %c %d %d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld",
                               &process->state, &parent, &group, &process->threads) != 4)
        return false;
    process->parent = (pid_t)parent;
    process->group = (pid_t)group;
    return true;
}

/* A main thread that has ended looks dead although others still run. */
static bool runs(const struct process *process)
{
    bool dead = process->state == 'Z' || process->state == 'X' || process->state == 'x';
    return !dead || process->threads > 1;
}

/* Asks `matches` about every process that runs; true as soon as it says so. `otherwise`: when /proc cannot be read. */
static bool any_process(bool (*matches)(const struct process *process, pid_t group), pid_t group, bool otherwise)
{
    DIR *directory = opendir("/proc");
    if (directory == NULL)
        return otherwise;
    bool found = false;
    const struct dirent *entry = NULL;
    while (!found && (entry = readdir(directory)) != NULL) {
        struct process process;
        int pid = atoi(entry->d_name); /* 0 for what is no process */
        found = pid > 0 && read_process((pid_t)pid, &process) && runs(&process) && matches(&process, group);
    }
    closedir(directory);
    return found;
}

void snk_group_signal(pid_t group, int number)
{
    if (group > 1)
        kill(-group, number);
}

static bool is_member(const struct process *process, pid_t group)
{
    return process->group == group;
}

bool snk_group_is_gone(pid_t group)
{
    if (kill(-group, 0) != 0 && errno == ESRCH)
        return true;
    return !any_process(is_member, group, true);
}

static bool is_ancestor(pid_t pid)
{
    struct process process = { .parent = getpid() };
    while (process.parent > 0 && process.parent != pid) {
        if (!read_process(process.parent, &process))
            return false;
    }
    return process.parent == pid;
}

static bool is_company(const struct process *process, pid_t group)
{
    return process->group == group && !is_ancestor(process->pid);
}

bool snk_group_has_company(void)
{
    return any_process(is_company, getpgrp(), false);
}
