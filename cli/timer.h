/* A timer as a descriptor, on the clock of deadlines: it also counts the time that the machine sleeps. */
#ifndef SNK_CLI_TIMER_H
#define SNK_CLI_TIMER_H

#include <stdint.h>

/* -1 with errno. */
int snk_timer_open(void);

/* Readable from `at_ns` (CLOCK_BOOTTIME) on, at once when that is past; SNK_NEVER_NS: never. */
void snk_timer_set(int fd, int64_t at_ns);

#endif
