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

/* Fields of the file by their number in proc(5); the name, which may hold any character, is the second. */
enum field {
    FIELD_STATE = 3,
    FIELD_PARENT = 4,
    FIELD_GROUP = 5,
    FIELD_THREADS = 20,
    FIELD_STARTED = 22
};

static void set_field(snk_process *process, int field, const char *text)
{
    unsigned long long number = strtoull(text, NULL, 10);
    if (field == FIELD_STATE)
        process->state = *text;
    else if (field == FIELD_PARENT)
        process->parent = (pid_t)number;
    else if (field == FIELD_GROUP)
        process->group = (pid_t)number;
    else if (field == FIELD_THREADS)
        process->threads = (long)number;
    else if (field == FIELD_STARTED)
        process->started_at = number;
}

bool snk_process_read(snk_process *process, pid_t pid)
{
    char text[STAT_SIZE];
    if (!read_stat(pid, text))
        return false;
    *process = (snk_process){ .pid = pid };
    char *rest = strrchr(text, ')');
    char *next = NULL;
    int field = FIELD_STATE;
    for (char *word = rest != NULL ? strtok_r(rest + 1, " ", &next) : NULL; word != NULL && field <= FIELD_STARTED;
         word = strtok_r(NULL, " ", &next))
        set_field(process, field++, word);
    return field > FIELD_STARTED;
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
