/* `sneck test`: tells whether a lock is free. */
#ifndef SNK_CLI_TEST_H
#define SNK_CLI_TEST_H

#include "options.h"

extern const snk_usage snk_usage_test;
int snk_cmd_test(const snk_cli *cli, int argc, char **argv);

#endif
