#include "command.h"

#include <string.h>

#include "hold.h"
#include "run.h"

const snk_command snk_commands[] = {
    { &snk_usage_run, snk_cmd_run },
    { &snk_usage_hold, snk_cmd_hold },
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
