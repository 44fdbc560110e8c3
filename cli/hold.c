#include "hold.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "acquire.h"
#include "base/clock.h"
#include "base/error.h"
#include "escape.h"
#include "exit.h"
#include "json.h"
#include "narrate.h"
#include "output.h"
#include "timer.h"

static const snk_flag flags[] = { SNK_LOCK_FLAG_ROWS, { 0 } };

const snk_usage snk_usage_hold = {
    .name = "hold",
    .operands = "[flags] NAME",
    .summary = "hold a lock until stdin ends or a signal comes",
    .flags = flags,
    .notes = "When it has the lock it prints one line, \"TOKEN NAME\". It exits with 0 when its stdin has ended or a "
             "signal\n"
             "asked it to end, and with 79 when the lock was lost or --max-hold ran out.",
};

struct holder {
    const snk_cli *cli;
    const snk_lock_flags *flags;
    snk_signals *signals;
    snk_lockset *set;
    int timer_fd;
    int64_t max_hold_at_ns;
    bool stdin_is_watched;
};

/* To stdout: this is the answer, not talk. False with errno when nobody can have heard it. */
static bool print_token(const struct holder *holder)
{
    const char *name = holder->set->members[0].name;
    uint64_t token = snk_lockset_token(holder->set);
    if (holder->cli->json) {
        snk_json json = snk_json_on(stdout);
        snk_json_open(&json, NULL, '{');
        snk_json_text(&json, "event", "acquired");
        snk_json_text(&json, "lock", name);
        snk_json_uint(&json, "token", token);
        snk_json_close(&json, '}');
        snk_json_end(&json);
    } else {
        printf("%" PRIu64 " ", token);
        snk_escape_write(stdout, name);
        putchar('\n');
    }
    return fflush(stdout) == 0 && ferror(stdout) == 0;
}

/* True when stdin has ended. */
static bool read_stdin(struct holder *holder)
{
    char bytes[4096];
    ssize_t length = read(STDIN_FILENO, bytes, sizeof bytes);
    if (length < 0 && errno == EIO)
        holder->stdin_is_watched =
            false; /* a terminal that is in the hands of others, at least until we are continued */
    return length == 0 || (length < 0 && errno != EIO && errno != EINTR && errno != EAGAIN);
}

static bool was_asked_to_end(struct holder *holder)
{
    bool asked = false;
    int number = 0;
    while ((number = snk_signals_next(holder->signals)) != 0) {
        asked = asked || snk_signal_ends(number);
        if (number == SIGCONT)
            holder->stdin_is_watched = true;
    }
    return asked;
}

static const char *loss_message(const struct holder *holder, sneck_event *event)
{
    while (sneck_event_next(holder->set->client, event)) {
        if (event->kind == SNECK_EVENT_LOST && event->message[0] != '\0')
            return event->message;
    }
    return "its lease has ended, or it was taken away";
}

/* NULL while it may be held; else why not. */
static const char *ending(const struct holder *holder, sneck_event *event)
{
    if (snk_lockset_lost(holder->set) != NULL)
        return loss_message(holder, event);
    return snk_now_ns() >= holder->max_hold_at_ns ? "--max-hold has run out" : NULL;
}

static int hold_until_end(struct holder *holder)
{
    sneck_event event;
    (void)sneck_event_fd(holder->set->client); /* from here on events are kept for us */
    for (;;) {
        struct pollfd fds[] = {
            { .fd = holder->signals->fd, .events = POLLIN },
            { .fd = holder->timer_fd, .events = POLLIN },
            { .fd = sneck_lost_fd(holder->set->members[0].lock), .events = POLLIN },
            { .fd = holder->stdin_is_watched ? STDIN_FILENO : -1, .events = POLLIN },
        };
        snk_timer_set(holder->timer_fd, holder->max_hold_at_ns);
        if (poll(fds, 4, -1) < 0)
            continue;
        const char *cause = ending(holder, &event);
        if (cause != NULL) {
            snk_narrate_lost(holder->cli, holder->set->members[0].name, cause, "not holding it any more");
            return SNK_EXIT_LOST;
        }
        bool asked = was_asked_to_end(holder);
        if (asked || (fds[3].revents != 0 && read_stdin(holder)))
            return SNK_EXIT_OK;
    }
}

static int release(const struct holder *holder, int code)
{
    sneck_error error;
    sneck_status status = snk_lockset_release(holder->set, &error);
    const char *name = holder->set->members[0].name;
    if (status == SNECK_OK) {
        snk_narrate_released(holder->cli, name);
    } else if (status == SNECK_LOST && code == SNK_EXIT_OK) {
        snk_narrate_lost(holder->cli, name, error.message, "not holding it any more");
        return SNK_EXIT_LOST;
    } else if (status != SNECK_LOST) {
        snk_complain(holder->cli, "releasing failed, the lock frees itself when its lease ends: %s", error.message);
    }
    return code;
}

static int hold_with(struct holder *holder)
{
    int code = snk_acquire(holder->cli, holder->flags, holder->set, holder->signals);
    if (code != SNK_ACQUIRED)
        return code;
    holder->max_hold_at_ns = SNK_NEVER_NS;
    if (holder->flags->max_hold_ms != 0 && holder->flags->max_hold_ms < SNK_NEVER_NS / SNK_NS_PER_MS)
        holder->max_hold_at_ns = snk_time_add(snk_now_ns(), holder->flags->max_hold_ms * SNK_NS_PER_MS);
    if (print_token(holder))
        return release(holder, hold_until_end(holder));
    snk_complain(holder->cli, "cannot write to stdout: %s", strerror(errno));
    return release(holder, SNK_EXIT_INTERNAL);
}

/* `holder` without its lock. */
static int hold(struct holder holder, const char *name)
{
    sneck_client *client = NULL;
    sneck_error error;
    snk_lockset set;
    int code = snk_lock_flags_open(holder.cli, holder.flags, &client);
    if (code != SNK_EXIT_OK)
        return code;
    snk_lockset_way way = snk_lock_flags_way(holder.flags);
    sneck_status status = snk_lockset_open(&set, client, &name, 1, &way, &error);
    holder.set = &set;
    if (status == SNECK_OK) {
        code = hold_with(&holder);
    } else {
        snk_report(holder.cli, &error);
        code = snk_exit_of(status);
    }
    snk_lockset_close(&set);
    sneck_close(client);
    return code;
}

int snk_cmd_hold(const snk_cli *given, int argc, char **argv)
{
    struct {
        snk_lock_flags lock;
    } options = { .lock = SNK_LOCK_FLAGS_INIT };
    snk_arguments arguments;
    snk_signals signals;
    int code = snk_options_parse(&snk_usage_hold, given, argc, argv, &options, &arguments);
    if (code != SNK_PARSED)
        return code;
    if (arguments.count != 1)
        return snk_operands_wrong(&snk_usage_hold, &arguments);
    const char *name = arguments.operands[0];
    code = snk_lock_flags_check(&arguments.cli, &options.lock, &name, 1);
    if (code != SNK_EXIT_OK)
        return code;
    struct holder holder = { .cli = &arguments.cli,
                             .flags = &options.lock,
                             .signals = &signals,
                             .timer_fd = snk_timer_open(),
                             .stdin_is_watched = true };
    if (holder.timer_fd < 0 || !snk_signals_open(&signals)) {
        snk_complain(&arguments.cli, "cannot prepare: %s", strerror(errno));
        return SNK_EXIT_INTERNAL;
    }
    code = hold(holder, name);
    snk_narrate_exit(&arguments.cli, code);
    return snk_signals_exit(&signals, code);
}
