/*
 * Signals of a subcommand that waits or supervises: blocked from the start, before there are threads, and read from a
 * descriptor in the main loop. There are no handlers.
 */
#ifndef SNK_CLI_SIGNALS_H
#define SNK_CLI_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

/* Who has heard of an INT that was typed on the terminal. */
typedef enum snk_interrupt {
    SNK_INTERRUPT_NONE,
    SNK_INTERRUPT_OURS,    /* our process group */
    SNK_INTERRUPT_COMMANDS /* the command's, which died of it, and nobody else */
} snk_interrupt;

typedef struct snk_signals {
    int fd; /* readable while a signal waits; -1: not open */
    snk_interrupt interrupt;
    sigset_t watched;
    sigset_t original_mask;
    struct sigaction original_pipe;
    struct sigaction original_child;
} snk_signals;

/*
 * Blocks HUP INT QUIT TERM USR1 USR2 WINCH, as far as they are not ignored (nohup, background jobs), and CHLD CONT TTIN
 * TTOU. SIGPIPE is ignored. TSTP stops us as it stops any program. False with errno.
 */
bool snk_signals_open(snk_signals *signals);
void snk_signals_close(snk_signals *signals);

/* True when the caller had INT ignored, as a shell without job control does for what it starts in the background. */
bool snk_signals_ignore_interrupt(const snk_signals *signals);

/* Whether a TSTP is to be read like the others, unless it is ignored, instead of stopping us. */
void snk_signals_watch_stop(snk_signals *signals, bool watch);

/* Takes the next signal that came; 0 when there is none. */
int snk_signals_next(snk_signals *signals);

/*
 * The very last thing before exit(code). If an INT was typed, and the one who waits for us is in our own process group (a
 * script), it must hear of it and see us die of it, or it goes on with what comes next. Then this does not return.
 */
int snk_signals_exit(const snk_signals *signals, int code);

/* In a child process just before exec: everything as it was before snk_signals_open. Safe after fork. */
void snk_signals_restore(const snk_signals *signals);

/* True while a CONT waits to be read. */
bool snk_signals_continue_waits(void);

/*
 * Stops our whole process group, ourselves with it, by TSTP, TTIN or TTOU, and returns when we were continued: the CONT
 * that did it waits to be read then. If one waits already nobody is stopped. False when we could not be stopped, because
 * nobody is there who could continue us.
 */
bool snk_signals_stop_group(int number);

/* True for signals that ask a program to end: HUP INT QUIT TERM. */
bool snk_signal_ends(int number);

/* "TERM", "SIGTERM", "term" or "15"; false when it is none. */
bool snk_signal_parse(const char *text, int *number_out);

#endif
