/*
 * What `run` and `hold` tell on stderr while they work: with --json an object a line, {"event":…}, else a line of text
 * where it matters to people. With -q nothing.
 */
#ifndef SNK_CLI_NARRATE_H
#define SNK_CLI_NARRATE_H

#include <stdbool.h>
#include <stdint.h>

#include "json.h"
#include "options.h"

/* Begins an event, with its time; go on with snk_json_*, and end it with snk_narrate_end. */
snk_json snk_narrate_begin(const char *event);
void snk_narrate_end(snk_json *json);

void snk_narrate_acquired(const snk_cli *cli, const char *name, uint64_t token, int64_t waited_ms);

/* `cause` says why, `follows` what happens now. */
void snk_narrate_lost(const snk_cli *cli, const char *name, const char *cause, const char *follows);
void snk_narrate_released(const snk_cli *cli, const char *name);
void snk_narrate_exit(const snk_cli *cli, int code);

#endif
