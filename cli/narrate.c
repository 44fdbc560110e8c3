#include "narrate.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "output.h"

snk_json snk_narrate_begin(const char *event)
{
    char time[SNK_TIME_TEXT_SIZE];
    snk_json json = snk_json_on(stderr);
    snk_json_open(&json, NULL, '{');
    snk_json_text(&json, "event", event);
    snk_json_text(&json, "time", snk_format_time(time, snk_wall_us() / 1000));
    return json;
}

void snk_narrate_end(snk_json *json)
{
    snk_json_close(json, '}');
    snk_json_end(json);
}

void snk_narrate_acquired(const snk_cli *cli, const char *name, uint64_t token, int64_t waited_ms)
{
    char waited[SNK_TIME_TEXT_SIZE];
    if (cli->quiet)
        return;
    if (cli->json) {
        snk_json json = snk_narrate_begin("acquired");
        snk_json_text(&json, "lock", name);
        snk_json_uint(&json, "token", token);
        snk_json_int(&json, "waited_ms", waited_ms);
        snk_narrate_end(&json);
    } else if (cli->verbose) {
        snk_say(cli, "acquired %s, token %" PRIu64 ", after %s", name, token, snk_format_duration(waited, waited_ms));
    }
}

void snk_narrate_lost(const snk_cli *cli, const char *name, const char *cause, const char *follows)
{
    if (cli->json && !cli->quiet) {
        snk_json json = snk_narrate_begin("lost");
        snk_json_text(&json, "lock", name);
        snk_json_text(&json, "cause", cause);
        snk_narrate_end(&json);
    } else {
        snk_complain(cli, "lost the lock %s: %s; %s", name, cause, follows);
    }
}

void snk_narrate_released(const snk_cli *cli, const char *name)
{
    if (cli->quiet)
        return;
    if (cli->json) {
        snk_json json = snk_narrate_begin("released");
        snk_json_text(&json, "lock", name);
        snk_narrate_end(&json);
    } else if (cli->verbose) {
        snk_say(cli, "released %s", name);
    }
}

void snk_narrate_exit(const snk_cli *cli, int code)
{
    if (!cli->json || cli->quiet)
        return;
    snk_json json = snk_narrate_begin("exit");
    snk_json_int(&json, "code", code);
    snk_narrate_end(&json);
}
