/*
 * Signals of a subcommand that waits or supervises: blocked from the start, before there are threads, and read from a
 * descriptor in the main loop. There are no handlers.
 */
#ifndef SNK_CLI_SIGNALS_H
#define SNK_CLI_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

typedef struct snk_signals {
    int fd; /* readable while a signal waits; -1: not open */
    sigset_t original_mask;
    struct sigaction original_pipe;
    struct sigaction original_child;
} snk_signals;

/*
 * Blocks HUP INT QUIT TERM USR1 USR2 WINCH TSTP, as far as they are not ignored (nohup, background jobs), and CHLD
 * CONT TTIN TTOU. SIGPIPE is ignored. False with errno.
 */
bool snk_signals_open(snk_signals *signals);
void snk_signals_close(snk_signals *signals);

/* Takes the next signal that came; 0 when there is none. */
int snk_signals_next(const snk_signals *signals);

/* In a child process just before exec: everything as it was before snk_signals_open. Safe after fork. */
void snk_signals_restore(const snk_signals *signals);

/* Who is to stop: we have heard of it like everybody in our process group, or nobody of it but us has. */
typedef enum snk_stop_whom {
    SNK_STOP_SELF,
    SNK_STOP_GROUP
} snk_stop_whom;

/*
 * Stops this process, and with SNK_STOP_GROUP its whole process group, by TSTP, TTIN or TTOU, and returns when it is
 * continued. False when it was not stopped at all (nobody is there who could continue it).
 */
bool snk_signals_stop(snk_stop_whom whom, int number);

/* True for signals that ask a program to end: HUP INT QUIT TERM. */
bool snk_signal_ends(int number);

/* "TERM", "SIGTERM", "term" or "15"; false when it is none. */
bool snk_signal_parse(const char *text, int *number_out);

#endif
