/* `sneck hold`: holds a lock until its stdin ends. */
#ifndef SNK_CLI_HOLD_H
#define SNK_CLI_HOLD_H

#include "options.h"

extern const snk_usage snk_usage_hold;
int snk_cmd_hold(const snk_cli *cli, int argc, char **argv);

#endif
