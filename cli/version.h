/* `sneck version get|bump NAME` */
#ifndef SNK_CLI_VERSION_H
#define SNK_CLI_VERSION_H

#include "options.h"

extern const snk_usage snk_usage_version;
int snk_cmd_version(const snk_cli *given, int argc, char **argv);

#endif
