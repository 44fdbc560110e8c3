/*
 * The command line: flags that every subcommand has, flags of one subcommand as a table, and operands.
 *
 *     struct options { int64_t wait_ms; bool nonblock; };
 *     static const snk_flag flags[] = {
 *         { 'w', "wait", "DUR", "wait at most so long", SNK_FLAG_DURATION, offsetof(struct options, wait_ms) },
 *         { 'n', "nonblock", NULL, "do not wait", SNK_FLAG_SWITCH, offsetof(struct options, nonblock) },
 *         { 0 },
 *     };
 *     const snk_usage snk_usage_test = { .name = "test", .operands = "NAME", .summary = "…", .flags = flags };
 *
 *     int snk_cmd_test(const snk_cli *given, int argc, char **argv)
 *     {
 *         struct options options = { .wait_ms = 0 };
 *         snk_arguments arguments;
 *         int code = snk_options_parse(&snk_usage_test, given, argc, argv, &options, &arguments);
 *         if (code != SNK_PARSED)
 *             return code;
 *         …arguments.cli, arguments.operands…
 */
#ifndef SNK_CLI_OPTIONS_H
#define SNK_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"

/* The flags that every subcommand has. They may stand before and after the subcommand. */
typedef struct snk_cli {
    char store[SNK_URL_LENGTH_MAX + 1]; /* --store, perhaps with a password; "": not given. Use snk_cli_open_store */
    bool json;
    bool quiet;
    bool verbose;
} snk_cli;

typedef enum snk_flag_kind {
    SNK_FLAG_SWITCH,   /* bool: set to true */
    SNK_FLAG_OFF,      /* bool: set to false */
    SNK_FLAG_TEXT,     /* const char *: points into argv */
    SNK_FLAG_DURATION, /* int64_t: milliseconds, from min to max */
    SNK_FLAG_NUMBER,   /* int64_t: from min to max */
    SNK_FLAG_TOKEN,    /* uint64_t: 1 or more */
    SNK_FLAG_CALL,     /* `parse` decides */
    SNK_FLAG_IGNORED   /* accepted, without effect */
} snk_flag_kind;

/* Fills the options from the value of a flag; false with what is allowed in `problem` ("must be …"). */
typedef bool (*snk_flag_parse_fn)(void *options, const char *value, char *problem, size_t problem_size);

/* The fields stand in the order in which tables are read. */
typedef struct snk_flag { // NOLINT(clang-analyzer-optin.performance.Padding)
    char letter;          /* 0: none */
    const char *name;     /* long form without "--"; NULL: none. A table ends with neither */
    const char *value;    /* what --help and messages call its value; NULL: it has none */
    const char *help;     /* NULL: another spelling, not shown by --help */
    snk_flag_kind kind;
    size_t offset; /* of the field in the subcommand's options */
    int64_t min;
    int64_t max; /* for DURATION and NUMBER; 0: no limit */
    snk_flag_parse_fn parse;
} snk_flag;

typedef struct snk_usage {
    const char *name;
    const char *operands;  /* such as "[flags] NAME [--] COMMAND [ARGUMENT...]"; "" when there are none */
    const char *summary;   /* one line for `sneck --help` */
    const char *notes;     /* more for `sneck NAME --help`; NULL: none */
    const snk_flag *flags; /* ends with an empty one; NULL: none */
    bool has_command;      /* what follows the first operand is a command with flags of its own */
} snk_usage;

/* What snk_options_parse found. The operands point into argv. */
typedef struct snk_arguments {
    snk_cli cli;
    char **operands; /* ends with NULL */
    int count;
} snk_arguments;

#define SNK_PARSED (-1)

/*
 * Reads argv[1…] of a subcommand: fills `options` by the table of `usage`, and `arguments_out`. Flags and operands may
 * be mixed (with has_command: until the second operand); "--" ends the flags. SNK_PARSED, or the exit code when help or
 * the version was asked for, or when it complained. Reorders argv.
 */
int snk_options_parse(const snk_usage *usage, const snk_cli *given, int argc, char **argv, void *options,
                      snk_arguments *arguments_out);

/* As above for what stands before the subcommand: stops at the first operand. */
int snk_options_parse_common(int argc, char **argv, snk_arguments *arguments_out);

/* The flags that every subcommand has, as a table, for --help and completion. */
extern const snk_flag snk_common_flags[];

/* True when the table goes on. */
static inline bool snk_flag_is_set(const snk_flag *flag)
{
    return flag->letter != 0 || flag->name != NULL;
}

/* Complains that the number of operands is wrong, and returns the exit code for it. */
int snk_operands_wrong(const snk_usage *usage, const snk_arguments *arguments);

#endif
