/* `sneck ls`: lists the locks that are held or waited for. */
#ifndef SNK_CLI_LS_H
#define SNK_CLI_LS_H

#include "options.h"

extern const snk_usage snk_usage_ls;
int snk_cmd_ls(const snk_cli *cli, int argc, char **argv);

#endif
