/* `sneck completion`: prints a script that completes commands, flags and names. */
#ifndef SNK_CLI_COMPLETION_H
#define SNK_CLI_COMPLETION_H

#include "options.h"

extern const snk_usage snk_usage_completion;
int snk_cmd_completion(const snk_cli *cli, int argc, char **argv);

#endif
