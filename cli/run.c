#include "run.h"

#include "exit.h"
#include "output.h"

const snk_usage snk_usage_run = { .name = "run", .operands = "[flags] NAME", .summary = "" };

int snk_cmd_run(const snk_cli *given, int argc, char **argv)
{
    snk_arguments arguments;
    int code = snk_options_parse(&snk_usage_run, given, argc, argv, NULL, &arguments);
    if (code != SNK_PARSED)
        return code;
    snk_complain(&arguments.cli, "not yet");
    return SNK_EXIT_INTERNAL;
}
