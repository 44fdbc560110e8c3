/* `sneck show`: what the store knows about one lock. */
#ifndef SNK_CLI_SHOW_H
#define SNK_CLI_SHOW_H

#include "options.h"

extern const snk_usage snk_usage_show;
int snk_cmd_show(const snk_cli *cli, int argc, char **argv);

#endif
