/* `sneck latch set|down|wait|count NAME` */
#ifndef SNK_CLI_LATCH_H
#define SNK_CLI_LATCH_H

#include "options.h"

extern const snk_usage snk_usage_latch;
int snk_cmd_latch(const snk_cli *given, int argc, char **argv);

#endif
