/* `sneck run`: a command under a lock. */
#ifndef SNK_CLI_RUN_H
#define SNK_CLI_RUN_H

#include "options.h"

extern const snk_usage snk_usage_run;
int snk_cmd_run(const snk_cli *cli, int argc, char **argv);

#endif
