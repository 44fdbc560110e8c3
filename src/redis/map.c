#include "redis/map.h"

#include <stdlib.h>
#include <string.h>

static bool is_number(const redisReply *reply, long long least, long long most)
{
    return reply->type == REDIS_REPLY_INTEGER && reply->integer >= least && reply->integer <= most;
}

/* A server that does not know its own name or address says so, and means the one we asked. */
static bool read_address(const redisReply *server, const char *from, snk_redis_address *address)
{
    if (server->type != REDIS_REPLY_ARRAY || server->elements < 2 || !is_number(server->element[1], 1, 65535))
        return false;
    const redisReply *host = server->element[0];
    bool nameless = host->type == REDIS_REPLY_NIL ||
                    (host->type == REDIS_REPLY_STRING && (host->len == 0 || strcmp(host->str, "?") == 0));
    if (!nameless && host->type != REDIS_REPLY_STRING)
        return false;
    return snk_redis_address_set(address, nameless ? from : host->str, nameless ? strlen(from) : (size_t)host->len,
                                 server->element[1]->integer);
}

static bool read_range(const redisReply *reply, const char *from, snk_map_range *range)
{
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements < 3 ||
        !is_number(reply->element[0], 0, SNK_REDIS_SLOTS - 1) ||
        !is_number(reply->element[1], reply->element[0]->integer, SNK_REDIS_SLOTS - 1))
        return false;
    range->first = (uint16_t)reply->element[0]->integer;
    range->last = (uint16_t)reply->element[1]->integer;
    range->replicas = (unsigned)reply->elements - 3;
    return read_address(reply->element[2], from, &range->address);
}

snk_map_range *snk_map_read(const redisReply *reply, const char *from, size_t *count_out, size_t *slots_out)
{
    *count_out = 0;
    *slots_out = 0;
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements == 0 || reply->elements > SNK_REDIS_SLOTS)
        return NULL;
    snk_map_range *ranges = calloc(reply->elements, sizeof *ranges);
    if (ranges == NULL)
        return NULL;
    for (size_t i = 0; i < reply->elements; i++) {
        if (!read_range(reply->element[i], from, &ranges[i])) {
            free(ranges);
            return NULL;
        }
        *slots_out += (size_t)(ranges[i].last - ranges[i].first) + 1;
    }
    *count_out = reply->elements;
    return ranges;
}
