/*
 * The command, from fork to exec. It is born stopped before its exec, in a process group of its own, and starts only
 * when it is told to: if whoever should tell it dies first, it ends without having run anything.
 */
#ifndef SNK_CLI_CHILD_H
#define SNK_CLI_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

#include "signals.h"
#include "terminal.h"

typedef struct snk_child {
    pid_t pid;      /* also its process group */
    int go_fd;      /* -1: it was told to start */
    int failure_fd; /* its exec either closes it or writes errno; -1: known */
    int failure;    /* errno of its exec; 0: none so far */
} snk_child;

/* False with errno. `environment` and `argv` end with NULL. */
bool snk_child_fork(snk_child *child, char *const argv[], char *const environment[], const snk_signals *signals,
                    const snk_terminal *terminal);

/* Lets it start, in the foreground of the terminal or not. */
void snk_child_go(snk_child *child, bool in_foreground);

/* Ends one that was never told to start. */
void snk_child_abandon(snk_child *child);

/* Reads what failure_fd has, without waiting. */
void snk_child_read_failure(snk_child *child);

void snk_child_close(snk_child *child);

#endif
