/* `sneck setup`: makes what a store needs. */
#ifndef SNK_CLI_SETUP_H
#define SNK_CLI_SETUP_H

#include "options.h"

extern const snk_usage snk_usage_setup;
int snk_cmd_setup(const snk_cli *cli, int argc, char **argv);

#endif
