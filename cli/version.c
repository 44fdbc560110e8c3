#include "version.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exit.h"
#include "json.h"
#include "lock_info.h"
#include "open_store.h"
#include "output.h"
#include "sneck.h"

struct options {
    uint64_t expected;
    bool is_given;
};

static bool parse_expected(void *given, const char *value, char *problem, size_t size)
{
    struct options *options = given;
    char *end = NULL;
    errno = 0;
    options->expected = strtoull(value, &end, 10);
    options->is_given = errno == 0 && end != value && *end == '\0' && value[0] != '-';
    if (!options->is_given)
        snprintf(problem, size, "must be a version, as sneck version get prints it");
    return options->is_given;
}

static const snk_flag flags[] = {
    { 0, "expected", "N", "bump: only if this is the version", SNK_FLAG_CALL, 0, 0, 0, parse_expected },
    { 0 },
};

const snk_usage snk_usage_version = {
    .name = "version",
    .operands = "get NAME | bump NAME --expected N",
    .summary = "read a version, or raise it if nobody else did",
    .notes = "A name that was never bumped has version 0. bump ends with 1 when the version is another one by now.",
    .flags = flags,
};

static void print(const snk_cli *cli, const char *name, uint64_t version)
{
    if (!cli->json) {
        printf("%" PRIu64 "\n", version);
        return;
    }
    snk_json json = snk_json_on(stdout);
    snk_json_open(&json, NULL, '{');
    snk_json_text(&json, "name", name);
    snk_json_uint(&json, "version", version);
    snk_json_close(&json, '}');
    snk_json_end(&json);
}

static sneck_status act(const snk_cli *cli, sneck_client *client, char *const operands[], const struct options *options,
                        sneck_error *error)
{
    uint64_t version = 0;
    if (strcmp(operands[0], "bump") == 0)
        return sneck_version_bump(client, operands[1], options->expected, error);
    sneck_status status = sneck_version_get(client, operands[1], &version, error);
    if (status == SNECK_OK)
        print(cli, operands[1], version);
    return status;
}

int snk_cmd_version(const snk_cli *given, int argc, char **argv)
{
    struct options options = { .is_given = false };
    snk_arguments arguments;
    sneck_client *client = NULL;
    sneck_error error;
    int code = snk_options_parse(&snk_usage_version, given, argc, argv, &options, &arguments);
    if (code != SNK_PARSED)
        return code;
    bool gets = arguments.count == 2 && strcmp(arguments.operands[0], "get") == 0;
    bool bumps = arguments.count == 2 && strcmp(arguments.operands[0], "bump") == 0 && options.is_given;
    if (!gets && !bumps)
        return snk_operands_wrong(&snk_usage_version, &arguments);
    code = snk_lock_name_check(&arguments.cli, arguments.operands[1]);
    if (code == SNK_EXIT_OK)
        code = snk_cli_open_store(&arguments.cli, NULL, &client);
    if (code != SNK_EXIT_OK)
        return code;
    sneck_status status = act(&arguments.cli, client, arguments.operands, &options, &error);
    if (status != SNECK_OK)
        snk_report(&arguments.cli, &error);
    sneck_close(client);
    return snk_exit_of(status);
}
