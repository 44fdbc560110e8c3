/* What --help and --version print, on stdout. */
#ifndef SNK_CLI_HELP_H
#define SNK_CLI_HELP_H

#include "options.h"

/* The help of one subcommand; NULL: of `sneck` itself. */
void snk_help_print(const snk_usage *usage);
void snk_version_print(const snk_cli *cli);

#endif
