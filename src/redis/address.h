/* Where a server listens. */
#ifndef SNK_REDIS_ADDRESS_H
#define SNK_REDIS_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>

#define SNK_REDIS_HOST_SIZE 256

typedef struct snk_redis_address {
    char host[SNK_REDIS_HOST_SIZE]; /* name or address, IPv6 without brackets */
    int port;
} snk_redis_address;

bool snk_redis_address_equal(const snk_redis_address *a, const snk_redis_address *b);

/* False when the host is empty or too long, or the port is none. */
bool snk_redis_address_set(snk_redis_address *address, const char *host, size_t length, long long port);

/*
 * Reads "host:port" as servers write it (the port is behind the last colon). Without a host, `from` is where the text
 * came from: the server does not know its own name, and means itself as we know it.
 */
bool snk_redis_address_parse(snk_redis_address *address, const char *text, const char *from);

#endif
