#include "run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "acquire.h"
#include "base/clock.h"
#include "environment.h"
#include "exit.h"
#include "narrate.h"
#include "output.h"
#include "run_options.h"
#include "open_store.h"
#include "supervisor.h"

const snk_usage snk_usage_run = {
    .name = "run",
    .operands = "[flags] NAME [--] COMMAND [ARGUMENT...]",
    .summary = "run a command under a lock",
    .flags = snk_run_flags,
    .has_command = true,
    .notes = "The exit code is the command's own (128+n when signal n ended it), or\n"
             "   75  the lock could not be had (-E changes it)      64  wrong usage\n"
             "   79  the lock was lost, the command was stopped     77  the store refuses us\n"
             "   69  the store cannot be reached                    78  bad URL or configuration\n"
             "  126  the command cannot be executed                127  it was not found\n"
             "  130, 143  interrupted while waiting\n"
             "\n"
             "The command finds SNECK_LOCK, SNECK_TOKEN, SNECK_DEADLINE_MS and SNECK_STORE in its environment.",
};

/* The words after NAME; a "--" that still stands there is not one of them. */
static char **command_of(const snk_arguments *arguments)
{
    char **command = arguments->operands + 1;
    return *command != NULL && strcmp(*command, "--") == 0 ? command + 1 : command;
}

static int check(const snk_cli *cli, const snk_run_options *options, char *const *command)
{
    int code = snk_run_options_check(cli, options);
    if (code != SNK_EXIT_OK)
        return code;
    if (command[0] == NULL && options->shell_command == NULL) {
        snk_complain(cli, "a command is missing: sneck run NAME -- COMMAND (try: sneck run --help)");
        return SNK_EXIT_USAGE;
    }
    if (command[0] != NULL && options->shell_command != NULL) {
        snk_complain(cli, "-c takes the whole command as one text; %s is too much", command[0]);
        return SNK_EXIT_USAGE;
    }
    const char *outer = snk_environment_outer_lock(snk_cli_store_url(cli), options->names, options->name_count);
    if (outer != NULL) {
        snk_complain(cli, "this already runs under the lock %s: waiting for it would never end", outer);
        return SNK_EXIT_USAGE;
    }
    return SNK_EXIT_OK;
}

/* `job` without its locks. */
static int run_with(snk_job job, sneck_client *client)
{
    sneck_error error;
    snk_lockset set;
    const snk_run_options *options = job.options;
    snk_lockset_way way = snk_lock_flags_way(&options->lock);
    sneck_status status = snk_lockset_open(&set, client, options->names, options->name_count, &way, &error);
    int code = snk_exit_of(status);
    if (status != SNECK_OK) {
        snk_report(job.cli, &error);
    } else {
        code = snk_acquire(job.cli, &options->lock, &set, job.signals);
        if (code == SNK_ACQUIRED) {
            job.set = &set;
            job.acquired_at_ns = snk_now_ns();
            code = snk_supervise(&job);
        }
    }
    snk_lockset_close(&set);
    return code;
}

static int run(const snk_cli *cli, const snk_run_options *options, char *const *argv)
{
    snk_signals signals;
    sneck_client *client = NULL;
    if (!snk_signals_open(&signals)) {
        snk_complain(cli, "signalfd: %s", strerror(errno));
        return SNK_EXIT_INTERNAL;
    }
    snk_job job = { .cli = cli, .options = options, .signals = &signals, .argv = argv };
    int code = snk_lock_flags_open(cli, &options->lock, &client);
    if (code == SNK_EXIT_OK)
        code = run_with(job, client);
    sneck_close(client);
    snk_signals_close(&signals);
    snk_narrate_exit(cli, code);
    return snk_signals_exit(&signals, code);
}

int snk_cmd_run(const snk_cli *given, int argc, char **argv)
{
    snk_run_options options = snk_run_options_default();
    snk_arguments arguments;
    int code = snk_options_parse(&snk_usage_run, given, argc, argv, &options, &arguments);
    if (code != SNK_PARSED)
        return code;
    if (arguments.count == 0)
        return snk_operands_wrong(&snk_usage_run, &arguments);
    options.names[0] = arguments.operands[0];
    char **command = command_of(&arguments);
    code = check(&arguments.cli, &options, command);
    if (code != SNK_EXIT_OK)
        return code;
    if (options.shell_command == NULL)
        return run(&arguments.cli, &options, command);
    const char *shell = getenv("SHELL");
    char flag[] = "-c";
    char *shell_argv[] = { strdup(shell != NULL && shell[0] != '\0' ? shell : "/bin/sh"), flag,
                           strdup(options.shell_command), NULL };
    code =
        shell_argv[0] != NULL && shell_argv[2] != NULL ? run(&arguments.cli, &options, shell_argv) : SNK_EXIT_INTERNAL;
    free(shell_argv[0]);
    free(shell_argv[2]);
    return code;
}
