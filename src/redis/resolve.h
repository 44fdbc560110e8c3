/*
 * Looking a name up, with a time limit. getaddrinfo has none, and cannot be interrupted: a lookup that takes too long
 * is left to a thread of its own, which frees the answer when it comes and touches nothing else.
 */
#ifndef SNK_REDIS_RESOLVE_H
#define SNK_REDIS_RESOLVE_H

#include <netdb.h>

#include "sneck.h"

/* Free the result with freeaddrinfo. Addresses in digits are not looked up. */
sneck_status snk_redis_resolve(const char *host, const char *port, int stop_fd, int64_t until_ns,
                               struct addrinfo **addresses_out, sneck_error *error);

#endif
