/*
 * A command that runs under locks which are held: it is started, given the terminal and every signal, stopped before
 * the locks are lost, and waited for until its whole process group is gone. Then the locks are released.
 */
#ifndef SNK_CLI_SUPERVISOR_H
#define SNK_CLI_SUPERVISOR_H

#include "lockset.h"
#include "run_options.h"
#include "signals.h"

typedef struct snk_job {
    const snk_cli *cli;
    const snk_run_options *options;
    snk_lockset *set; /* held */
    snk_signals *signals;
    char *const *argv;
    int64_t acquired_at_ns;
} snk_job;

/* Runs it and releases the locks. Returns the exit code. */
int snk_supervise(const snk_job *job);

#endif
