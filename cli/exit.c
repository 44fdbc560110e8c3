#include "exit.h"

#include <signal.h>

int snk_exit_of(sneck_status status)
{
    switch (status) {
    case SNECK_OK:
        return SNK_EXIT_OK;
    case SNECK_BUSY:
    case SNECK_TIMEOUT:
        return SNK_EXIT_BUSY;
    case SNECK_CANCELED:
        return SNK_EXIT_SIGNAL + SIGINT;
    case SNECK_LOST:
        return SNK_EXIT_LOST;
    case SNECK_CONFLICT:
        return SNK_EXIT_CONFLICT;
    case SNECK_UNAVAILABLE:
    case SNECK_UNKNOWN:
    case SNECK_LIMIT: /* one of the store's: the command itself comes nowhere near the library's */
        return SNK_EXIT_UNAVAILABLE;
    case SNECK_DENIED:
        return SNK_EXIT_DENIED;
    case SNECK_INVALID:
    case SNECK_DEADLOCK:
        return SNK_EXIT_USAGE;
    case SNECK_UNSUPPORTED:
        return SNK_EXIT_CONFIG;
    case SNECK_NOT_OWNER:
    case SNECK_NO_MEMORY:
        return SNK_EXIT_INTERNAL;
    }
    return SNK_EXIT_INTERNAL; /* not a status at all */
}

int snk_exit_of_open(sneck_status status)
{
    return status == SNECK_INVALID ? SNK_EXIT_CONFIG : snk_exit_of(status);
}
