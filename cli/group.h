/* The process group of a command. */
#ifndef SNK_CLI_GROUP_H
#define SNK_CLI_GROUP_H

#include <stdbool.h>
#include <sys/types.h>

/* Sends a signal to every process of the group; one that is gone is no mistake. */
void snk_group_signal(pid_t group, int number);

/*
 * True when no process of the group runs any more. Dead processes that nobody has waited for yet do not count: whoever
 * should do so may be stopped.
 */
bool snk_group_is_gone(pid_t group);

/*
 * True when the caller's own group has other members than the caller and its ancestors, such as the rest of a pipeline.
 */
bool snk_group_has_company(void);

#endif
