/* `sneck show --deadlocks`: circles of processes that wait for each other. */
#ifndef SNK_CLI_DEADLOCKS_H
#define SNK_CLI_DEADLOCKS_H

#include "options.h"
#include "sneck.h"

/* Prints them; the exit code is 1 when there are some. */
int snk_show_deadlocks(const snk_cli *cli, sneck_client *client);

#endif
