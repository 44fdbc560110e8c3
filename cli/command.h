/* The subcommands. Each is a function in a file of its own name. */
#ifndef SNK_CLI_COMMAND_H
#define SNK_CLI_COMMAND_H

#include "options.h"

/* Runs a subcommand; argv[0] is its name. Returns the exit code of `sneck`. */
typedef int (*snk_command_fn)(const snk_cli *cli, int argc, char **argv);

typedef struct snk_command {
    const snk_usage *usage; /* NULL: end of the table */
    snk_command_fn run;
} snk_command;

/* In the order in which `sneck --help` shows them. */
extern const snk_command snk_commands[];

/* NULL when there is none. */
const snk_command *snk_command_find(const char *name);

#endif
