#include "supervisor_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "client/supervise.h"
#include "environment.h"
#include "exit.h"
#include "group.h"
#include "output.h"
#include "open_store.h"
#include "timer.h"

/* Whether the terminal is for the command: nobody else of our group may need it, such as the script that started us. */
static bool may_have_terminal(const snk_supervisor *supervisor)
{
    return supervisor->terminal.fd >= 0 && !snk_group_has_company() &&
           !snk_signals_ignore_interrupt(supervisor->job->signals);
}

static bool open_parts(snk_supervisor *supervisor)
{
    const snk_job *job = supervisor->job;
    snk_terminal_open(&supervisor->terminal);
    supervisor->wants_terminal = may_have_terminal(supervisor);
    supervisor->timer_fd = snk_timer_open();
    supervisor->page = snk_page_new(&supervisor->page_fd);
    if (supervisor->timer_fd < 0 || supervisor->page == NULL)
        return false;
    supervisor->stop.kill_after_ns = job->options->kill_after_ms * SNK_NS_PER_MS;
    supervisor->max_hold_at_ns = SNK_NEVER_NS;
    if (job->options->lock.max_hold_ms != 0 && job->options->lock.max_hold_ms < SNK_NEVER_NS / SNK_NS_PER_MS)
        supervisor->max_hold_at_ns = snk_time_add(job->acquired_at_ns, job->options->lock.max_hold_ms * SNK_NS_PER_MS);
    snk_page *page = supervisor->page;
    page->kill_after_ns = supervisor->stop.kill_after_ns;
    page->stop_signal = job->options->stop_signal;
    page->stops_on_loss = snk_supervisor_kills(supervisor);
    page->lock_count = (uint32_t)job->set->count;
    for (size_t i = 0; i < job->set->count; i++)
        snk_lock_mirror_deadline(job->set->members[i].lock, &page->deadlines_ns[i]);
    return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0;
}

static bool fork_child(snk_supervisor *supervisor)
{
    const snk_job *job = supervisor->job;
    snk_environment_facts facts = {
        .names = job->options->names,
        .count = job->options->name_count,
        .store_url = snk_cli_store_url(job->cli),
        .token = snk_lockset_token(job->set),
        .deadline_ms = snk_wall_us() / 1000 + snk_lockset_remaining_ms(job->set),
    };
    char **environment = snk_environment_new(&facts);
    if (environment == NULL) {
        errno = ENOMEM;
        return false;
    }
    bool forked = snk_child_fork(&supervisor->child, job->argv, environment, job->signals, &supervisor->terminal);
    int fork_errno = errno;
    snk_environment_free(environment);
    errno = fork_errno;
    return forked;
}

static int fail_start(const snk_supervisor *supervisor, const char *what)
{
    snk_complain(supervisor->job->cli, "%s: %s", what, strerror(errno));
    return SNK_EXIT_INTERNAL;
}

/* The guard stands before the command starts, and if sneck dies in between, the command never starts. */
static int start_guard(snk_supervisor *supervisor)
{
    const snk_job *job = supervisor->job;
    supervisor->page->group = (int32_t)supervisor->child.pid;
    bool held = snk_guard_init(&supervisor->guard, job->set, snk_cli_store_url(job->cli), supervisor->page_fd);
    if (held && !snk_guard_start(&supervisor->guard))
        return fail_start(supervisor, "cannot start the guard");
    if (held && !snk_guard_wait_ready(&supervisor->guard)) {
        snk_complain(job->cli, "cannot start the guard: it has died, or was not ready in time");
        return SNK_EXIT_INTERNAL;
    }
    snk_ending_look(supervisor);
    return held && supervisor->ending == SNK_ENDING_NONE ? SNK_EXIT_OK : SNK_EXIT_LOST;
}

/* stdin and stdout are the command's alone: whoever is at their other ends sees when it closes them, or ends. */
static void leave_stdin_and_stdout(void)
{
    int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return;
    dup2(fd, STDIN_FILENO);
    dup2(fd, STDOUT_FILENO);
    close(fd);
}

int snk_launch(snk_supervisor *supervisor)
{
    if (!open_parts(supervisor))
        return fail_start(supervisor, "cannot prepare the command");
    snk_signals_watch_stop(supervisor->job->signals, true); /* from now on it is for the command */
    if (!fork_child(supervisor))
        return fail_start(supervisor, "cannot start the command");
    int code = start_guard(supervisor);
    if (code != SNK_EXIT_OK) {
        snk_child_abandon(&supervisor->child);
        return code;
    }
    bool in_foreground = supervisor->wants_terminal && snk_terminal_is_ours(&supervisor->terminal);
    snk_child_go(&supervisor->child, in_foreground);
    leave_stdin_and_stdout();
    return SNK_EXIT_OK;
}
