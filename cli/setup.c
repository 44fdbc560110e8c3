#include "setup.h"

#include <stdio.h>

#include "client/setup.h"
#include "exit.h"
#include "json.h"
#include "open_store.h"
#include "output.h"

struct options {
    bool sql;
};

static const snk_flag flags[] = {
    { 0, "sql", NULL, "print the statements instead of running them", SNK_FLAG_SWITCH, offsetof(struct options, sql), 0,
      0, NULL },
    { 0 },
};

const snk_usage snk_usage_setup = {
    .name = "setup",
    .operands = "[flags]",
    .summary = "make what a store needs: tables and functions on an SQL server",
    .notes = "It may be run again: what is there stays, or is brought up to date. Other stores need no preparation.",
    .flags = flags,
};

/* Into the database or onto paper: only one of them is wanted. */
static int print_statements(const snk_cli *cli)
{
    sneck_error error;
    const char *text = snk_setup_text(snk_cli_store_url(cli), &error);
    if (error.status != SNECK_OK) {
        snk_report(cli, &error);
        return snk_exit_of_open(error.status);
    }
    fputs(text == NULL ? "" : text, stdout);
    return SNK_EXIT_OK;
}

static int set_up(const snk_cli *cli)
{
    sneck_error error;
    bool needed = false;
    sneck_status status = snk_setup(snk_cli_store_url(cli), &needed, &error);
    if (status != SNECK_OK) {
        snk_report(cli, &error);
        return snk_exit_of_open(status);
    }
    if (cli->json) {
        snk_json json = snk_json_on(stdout);
        snk_json_open(&json, NULL, '{');
        snk_json_bool(&json, "needed", needed);
        snk_json_close(&json, '}');
        snk_json_end(&json);
    }
    snk_say(cli, needed ? "the store is ready" : "this store needs no preparation");
    return SNK_EXIT_OK;
}

int snk_cmd_setup(const snk_cli *given, int argc, char **argv)
{
    struct options options = { .sql = false };
    snk_arguments arguments;
    int code = snk_options_parse(&snk_usage_setup, given, argc, argv, &options, &arguments);
    if (code != SNK_PARSED)
        return code;
    if (arguments.count != 0)
        return snk_operands_wrong(&snk_usage_setup, &arguments);
    return options.sql ? print_statements(&arguments.cli) : set_up(&arguments.cli);
}
