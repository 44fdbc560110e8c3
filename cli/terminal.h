/* The terminal, and which process group has its foreground. Signals TTIN and TTOU must be blocked. */
#ifndef SNK_CLI_TERMINAL_H
#define SNK_CLI_TERMINAL_H

#include <stdbool.h>
#include <sys/types.h>

typedef struct snk_terminal {
    int fd; /* -1: there is none */
} snk_terminal;

void snk_terminal_open(snk_terminal *terminal);
void snk_terminal_close(snk_terminal *terminal);

/* True when there is one and our own group is in its foreground. */
bool snk_terminal_is_ours(const snk_terminal *terminal);

/* True when there is one and `group` is in its foreground. */
bool snk_terminal_is_of(const snk_terminal *terminal, pid_t group);

/* Puts `group` into the foreground. Safe after fork. */
void snk_terminal_give(const snk_terminal *terminal, pid_t group);

/* Puts our own group back, if `group` is in the foreground. */
void snk_terminal_take_from(const snk_terminal *terminal, pid_t group);

#endif
