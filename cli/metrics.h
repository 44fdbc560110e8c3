#ifndef SNK_CLI_METRICS_H
#define SNK_CLI_METRICS_H

#include "options.h"

extern const snk_usage snk_usage_metrics;
int snk_cmd_metrics(const snk_cli *given, int argc, char **argv);

#endif
