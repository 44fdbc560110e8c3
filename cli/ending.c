/* Why and when a command must stop. */
#include "supervisor_parts.h"

#include <signal.h>

#include "base/clock.h"
#include "base/error.h"
#include "narrate.h"
#include "output.h"

#define KILL_AGAIN_NS (100 * SNK_NS_PER_MS) /* a process may have joined the group meanwhile */

void snk_ending_read_events(snk_supervisor *supervisor)
{
    sneck_event event;
    while (sneck_event_next(supervisor->job->set->client, &event)) {
        if (event.kind == SNECK_EVENT_LOST)
            snk_copy_text(supervisor->loss, sizeof supervisor->loss, event.message);
        else if (event.kind == SNECK_EVENT_RENEWAL_FAILED && supervisor->job->cli->verbose)
            snk_say(supervisor->job->cli, "renewing %s failed (%s): %s", event.name, sneck_status_name(event.status),
                    event.message);
    }
}

static const char *cause_of(snk_supervisor *supervisor, int64_t now_ns)
{
    if (supervisor->ending == SNK_ENDING_MAX_HOLD)
        return "--max-hold has run out";
    snk_ending_read_events(supervisor);
    if (supervisor->loss[0] != '\0')
        return supervisor->loss;
    if (now_ns >= supervisor->stop.deadline_ns)
        return "its lease has ended";
    return supervisor->stop.is_lost ? "it was taken away" : "its lease ends and no renewal was answered";
}

static void tell_ending(snk_supervisor *supervisor, int64_t now_ns)
{
    const char *name = snk_lockset_lost(supervisor->job->set);
    const char *cause = cause_of(supervisor, now_ns);
    if (name == NULL) /* not lost yet: about to be */
        name = supervisor->job->options->names[0];
    snk_narrate_lost(supervisor->job->cli, name, cause,
                     snk_supervisor_kills(supervisor) ? "stopping the command" : "the command runs on without it");
}

/* The command must stop. Its group is told once, by us or by the guard. */
static void begin_stop(snk_supervisor *supervisor, int64_t now_ns)
{
    bool is_mine = snk_page_begin_stop(supervisor->page, now_ns);
    if (is_mine && now_ns < snk_stop_kill_at(&supervisor->stop, now_ns)) {
        snk_supervisor_signal(supervisor, supervisor->job->options->stop_signal);
        snk_supervisor_signal(supervisor, SIGCONT); /* one that is stopped must be able to hear it */
    }
}

static void end_right_to_run(snk_supervisor *supervisor, snk_ending ending, int64_t now_ns)
{
    supervisor->ending = ending;
    if (snk_supervisor_kills(supervisor))
        begin_stop(supervisor, now_ns); /* first, it counts; then the talking */
    tell_ending(supervisor, now_ns);
    if (!snk_supervisor_kills(supervisor) && ending == SNK_ENDING_MAX_HOLD)
        (void)snk_lockset_release(supervisor->job->set, NULL);
}

static bool is_lost(snk_supervisor *supervisor, int64_t now_ns)
{
    if (!snk_supervisor_kills(supervisor))
        return snk_lockset_lost(supervisor->job->set) != NULL;
    snk_stop_look(&supervisor->stop, snk_page_deadline(supervisor->page));
    return snk_stop_is_due(&supervisor->stop, now_ns);
}

void snk_ending_look(snk_supervisor *supervisor)
{
    int64_t now_ns = snk_now_ns();
    if (supervisor->ending == SNK_ENDING_NONE && is_lost(supervisor, now_ns))
        end_right_to_run(supervisor, SNK_ENDING_LOST, now_ns);
    if (supervisor->ending == SNK_ENDING_NONE && now_ns >= supervisor->max_hold_at_ns)
        end_right_to_run(supervisor, SNK_ENDING_MAX_HOLD, now_ns);
    int64_t begun_ns = atomic_load(&supervisor->page->stop_begun_ns);
    if (begun_ns != 0 && now_ns >= snk_stop_kill_at(&supervisor->stop, begun_ns))
        snk_supervisor_signal(supervisor, SIGKILL);
}

int64_t snk_ending_next_look(const snk_supervisor *supervisor)
{
    int64_t begun_ns = atomic_load(&supervisor->page->stop_begun_ns);
    int64_t next_ns = supervisor->guard.start_at_ns;
    if (supervisor->ending == SNK_ENDING_NONE) {
        next_ns = snk_earlier(next_ns, supervisor->max_hold_at_ns);
        if (snk_supervisor_kills(supervisor))
            next_ns = snk_earlier(next_ns, snk_stop_due_at(&supervisor->stop));
    }
    if (begun_ns != 0) {
        int64_t kill_ns = snk_stop_kill_at(&supervisor->stop, begun_ns);
        int64_t now_ns = snk_now_ns();
        next_ns = snk_earlier(next_ns, now_ns < kill_ns ? kill_ns : now_ns + KILL_AGAIN_NS);
    }
    return supervisor->leader_ended ? snk_earlier(next_ns, supervisor->look_at_ns) : next_ns;
}

void snk_ending_look_back(snk_supervisor *supervisor)
{
    if (supervisor->ending != SNK_ENDING_NONE || snk_lockset_lost(supervisor->job->set) == NULL)
        return;
    supervisor->ending = SNK_ENDING_LOST;
    tell_ending(supervisor, snk_now_ns());
}
