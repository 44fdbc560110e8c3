#include "acquire.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "base/clock.h"
#include "narrate.h"
#include "output.h"
#include "waitline.h"

#define INTERRUPT_AGAIN_MS 20

/* Milliseconds for poll, rounded up. */
static int poll_timeout(int64_t at_ns)
{
    int64_t left_ns = at_ns - snk_now_ns();
    if (at_ns == SNK_NEVER_NS)
        return -1;
    if (left_ns <= 0)
        return 0;
    int64_t left_ms = (left_ns + SNK_NS_PER_MS - 1) / SNK_NS_PER_MS;
    return left_ms > 60000 ? 60000 : (int)left_ms;
}

/* Takes the signals that came; the one that is to end the wait, or 0. */
static int read_signals(snk_signals *signals)
{
    int number = 0;
    while ((number = snk_signals_next(signals)) != 0) {
        if (snk_signal_ends(number))
            return number;
    }
    return 0;
}

/* Whoever asks twice does not want to wait for the store's answer either; what it holds of us ends with us. */
static void leave_if_asked_again(snk_signals *signals)
{
    int number = snk_signals_next(signals);
    if (snk_signal_ends(number))
        _exit(snk_signals_exit(signals, SNK_EXIT_SIGNAL + number));
}

/* One wait. */
struct wait {
    snk_lockset *set;
    snk_signals *signals;
    snk_waitline line;
    int interrupted; /* the signal that is to end it; 0: none so far */
};

static void sleep_and_act(struct wait *wait, bool *decided_out)
{
    struct pollfd fds[] = {
        { .fd = wait->set->done_fd, .events = POLLIN },
        { .fd = wait->signals->fd, .events = POLLIN },
    };
    int timeout_ms = wait->interrupted != 0 ? INTERRUPT_AGAIN_MS : poll_timeout(wait->line.next_at_ns);
    int ready = poll(fds, 2, timeout_ms);
    if (ready > 0 && fds[1].revents != 0) {
        if (wait->interrupted != 0)
            leave_if_asked_again(wait->signals);
        else
            wait->interrupted = read_signals(wait->signals);
    }
    *decided_out = ready > 0 && fds[0].revents != 0;
    if (wait->interrupted != 0 && !*decided_out)
        snk_lockset_cancel(wait->set);
}

static snk_lockset_state wait_until_decided(struct wait *wait, int64_t wait_ms)
{
    snk_lockset_state state = snk_lockset_begin(wait->set, wait_ms);
    wait->line.give_up_at_ns = wait->set->give_up_at_ns;
    while (state == SNK_LOCKSET_WAITING) {
        bool decided = false;
        sleep_and_act(wait, &decided);
        if (decided)
            state = snk_lockset_step(wait->set);
        if (state == SNK_LOCKSET_WAITING && wait->interrupted == 0)
            snk_waitline_step(&wait->line, snk_lockset_waits_for(wait->set));
    }
    return state;
}

static int fail_busy(const snk_cli *cli, const snk_lock_flags *flags, const snk_lockset *set)
{
    char holder[SNK_HOLDER_TEXT_SIZE];
    sneck_info *info = NULL;
    const char *name = set->failed;
    if (cli->json && !cli->quiet) {
        snk_report(cli, &set->result);
    } else if (!cli->quiet && !flags->keeps_quiet) {
        bool known = sneck_inspect(set->client, name, &info, NULL) == SNECK_OK && info->held;
        snk_say(cli, "%s is busy%s%s", name, known ? ": held by " : "",
                known ? snk_waitline_holder(holder, &info->holder) : "");
        sneck_info_free(info);
    }
    return (int)flags->busy_code;
}

static int fail(const snk_cli *cli, const snk_lock_flags *flags, const snk_lockset *set)
{
    sneck_status status = set->result.status;
    if (status == SNECK_BUSY || status == SNECK_TIMEOUT)
        return fail_busy(cli, flags, set);
    snk_report(cli, &set->result);
    return snk_exit_of(status);
}

int snk_acquire(const snk_cli *cli, const snk_lock_flags *flags, snk_lockset *set, snk_signals *signals)
{
    struct wait wait = { .set = set, .signals = signals };
    snk_waitline_init(&wait.line, cli, set->client, SNK_NEVER_NS);
    snk_lockset_state state = wait_until_decided(&wait, snk_lock_flags_wait_ms(flags));
    snk_waitline_clear(&wait.line);
    if (wait.interrupted != 0) {
        (void)snk_lockset_release(set, NULL);
        return SNK_EXIT_SIGNAL + wait.interrupted;
    }
    if (state == SNK_LOCKSET_FAILED)
        return fail(cli, flags, set);
    int64_t waited_ms = (snk_now_ns() - wait.line.began_at_ns) / SNK_NS_PER_MS;
    for (size_t i = 0; i < set->count; i++)
        snk_narrate_acquired(cli, set->members[i].name, sneck_token(set->members[i].lock), waited_ms);
    return SNK_ACQUIRED;
}
