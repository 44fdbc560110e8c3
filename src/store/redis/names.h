/* The names of the locks whose keys SCAN has told, page by page. */
#ifndef SNK_STORE_REDIS_NAMES_H
#define SNK_STORE_REDIS_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include <hiredis/hiredis.h>

#include "base/limits.h"

#define SNK_NAMES_MAX 1000000
#define SNK_NAMES_PATTERN_SIZE (2 * SNK_PREFIX_LENGTH_MAX + 3)

typedef struct snk_names {
    char **list; /* owned, each of them too */
    size_t count;
    size_t capacity;
} snk_names;

/* A pattern for SCAN that every key of a lock matches, whichever of them it is. */
void snk_names_pattern(const char *prefix, char pattern[SNK_NAMES_PATTERN_SIZE]);

/* Adds the locks of a page of keys whose names match the pattern. False when out of memory, or there are too many. */
bool snk_names_add_page(snk_names *names, const redisReply *page, const char *prefix, const char *pattern);

/* Sorts them, and leaves each in once: SCAN may tell a key twice, and a lock has several. */
void snk_names_sort(snk_names *names);

void snk_names_deinit(snk_names *names);

#endif
