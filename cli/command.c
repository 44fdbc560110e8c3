#include "command.h"

#include <string.h>

#include "bench.h"
#include "break.h"
#include "completion.h"
#include "demo.h"
#include "hold.h"
#include "latch.h"
#include "ls.h"
#include "metrics.h"
#include "run.h"
#include "show.h"
#include "test.h"
#include "version.h"

const snk_command snk_commands[] = {
    { &snk_usage_run, snk_cmd_run },
    { &snk_usage_hold, snk_cmd_hold },
    { &snk_usage_test, snk_cmd_test },
    { &snk_usage_ls, snk_cmd_ls },
    { &snk_usage_show, snk_cmd_show },
    { &snk_usage_break, snk_cmd_break },
    { &snk_usage_latch, snk_cmd_latch },
    { &snk_usage_version, snk_cmd_version },
    { &snk_usage_metrics, snk_cmd_metrics },
    { &snk_usage_demo, snk_cmd_demo },
    { &snk_usage_bench, snk_cmd_bench },
    { &snk_usage_completion, snk_cmd_completion },
    { NULL, NULL },
};

const snk_command *snk_command_find(const char *name)
{
    for (const snk_command *command = snk_commands; command->usage != NULL; command++) {
        if (strcmp(command->usage->name, name) == 0)
            return command;
    }
    return NULL;
}
