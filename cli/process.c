#include "process.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STAT_SIZE 1024

static bool read_stat(pid_t pid, char text[STAT_SIZE])
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t length = read(fd, text, STAT_SIZE - 1);
    close(fd);
    text[length > 0 ? length : 0] = '\0';
    return length > 0;
}

bool snk_process_read(snk_process *process, pid_t pid)
{
    char text[STAT_SIZE];
    if (!read_stat(pid, text))
        return false;
    /* The name in parentheses may itself hold any character: what we want begins after the last ')'. */
    const char *rest = strrchr(text, ')');
    int parent = 0;
    int group = 0;
    process->pid = pid;
    if (rest == NULL ||
        sscanf(rest + 1, " %c %d %d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld %*d %llu",
               &process->state, &parent, &group, &process->threads, &process->started_at) != 5)
        return false;
    process->parent = (pid_t)parent;
    process->group = (pid_t)group;
    return true;
}

bool snk_process_any(bool (*matches)(const snk_process *process, void *context), void *context)
{
    DIR *directory = opendir("/proc");
    if (directory == NULL)
        return false;
    bool found = false;
    const struct dirent *entry = NULL;
    while (!found && (entry = readdir(directory)) != NULL) {
        snk_process process;
        int pid = (int)strtol(entry->d_name, NULL, 10); /* 0 for what is no process */
        found = pid > 0 && snk_process_read(&process, (pid_t)pid) && matches(&process, context);
    }
    closedir(directory);
    return found;
}

bool snk_process_runs(const snk_process *process)
{
    /* A main thread that has ended looks dead although others still run. */
    bool dead = process->state == 'Z' || process->state == 'X' || process->state == 'x';
    return !dead || process->threads > 1;
}
