#include "latch.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "exit.h"
#include "json.h"
#include "lock_info.h"
#include "open_store.h"
#include "output.h"
#include "sneck.h"

struct options {
    int64_t count;
    int64_t wait_ms;
};

static const snk_flag flags[] = {
    { 'c', "count", "N", "set: what is to be counted down (1)", SNK_FLAG_NUMBER, offsetof(struct options, count), 1,
      INT32_MAX, NULL },
    { 'w', "wait", "DUR", "wait: at most so long", SNK_FLAG_DURATION, offsetof(struct options, wait_ms), 0, 0, NULL },
    { 0 },
};

const snk_usage snk_usage_latch = {
    .name = "latch",
    .operands = "set|down|wait|count NAME",
    .summary = "count down, and wait until it is done",
    .notes =
        "set begins a new round with a count, and ends with 1 while the last one is not over. down counts by one.\n"
        "wait ends with 0 once the count is 0, and with 75 if that took too long. count prints what is left.",
    .flags = flags,
};

static sneck_status print_count(const snk_cli *cli, sneck_latch *latch, const char *name, sneck_error *error)
{
    int64_t count = 0;
    sneck_status status = sneck_latch_count(latch, &count, error);
    if (status != SNECK_OK)
        return status;
    if (cli->json) {
        snk_json json = snk_json_on(stdout);
        snk_json_open(&json, NULL, '{');
        snk_json_text(&json, "name", name);
        snk_json_int(&json, "count", count);
        snk_json_close(&json, '}');
        snk_json_end(&json);
    } else {
        printf("%" PRId64 "\n", count);
    }
    return SNECK_OK;
}

static bool is_verb(const char *verb)
{
    return strcmp(verb, "set") == 0 || strcmp(verb, "down") == 0 || strcmp(verb, "wait") == 0 ||
           strcmp(verb, "count") == 0;
}

static sneck_status act(const snk_cli *cli, sneck_latch *latch, char *const operands[], const struct options *options,
                        sneck_error *error)
{
    const char *verb = operands[0];
    if (strcmp(verb, "set") == 0)
        return sneck_latch_set(latch, options->count, error);
    if (strcmp(verb, "down") == 0)
        return sneck_latch_count_down(latch, error);
    if (strcmp(verb, "wait") == 0)
        return sneck_latch_wait(latch, options->wait_ms, error);
    return print_count(cli, latch, operands[1], error);
}

int snk_cmd_latch(const snk_cli *given, int argc, char **argv)
{
    struct options options = { .count = 1, .wait_ms = SNECK_FOREVER };
    snk_arguments arguments;
    sneck_client *client = NULL;
    sneck_latch *latch = NULL;
    sneck_error error;
    int code = snk_options_parse(&snk_usage_latch, given, argc, argv, &options, &arguments);
    if (code != SNK_PARSED)
        return code;
    if (arguments.count != 2 || !is_verb(arguments.operands[0]))
        return snk_operands_wrong(&snk_usage_latch, &arguments);
    code = snk_lock_name_check(&arguments.cli, arguments.operands[1]);
    if (code == SNK_EXIT_OK)
        code = snk_cli_open_store(&arguments.cli, NULL, &client);
    if (code != SNK_EXIT_OK)
        return code;
    sneck_status status = sneck_latch_open(client, arguments.operands[1], NULL, &latch, &error);
    if (status == SNECK_OK)
        status = act(&arguments.cli, latch, arguments.operands, &options, &error);
    if (status != SNECK_OK)
        snk_report(&arguments.cli, &error);
    sneck_latch_free(latch);
    sneck_close(client);
    return snk_exit_of(status);
}
