#include "break.h"

#include <inttypes.h>
#include <stdio.h>

#include "exit.h"
#include "json.h"
#include "lock_info.h"
#include "output.h"
#include "open_store.h"

struct options {
    uint64_t token;
    const char *reason;
};

static const snk_flag flags[] = {
    { 0, "token", "N", "the token of the hold to end, as sneck show prints it", SNK_FLAG_TOKEN,
      offsetof(struct options, token), 0, 0, NULL },
    { 0, "reason", "TEXT", "why; kept beside the lock", SNK_FLAG_TEXT, offsetof(struct options, reason), 0, 0, NULL },
    { 0 },
};

const snk_usage snk_usage_break = {
    .name = "break",
    .operands = "NAME --token N --reason TEXT",
    .summary = "take a lock away from its holder by force",
    .notes =
        "The holder is told at its next renewal at the latest: until then it may still work. Only a resource that\n"
        "checks tokens is safe from it. Exit code 1: the token is not the current one, and nothing was done.",
    .flags = flags,
};

static int break_lock(const snk_cli *cli, sneck_client *client, const char *name, const struct options *options)
{
    sneck_error error;
    sneck_status status = sneck_break(client, name, options->token, options->reason, &error);
    if (status != SNECK_OK) {
        snk_report(cli, &error);
        return snk_exit_of(status);
    }
    if (cli->json) {
        snk_json json = snk_json_on(stdout);
        snk_json_open(&json, NULL, '{');
        snk_json_text(&json, "name", name);
        snk_json_uint(&json, "broken_token", options->token);
        snk_json_text(&json, "reason", options->reason);
        snk_json_close(&json, '}');
        snk_json_end(&json);
    }
    snk_say(cli, "broke %s, which was held with token %" PRIu64, name, options->token);
    return SNK_EXIT_OK;
}

int snk_cmd_break(const snk_cli *given, int argc, char **argv)
{
    struct options options = { .token = 0 };
    snk_arguments arguments;
    sneck_client *client = NULL;
    int code = snk_options_parse(&snk_usage_break, given, argc, argv, &options, &arguments);
    if (code != SNK_PARSED)
        return code;
    if (arguments.count != 1 || options.token == 0 || options.reason == NULL)
        return snk_operands_wrong(&snk_usage_break, &arguments);
    code = snk_lock_name_check(&arguments.cli, arguments.operands[0]);
    if (code == SNK_EXIT_OK)
        code = snk_cli_open_store(&arguments.cli, NULL, &client);
    if (code != SNK_EXIT_OK)
        return code;
    code = break_lock(&arguments.cli, client, arguments.operands[0], &options);
    sneck_close(client);
    return code;
}
