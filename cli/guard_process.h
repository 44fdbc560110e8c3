/* The guard process itself. */
#ifndef SNK_CLI_GUARD_PROCESS_H
#define SNK_CLI_GUARD_PROCESS_H

/* Runs `sneck __guard`; returns its exit code, which nobody reads. */
int snk_guard_process(void);

#endif
