/* Bytes that grow. */
#ifndef SNK_REDIS_BYTES_H
#define SNK_REDIS_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef struct snk_redis_bytes {
    char *data; /* owned */
    size_t length;
    size_t capacity;
} snk_redis_bytes;

#define SNK_REDIS_BYTES_FIRST 4096

/* False when there is no memory: nothing was added. */
static inline bool snk_redis_bytes_add(snk_redis_bytes *bytes, const char *data, size_t length)
{
    if (bytes->data == NULL || bytes->capacity - bytes->length < length) {
        size_t capacity = bytes->capacity > 0 ? bytes->capacity : SNK_REDIS_BYTES_FIRST;
        while (capacity - bytes->length < length)
            capacity *= 2;
        char *grown = realloc(bytes->data, capacity);
        if (grown == NULL)
            return false;
        bytes->data = grown;
        bytes->capacity = capacity;
    }
    memcpy(bytes->data + bytes->length, data, length);
    bytes->length += length;
    return true;
}

static inline void snk_redis_bytes_free(snk_redis_bytes *bytes)
{
    free(bytes->data);
    *bytes = (snk_redis_bytes){ 0 };
}

#endif
