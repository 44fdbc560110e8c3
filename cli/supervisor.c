#include "supervisor_parts.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "client/supervise.h"
#include "exit.h"
#include "group.h"
#include "narrate.h"
#include "output.h"
#include "timer.h"

#define LOOK_NS_MIN (5 * SNK_NS_PER_MS) /* between looks whether what the command left running is gone */
#define LOOK_NS_MAX (500 * SNK_NS_PER_MS)
#define STRAGGLERS_NOTICE_NS SNK_NS_PER_S
#define GUARD_RETRY_NS SNK_NS_PER_S

void snk_supervisor_signal(const snk_supervisor *supervisor, int number)
{
    if (!supervisor->group_ended)
        snk_group_signal(supervisor->child.pid, number);
}

/* ---- Processes ---- */

static void on_leader_ended(snk_supervisor *supervisor, int status)
{
    supervisor->leader_ended = true;
    supervisor->wait_status = status;
    supervisor->leader_ended_at_ns = snk_now_ns();
    supervisor->look_ns = LOOK_NS_MIN;
    snk_child_read_failure(&supervisor->child);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGINT && !supervisor->forwarded_interrupt &&
        snk_terminal_is_of(&supervisor->terminal, supervisor->child.pid))
        supervisor->job->signals->interrupt = SNK_INTERRUPT_COMMANDS;
    snk_terminal_take_from(&supervisor->terminal, supervisor->child.pid);
}

static void reap(snk_supervisor *supervisor)
{
    int status = 0;
    int stopped_by = 0;
    pid_t pid = 0;
    bool has_changed = false;
    while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED)) > 0) {
        if (pid != supervisor->child.pid)
            continue; /* an orphan of the command, or a guard, whose socket has told us */
        has_changed = true;
        stopped_by = WIFSTOPPED(status) ? WSTOPSIG(status) : 0;
        if (WIFEXITED(status) || WIFSIGNALED(status))
            on_leader_ended(supervisor, status);
    }
    if (has_changed)
        snk_pause_follow(supervisor, stopped_by);
}

static void look_for_stragglers(snk_supervisor *supervisor)
{
    int64_t now_ns = snk_now_ns();
    supervisor->group_ended = snk_group_is_gone(supervisor->child.pid);
    supervisor->look_at_ns = now_ns + supervisor->look_ns;
    supervisor->look_ns = snk_earlier(2 * supervisor->look_ns, LOOK_NS_MAX);
    if (supervisor->group_ended) {
        atomic_store(&supervisor->page->group_is_gone, 1);
    } else if (!supervisor->told_of_stragglers && now_ns - supervisor->leader_ended_at_ns > STRAGGLERS_NOTICE_NS) {
        supervisor->told_of_stragglers = true;
        snk_say(supervisor->job->cli, "the command has ended; holding the lock until what it left running ends too");
    }
}

static void forward(snk_supervisor *supervisor, int number)
{
    bool insists = number == SIGTERM || (supervisor->leader_ended && snk_signal_ends(number));
    supervisor->forwarded_interrupt = supervisor->forwarded_interrupt || number == SIGINT;
    if (insists && ++supervisor->asked_to_end > 1)
        number = SIGKILL;
    snk_supervisor_signal(supervisor, number);
}

static void read_signals(snk_supervisor *supervisor)
{
    int number = 0;
    while ((number = snk_signals_next(supervisor->job->signals)) != 0) {
        if (number == SIGCHLD)
            reap(supervisor);
        else if (number == SIGCONT)
            snk_pause_end(supervisor);
        else
            forward(supervisor, number);
    }
}

static void keep_guarded(snk_supervisor *supervisor)
{
    snk_guard *guard = &supervisor->guard;
    if (guard->start_at_ns > snk_now_ns() || supervisor->group_ended)
        return;
    if (snk_guard_start(guard)) {
        if (supervisor->job->cli->verbose)
            snk_say(supervisor->job->cli, "the guard has died; started another one");
        return;
    }
    snk_complain(supervisor->job->cli, "cannot start a guard: %s; trying again", strerror(errno));
    guard->start_at_ns = snk_now_ns() + GUARD_RETRY_NS;
}

/* ---- The loop ---- */

enum {
    FD_SIGNALS,
    FD_TIMER,
    FD_GUARD,
    FD_EXEC,
    FD_EVENTS,
    FD_LOST,
    FD_COUNT = FD_LOST + SNK_RUN_LOCKS_MAX
};

static void fill_fds(const snk_supervisor *supervisor, struct pollfd fds[FD_COUNT])
{
    const snk_lockset *set = supervisor->job->set;
    for (size_t i = 0; i < FD_COUNT; i++)
        fds[i] = (struct pollfd){ .fd = -1, .events = POLLIN };
    fds[FD_SIGNALS].fd = supervisor->job->signals->fd;
    fds[FD_TIMER].fd = supervisor->timer_fd;
    fds[FD_GUARD].fd = supervisor->guard.socket;
    fds[FD_EXEC].fd = supervisor->child.failure_fd;
    fds[FD_EVENTS].fd = sneck_event_fd(set->client);
    for (size_t i = 0; i < set->count && supervisor->ending == SNK_ENDING_NONE; i++)
        fds[FD_LOST + i].fd = sneck_lost_fd(set->members[i].lock);
}

static void sleep_and_act(snk_supervisor *supervisor)
{
    struct pollfd fds[FD_COUNT];
    fill_fds(supervisor, fds);
    snk_timer_set(supervisor->timer_fd, snk_ending_next_look(supervisor));
    /* No more than there are: poll refuses a longer list than descriptors may be open. */
    (void)poll(fds, FD_LOST + supervisor->job->set->count, -1);
    for (size_t i = FD_LOST; i < FD_COUNT; i++) {
        if (fds[i].revents != 0)
            supervisor->stop.is_lost = true;
    }
    snk_ending_look(supervisor);
    if (fds[FD_EVENTS].revents != 0)
        snk_ending_read_events(supervisor);
    if (fds[FD_SIGNALS].revents != 0)
        read_signals(supervisor);
    if (fds[FD_EXEC].revents != 0)
        snk_child_read_failure(&supervisor->child);
    if (fds[FD_GUARD].revents != 0)
        (void)snk_guard_is_gone(&supervisor->guard);
    if (supervisor->leader_ended)
        look_for_stragglers(supervisor);
    keep_guarded(supervisor);
}

/* ---- The end ---- */

static void close_parts(snk_supervisor *supervisor)
{
    const snk_lockset *set = supervisor->job->set;
    for (size_t i = 0; i < set->count && supervisor->page != NULL; i++)
        snk_lock_mirror_deadline(set->members[i].lock, NULL);
    snk_child_close(&supervisor->child);
    snk_terminal_close(&supervisor->terminal);
    snk_page_unmap(supervisor->page);
    if (supervisor->page_fd >= 0)
        close(supervisor->page_fd);
    if (supervisor->timer_fd >= 0)
        close(supervisor->timer_fd);
}

static int exit_code(const snk_supervisor *supervisor)
{
    int status = supervisor->wait_status;
    int failure = supervisor->child.failure;
    if (supervisor->ending != SNK_ENDING_NONE && snk_supervisor_kills(supervisor))
        return SNK_EXIT_LOST;
    if (failure != 0) {
        snk_complain(supervisor->job->cli, "%s: %s", supervisor->job->argv[0], strerror(failure));
        return failure == ENOENT ? SNK_EXIT_NOT_FOUND : SNK_EXIT_CANNOT_EXECUTE;
    }
    return WIFSIGNALED(status) ? SNK_EXIT_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
}

/* --min-hold: holds on until then, unless somebody asks us to end, or there is nothing left to hold. */
static void hold_on(snk_supervisor *supervisor, int64_t until_ns)
{
    const snk_job *job = supervisor->job;
    bool asked = false;
    snk_signals_watch_stop(job->signals, false);
    while (!asked && snk_now_ns() < until_ns && snk_lockset_lost(job->set) == NULL) {
        struct pollfd fds[] = {
            { .fd = supervisor->timer_fd, .events = POLLIN },
            { .fd = job->signals->fd, .events = POLLIN },
        };
        int number = 0;
        snk_timer_set(supervisor->timer_fd, until_ns);
        (void)poll(fds, 2, -1);
        while ((number = snk_signals_next(job->signals)) != 0)
            asked = asked || snk_signal_ends(number);
    }
}

/* The command is over: gives the locks back. Returns the exit code. */
static int give_back(snk_supervisor *supervisor, int code)
{
    const snk_job *job = supervisor->job;
    sneck_error error;
    int64_t until_ns = job->acquired_at_ns + job->options->min_hold_ms * SNK_NS_PER_MS;
    bool held_on = supervisor->ending == SNK_ENDING_NONE && snk_now_ns() < until_ns;
    if (held_on)
        hold_on(supervisor, until_ns);
    if (job->set->held == 0)
        return code; /* --max-hold ran out, and the command was let run on */
    sneck_status status = snk_lockset_release(job->set, &error);
    if (status == SNECK_OK) {
        for (size_t i = 0; i < job->set->count; i++)
            snk_narrate_released(job->cli, job->set->members[i].name);
    } else if (status != SNECK_LOST) {
        snk_complain(job->cli, "releasing failed, the lock frees itself when its lease ends: %s", error.message);
    } else if (supervisor->ending == SNK_ENDING_NONE && !held_on) {
        snk_narrate_lost(job->cli, job->options->names[0], error.message, "the command has just ended");
        return snk_supervisor_kills(supervisor) ? SNK_EXIT_LOST : code;
    }
    return code;
}

int snk_supervise(const snk_job *job)
{
    snk_supervisor supervisor = {
        .job = job,
        .terminal = { .fd = -1 },
        .timer_fd = -1,
        .page_fd = -1,
        .child = { .go_fd = -1, .failure_fd = -1 },
        .guard = { .socket = -1 },
        .look_at_ns = SNK_NEVER_NS,
    };
    (void)sneck_event_fd(job->set->client); /* from here on events are kept for us */
    int code = snk_launch(&supervisor);
    if (code == SNK_EXIT_OK) {
        while (!supervisor.group_ended)
            sleep_and_act(&supervisor);
        snk_ending_look_back(&supervisor);
        code = exit_code(&supervisor);
        code = give_back(&supervisor, code);
    } else {
        (void)snk_lockset_release(job->set, NULL);
    }
    snk_guard_deinit(&supervisor.guard); /* not before: should we die while we release, it takes over */
    close_parts(&supervisor);
    return code;
}
