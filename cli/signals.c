#include "signals.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "exit.h"

/* Forwarded, unless the caller had them ignored: then neither we nor the command are to hear of them. */
static const int forwarded[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH };

static bool is_ignored(int number)
{
    struct sigaction action;
    return sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

bool snk_signals_open(snk_signals *signals)
{
    *signals = (snk_signals){ .fd = -1 };
    struct sigaction ignore = { .sa_handler = SIG_IGN };
    struct sigaction usual = { .sa_handler = SIG_DFL };
    sigemptyset(&signals->watched);
    for (size_t i = 0; i < sizeof forwarded / sizeof forwarded[0]; i++) {
        if (!is_ignored(forwarded[i]))
            sigaddset(&signals->watched, forwarded[i]);
    }
    sigaddset(&signals->watched, SIGCHLD);
    sigaddset(&signals->watched, SIGCONT);
    /* Not watched, but blocked: then a process in the background may hand the terminal over, and write to it. */
    sigset_t blocked = signals->watched;
    sigaddset(&blocked, SIGTTIN);
    sigaddset(&blocked, SIGTTOU);

    signals->fd = signalfd(-1, &signals->watched, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals->fd < 0)
        return false;
    pthread_sigmask(SIG_BLOCK, &blocked, &signals->original_mask);
    sigaction(SIGPIPE, &ignore, &signals->original_pipe);
    sigaction(SIGCHLD, &usual, &signals->original_child); /* ignored, it would take the exit status away from us */
    return true;
}

void snk_signals_close(snk_signals *signals)
{
    if (signals->fd >= 0)
        close(signals->fd);
    signals->fd = -1;
}

bool snk_signals_ignore_interrupt(const snk_signals *signals)
{
    return sigismember(&signals->watched, SIGINT) == 0;
}

static sigset_t only(int number)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    return set;
}

void snk_signals_watch_stop(snk_signals *signals, bool watch)
{
    sigset_t stop = only(SIGTSTP);
    if (is_ignored(SIGTSTP))
        return;
    if (watch)
        sigaddset(&signals->watched, SIGTSTP);
    else
        sigdelset(&signals->watched, SIGTSTP);
    (void)signalfd(signals->fd, &signals->watched, 0); /* fails for wrong arguments only */
    if (sigismember(&signals->original_mask, SIGTSTP) == 0)
        pthread_sigmask(watch ? SIG_BLOCK : SIG_UNBLOCK, &stop, NULL);
}

int snk_signals_next(snk_signals *signals)
{
    struct signalfd_siginfo info;
    if (read(signals->fd, &info, sizeof info) != (ssize_t)sizeof info)
        return 0;
    if (info.ssi_signo == SIGINT && info.ssi_code == SI_KERNEL) /* by the terminal; kill has other codes */
        signals->interrupt = SNK_INTERRUPT_OURS;
    return (int)info.ssi_signo;
}

int snk_signals_exit(const snk_signals *signals, int code)
{
    sigset_t interrupt = only(SIGINT);
    if (signals->interrupt == SNK_INTERRUPT_NONE || code != SNK_EXIT_SIGNAL + SIGINT || getpgid(getppid()) != getpgrp())
        return code;
    kill(signals->interrupt == SNK_INTERRUPT_COMMANDS ? 0 : getpid(), SIGINT);
    pthread_sigmask(SIG_UNBLOCK, &interrupt, NULL);
    return code; /* not reached, unless it is ignored */
}

void snk_signals_restore(const snk_signals *signals)
{
    sigaction(SIGPIPE, &signals->original_pipe, NULL);
    sigaction(SIGCHLD, &signals->original_child, NULL);
    sigprocmask(SIG_SETMASK, &signals->original_mask, NULL);
}

bool snk_signals_continue_waits(void)
{
    sigset_t pending;
    return sigpending(&pending) == 0 && sigismember(&pending, SIGCONT) == 1;
}

bool snk_signals_stop_group(int number)
{
    sigset_t before;
    sigset_t stop = only(number);
    if (snk_signals_continue_waits())
        return true; /* a stop would take it away, and whoever sent it would not know */
    pthread_sigmask(SIG_UNBLOCK, &stop, &before);
    kill(0, number); /* here we are stopped */
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return snk_signals_continue_waits();
}

bool snk_signal_ends(int number)
{
    return number == SIGHUP || number == SIGINT || number == SIGQUIT || number == SIGTERM;
}

bool snk_signal_parse(const char *text, int *number_out)
{
    char *end = NULL;
    long number = strtol(text, &end, 10);
    if (end != text && *end == '\0' && number > 0 && number < NSIG) {
        *number_out = (int)number;
        return true;
    }
    if (strncasecmp(text, "SIG", strlen("SIG")) == 0)
        text += strlen("SIG");
    for (int i = 1; i < NSIG; i++) {
        const char *name = sigabbrev_np(i);
        if (name != NULL && strcasecmp(name, text) == 0) {
            *number_out = i;
            return true;
        }
    }
    return false;
}
