/* What every subcommand says in the same way: times, complaints and errors. Ours goes to stderr. */
#ifndef SNK_CLI_OUTPUT_H
#define SNK_CLI_OUTPUT_H

#include <stddef.h>
#include <stdint.h>

#include "options.h"
#include "sneck.h"

#define SNK_TIME_TEXT_SIZE 32

/* "250ms", "7.2s", "48s", "3m12s", "2h05m", "3d04h"; negative times count as 0. Returns `buffer`. */
const char *snk_format_duration(char buffer[SNK_TIME_TEXT_SIZE], int64_t ms);

/* "2026-01-31T14:02:11.250Z". Returns `buffer`. */
const char *snk_format_time(char buffer[SNK_TIME_TEXT_SIZE], int64_t epoch_ms);

/*
 * "sneck: <text>" on stderr, or with --json the line {"event":"error","message":<text>}. Always printed, also with -q.
 * The text is escaped as a whole: it may hold names as they are.
 */
void snk_complain(const snk_cli *cli, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same for an error of the library; with --json it also tells the status. */
void snk_report(const snk_cli *cli, const sneck_error *error);

/* "sneck: <text>" on stderr, for information: nothing with -q or --json. */
void snk_say(const snk_cli *cli, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
