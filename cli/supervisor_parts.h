/* What the files of the supervisor share. */
#ifndef SNK_CLI_SUPERVISOR_PARTS_H
#define SNK_CLI_SUPERVISOR_PARTS_H

#include "child.h"
#include "guard.h"
#include "stop.h"
#include "supervisor.h"
#include "terminal.h"

/* What ended the right to run, before the command ended by itself. */
typedef enum snk_ending {
    SNK_ENDING_NONE,
    SNK_ENDING_LOST,
    SNK_ENDING_MAX_HOLD
} snk_ending;

typedef struct snk_supervisor {
    const snk_job *job;
    snk_terminal terminal;
    bool wants_terminal; /* the command belongs into the foreground when we are there */
    int timer_fd;
    int page_fd;
    snk_page *page;
    snk_guard guard;
    snk_child child;
    snk_stop stop;
    int64_t max_hold_at_ns;
    snk_ending ending;
    char loss[160];        /* why, as the library said it; "" when it did not */
    unsigned asked_to_end; /* times */
    bool forwarded_interrupt;
    bool was_hung_up; /* the command was told that it cannot have the terminal */
    bool leader_ended;
    bool group_ended;
    int wait_status;
    int64_t leader_ended_at_ns;
    int64_t look_at_ns; /* next look whether the group is gone; then again after look_ns */
    int64_t look_ns;
    bool told_of_stragglers;
} snk_supervisor;

static inline int64_t snk_earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* False with --on-lost warn. */
static inline bool snk_supervisor_kills(const snk_supervisor *supervisor)
{
    return !supervisor->job->options->warns_only;
}

/* Sends a signal to the command's group, unless that is gone. */
void snk_supervisor_signal(const snk_supervisor *supervisor, int number);

/* launch.c: everything up to the start of the command. SNK_EXIT_OK, or the exit code: it was not started. */
int snk_launch(snk_supervisor *supervisor);

/* pause.c: the command was stopped by this signal, or runs again (0): sneck stops too where a shell is to see that. */
void snk_pause_follow(snk_supervisor *supervisor, int stopped_by);

/* Continues the command, after a look at the clock, and never one that is to end. */
void snk_pause_end(snk_supervisor *supervisor);

/* ending.c: decides whether the command may still run; always the first thing to do after a sleep. */
void snk_ending_look(snk_supervisor *supervisor);

/* When to look again, if nothing happens before. */
int64_t snk_ending_next_look(const snk_supervisor *supervisor);

/* The command has ended; it may have been lost before that, while we did not run. */
void snk_ending_look_back(snk_supervisor *supervisor);

/* Takes what the library has to tell. */
void snk_ending_read_events(snk_supervisor *supervisor);

#endif
