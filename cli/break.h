/* `sneck break`: takes a lock away from its holder by force. */
#ifndef SNK_CLI_BREAK_H
#define SNK_CLI_BREAK_H

#include "options.h"

extern const snk_usage snk_usage_break;
int snk_cmd_break(const snk_cli *cli, int argc, char **argv);

#endif
