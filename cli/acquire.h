/* Waiting for the locks of `run` and `hold`: with the waiting line, interrupted by signals. */
#ifndef SNK_CLI_ACQUIRE_H
#define SNK_CLI_ACQUIRE_H

#include "lock_flags.h"
#include "lockset.h"
#include "signals.h"

#define SNK_ACQUIRED (-1)

/* SNK_ACQUIRED, or the exit code: nothing is held, and it was told why. */
int snk_acquire(const snk_cli *cli, const snk_lock_flags *flags, snk_lockset *set, snk_signals *signals);

#endif
