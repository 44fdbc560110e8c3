/* The exit codes of `sneck`: part of what people and scripts rely on. */
#ifndef SNK_CLI_EXIT_H
#define SNK_CLI_EXIT_H

#include "sneck.h"

typedef enum snk_exit {
    SNK_EXIT_OK = 0,
    SNK_EXIT_CONFLICT = 1,         /* `break`: the token is not the current one; `show`: there are deadlocks */
    SNK_EXIT_USAGE = 64,           /* wrong flags, names or durations */
    SNK_EXIT_UNAVAILABLE = 69,     /* the store cannot be reached or takes no more, or its answer never came */
    SNK_EXIT_INTERNAL = 70,        /* something that should not happen here: no memory, no processes, a bug */
    SNK_EXIT_BUSY = 75,            /* not acquired: busy or timed out */
    SNK_EXIT_DENIED = 77,          /* refused by the store's access rules */
    SNK_EXIT_CONFIG = 78,          /* a bad URL or configuration */
    SNK_EXIT_LOST = 79,            /* the lock was lost while it was needed */
    SNK_EXIT_CANNOT_EXECUTE = 126, /* the command is there and cannot be executed */
    SNK_EXIT_NOT_FOUND = 127,      /* there is no such command */
    SNK_EXIT_SIGNAL = 128          /* + n: ended by signal n */
} snk_exit;

/* The exit code for what a call on a client or lock returned. SNECK_CANCELED is SIGINT's: nothing else cancels here. */
int snk_exit_of(sneck_status status);

/* The same for sneck_open, where a wrong argument is a bad URL or configuration. */
int snk_exit_of_open(sneck_status status);

#endif
