/* `sneck demo`: shows what locks, leases and tokens are for. */
#ifndef SNK_CLI_DEMO_H
#define SNK_CLI_DEMO_H

#include "options.h"

extern const snk_usage snk_usage_demo;
int snk_cmd_demo(const snk_cli *cli, int argc, char **argv);

#endif
