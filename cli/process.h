/* What /proc says about a process. */
#ifndef SNK_CLI_PROCESS_H
#define SNK_CLI_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

typedef struct snk_process {
    pid_t pid;
    char state;
    pid_t parent;
    pid_t group;
    long threads;
    unsigned long long started_at; /* ticks since boot: with the pid it names a process for good */
} snk_process;

/* False when there is no such process, or none that we may see. */
bool snk_process_read(snk_process *process, pid_t pid);

/* Calls `matches` for every process until it returns true; the result is what it said last. */
bool snk_process_any(bool (*matches)(const snk_process *process, void *context), void *context);

/* False for one that is dead and was not waited for. */
bool snk_process_runs(const snk_process *process);

#endif
