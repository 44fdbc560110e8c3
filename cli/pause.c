/*
 * The command and sneck as one job of a shell, which knows sneck alone: when the command stops, sneck stops too, and
 * when the shell continues sneck, sneck continues the command. Stops and continues of both can come at any moment, so:
 *
 *   - The command is continued by nothing but a CONT that is read, and one that came while sneck was stopped waits to be
 *     read. Continued twice for one CONT, it would lose a stop that came in between.
 *   - What became of the command is known from wait alone, which tells the last change and not those before it.
 *   - A TSTP for sneck is for the command. One that is stopped already would not hear it: then it stops sneck, as it
 *     stops any program, and a CONT that follows takes it away.
 */
#include "supervisor_parts.h"

#include <signal.h>

void snk_pause_end(snk_supervisor *supervisor)
{
    snk_signals_watch_stop(supervisor->job->signals, true); /* first: from here to the end nothing may stop us */
    if (snk_signals_continue_waits()) {
        /* We were stopped once more: that one counts. Until it is read a TSTP, which takes it away, must stop us. */
        snk_signals_watch_stop(supervisor->job->signals, false);
        return;
    }
    snk_ending_look(supervisor);
    if (supervisor->ending != SNK_ENDING_NONE && snk_supervisor_kills(supervisor))
        return; /* it is being stopped: not continued */
    if (supervisor->wants_terminal && snk_terminal_is_ours(&supervisor->terminal))
        snk_terminal_give(&supervisor->terminal, supervisor->child.pid);
    snk_supervisor_signal(supervisor, SIGCONT);
}

/* The command is stopped, and no shell is there to continue us both. */
static void go_on_alone(snk_supervisor *supervisor, int stopped_by)
{
    if (stopped_by == SIGSTOP) {
        snk_terminal_give(&supervisor->terminal, supervisor->child.pid); /* whoever stopped it continues it */
        return;
    }
    if (stopped_by == SIGTTIN || stopped_by == SIGTTOU) {
        if (supervisor->was_hung_up)
            return; /* it does not care, and would only stop again at once */
        supervisor->was_hung_up = true;
        snk_supervisor_signal(supervisor, SIGHUP); /* as the kernel does to stopped jobs that lose their shell */
    }
    snk_pause_end(supervisor);
}

void snk_pause_follow(snk_supervisor *supervisor, int stopped_by)
{
    snk_terminal *terminal = &supervisor->terminal;
    bool wanted_terminal = stopped_by == SIGTTIN || stopped_by == SIGTTOU;
    if (terminal->fd < 0)
        return; /* no shell either: its own affair */
    if (wanted_terminal && snk_terminal_is_ours(terminal)) {
        supervisor->wants_terminal = true;
        snk_pause_end(supervisor);
        return;
    }
    snk_signals_watch_stop(supervisor->job->signals, stopped_by == 0);
    if (stopped_by == 0)
        return;
    if (stopped_by == SIGSTOP && !snk_terminal_is_of(terminal, supervisor->child.pid))
        return; /* somebody's kill -STOP: it means the command alone */
    snk_terminal_take_from(terminal, supervisor->child.pid);
    if (!snk_signals_stop_group(wanted_terminal ? stopped_by : SIGTSTP))
        go_on_alone(supervisor, stopped_by);
}
