#include "group.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "process.h"

void snk_group_signal(pid_t group, int number)
{
    if (group > 1)
        kill(-group, number);
}

static bool is_running_member(const snk_process *process, void *context)
{
    const pid_t *group = context;
    return process->group == *group && snk_process_runs(process);
}

bool snk_group_is_gone(pid_t group)
{
    if (kill(-group, 0) != 0 && errno == ESRCH)
        return true;
    snk_process self; /* without /proc nobody knows who still runs */
    return snk_process_read(&self, getpid()) && !snk_process_any(is_running_member, &group);
}

/* Also true for ourselves. */
static bool is_ancestor(pid_t pid)
{
    snk_process process = { .parent = getpid() };
    while (process.parent > 0 && process.parent != pid) {
        if (!snk_process_read(&process, process.parent))
            return false;
    }
    return process.parent == pid;
}

static bool is_company(const snk_process *process, void *context)
{
    return is_running_member(process, context) && !is_ancestor(process->pid);
}

bool snk_group_has_company(void)
{
    pid_t group = getpgrp();
    return snk_process_any(is_company, &group);
}
