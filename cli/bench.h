/* `sneck bench`: measures how fast locks are here. */
#ifndef SNK_CLI_BENCH_H
#define SNK_CLI_BENCH_H

#include "options.h"

extern const snk_usage snk_usage_bench;
int snk_cmd_bench(const snk_cli *cli, int argc, char **argv);

#endif
