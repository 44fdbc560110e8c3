#include "test.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>

#include "base/clock.h"
#include "escape.h"
#include "exit.h"
#include "json.h"
#include "lock_info.h"
#include "output.h"
#include "open_store.h"

/*
 * How often -w looks. It looks and does not queue: a test that took its turn would hold the lock for a moment, and
 * could make another's `run -n` fail.
 */
#define LOOK_MS 50
#define WAIT_MS_MAX (INT64_C(366) * 24 * 3600 * 1000)
#define TEXT_SIZE 900

struct options {
    int64_t wait_ms;
};

static const snk_flag flags[] = {
    { 'w', "wait", "DUR", "wait at most so long until it is free", SNK_FLAG_DURATION, offsetof(struct options, wait_ms),
      0, WAIT_MS_MAX, NULL },
    { 0 },
};

const snk_usage snk_usage_test = {
    .name = "test",
    .operands = "[-w DUR] NAME",
    .summary = "tell whether a lock is free",
    .notes = "Exit code 0: free; 75: held, and the holder is printed. It may have changed when you read it: to do\n"
             "something only if a lock is free, use sneck run -n.",
    .flags = flags,
};

static void print(const snk_cli *cli, const sneck_info *info)
{
    char party[SNK_PARTY_TEXT_SIZE];
    char text[TEXT_SIZE];
    char age[SNK_TIME_TEXT_SIZE];
    char left[SNK_TIME_TEXT_SIZE];
    if (cli->json) {
        snk_json json = snk_json_on(stdout);
        snk_lock_info_json(&json, info, false);
        snk_json_end(&json);
        return;
    }
    if (cli->quiet)
        return;
    if (!info->held) {
        puts("free");
        return;
    }
    printf("held by %s for %s, %s left, token %" PRIu64,
           snk_escape(text, sizeof text, snk_party_text(party, &info->holder)),
           snk_format_duration(age, info->holder.age_ms), snk_format_duration(left, info->holder.remaining_ms),
           info->token);
    if (info->holder.why[0] != '\0')
        printf(": %s", snk_escape(text, sizeof text, info->holder.why));
    putchar('\n');
}

static int look(const snk_cli *cli, sneck_client *client, const char *name, int64_t wait_ms)
{
    int64_t until_ns = snk_time_add(snk_now_ns(), wait_ms * SNK_NS_PER_MS);
    for (;;) {
        sneck_info *info = NULL;
        sneck_error error;
        sneck_status status = sneck_inspect(client, name, &info, &error);
        if (status != SNECK_OK) {
            snk_report(cli, &error);
            return snk_exit_of(status);
        }
        bool held = info->held;
        int64_t left_ms = (until_ns - snk_now_ns()) / SNK_NS_PER_MS;
        if (!held || left_ms <= 0)
            print(cli, info);
        sneck_info_free(info);
        if (!held || left_ms <= 0)
            return held ? SNK_EXIT_BUSY : SNK_EXIT_OK;
        poll(NULL, 0, (int)(left_ms < LOOK_MS ? left_ms : LOOK_MS));
    }
}

int snk_cmd_test(const snk_cli *given, int argc, char **argv)
{
    struct options options = { .wait_ms = 0 };
    snk_arguments arguments;
    sneck_client *client = NULL;
    int code = snk_options_parse(&snk_usage_test, given, argc, argv, &options, &arguments);
    if (code != SNK_PARSED)
        return code;
    if (arguments.count != 1)
        return snk_operands_wrong(&snk_usage_test, &arguments);
    code = snk_lock_name_check(&arguments.cli, arguments.operands[0]);
    if (code == SNK_EXIT_OK)
        code = snk_cli_open_store(&arguments.cli, NULL, &client);
    if (code != SNK_EXIT_OK)
        return code;
    code = look(&arguments.cli, client, arguments.operands[0], options.wait_ms);
    sneck_close(client);
    return code;
}
