#include "run_options.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "engine/deadline.h"
#include "output.h"
#include "signals.h"

#define KILL_AFTER_MS_DEFAULT 5000

static bool parse_also(void *options, const char *value, char *problem, size_t size)
{
    snk_run_options *run = options;
    if (run->name_count == SNK_RUN_LOCKS_MAX) {
        snprintf(problem, size, "one run takes at most %d locks", SNK_RUN_LOCKS_MAX);
        return false;
    }
    run->names[run->name_count++] = value;
    return true;
}

static bool parse_on_lost(void *options, const char *value, char *problem, size_t size)
{
    snk_run_options *run = options;
    run->warns_only = strcmp(value, "warn") == 0;
    if (run->warns_only || strcmp(value, "kill") == 0)
        return true;
    snprintf(problem, size, "must be kill or warn");
    return false;
}

static bool parse_signal(void *options, const char *value, char *problem, size_t size)
{
    snk_run_options *run = options;
    if (snk_signal_parse(value, &run->stop_signal))
        return true;
    snprintf(problem, size, "must be a signal such as TERM, INT or 15");
    return false;
}

const snk_flag snk_run_flags[] = {
    SNK_LOCK_FLAG_ROWS,
    { 0, "also", "NAME", "take this lock too, all or none; may be repeated", SNK_FLAG_CALL, 0, 0, 0, parse_also },
    { 'c', "command", "STRING", "run this by the shell, instead of COMMAND", SNK_FLAG_TEXT,
      offsetof(snk_run_options, shell_command), 0, 0, NULL },
    { 0, "min-hold", "DUR", "hold it at least so long, even if the command ends sooner", SNK_FLAG_DURATION,
      offsetof(snk_run_options, min_hold_ms), 0, 0, NULL },
    { 0, "on-lost", "kill|warn", "when the lock is lost, stop the command (kill) or only say so", SNK_FLAG_CALL, 0, 0,
      0, parse_on_lost },
    { 0, "signal", "SIG", "how the command is told to stop (TERM)", SNK_FLAG_CALL, 0, 0, 0, parse_signal },
    { 0, "kill-after", "DUR", "how long it then has until it is killed (5s)", SNK_FLAG_DURATION,
      offsetof(snk_run_options, kill_after_ms), 0, SNK_LEASE_MS_MAX, NULL },
    { 'o', "close", NULL, "accepted for scripts that use flock; has no effect", SNK_FLAG_IGNORED, 0, 0, 0, NULL },
    { 0 },
};

snk_run_options snk_run_options_default(void)
{
    return (snk_run_options){
        .lock = SNK_LOCK_FLAGS_INIT,
        .name_count = 1, /* names[0] is the operand */
        .kill_after_ms = KILL_AFTER_MS_DEFAULT,
        .stop_signal = SIGTERM,
    };
}

/*
 * Between the last renewal that was answered and the moment when the command is told to stop, at least one more renewal
 * must have had its chance.
 */
static int check_times(const snk_cli *cli, const snk_run_options *options)
{
    int64_t lease_ms = snk_lock_flags_lease_ms(cli, &options->lock);
    int64_t usable_ms = snk_deadline_of(0, lease_ms * SNK_NS_PER_MS) / SNK_NS_PER_MS;
    int64_t renew_ms = snk_lock_flags_renew_ms(&options->lock, lease_ms);
    int64_t needed_ms = renew_ms == SNECK_NEVER ? 1 : 2 * renew_ms;
    if (options->warns_only || usable_ms - options->kill_after_ms >= needed_ms)
        return SNK_EXIT_OK;
    snk_complain(cli,
                 "the lease is too short: of its %" PRId64 " ms, %" PRId64
                 " ms can be used, and without --kill-after %" PRId64 " ms at least %" PRId64
                 " ms must be left (twice --renew); give a longer --lease, or a shorter "
                 "--kill-after or --renew",
                 lease_ms, usable_ms, options->kill_after_ms, needed_ms);
    return SNK_EXIT_USAGE;
}

int snk_run_options_check(const snk_cli *cli, const snk_run_options *options)
{
    int code = snk_lock_flags_check(cli, &options->lock, options->names, options->name_count);
    if (code != SNK_EXIT_OK)
        return code;
    if (options->lock.max_hold_ms != 0 && options->min_hold_ms > options->lock.max_hold_ms) {
        snk_complain(cli, "--min-hold must not be longer than --max-hold");
        return SNK_EXIT_USAGE;
    }
    return check_times(cli, options);
}
