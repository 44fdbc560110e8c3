#include "redis/address.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define PORT_MAX 65535

bool snk_redis_address_equal(const snk_redis_address *a, const snk_redis_address *b)
{
    return a->port == b->port && strcasecmp(a->host, b->host) == 0;
}

bool snk_redis_address_set(snk_redis_address *address, const char *host, size_t length, long long port)
{
    if (length == 0 || length >= sizeof address->host || memchr(host, '\0', length) != NULL || port < 1 ||
        port > PORT_MAX)
        return false;
    memcpy(address->host, host, length);
    address->host[length] = '\0';
    address->port = (int)port;
    return true;
}

bool snk_redis_address_parse(snk_redis_address *address, const char *text, const char *from)
{
    const char *colon = strrchr(text, ':');
    if (colon == NULL)
        return false;
    char *end = NULL;
    long port = strtol(colon + 1, &end, 10);
    if (end == colon + 1 || (*end != '\0' && *end != ' '))
        return false;
    if (colon == text)
        return snk_redis_address_set(address, from, strlen(from), port);
    return snk_redis_address_set(address, text, (size_t)(colon - text), port);
}
