#include "store/redis/names.h"

#include <stdlib.h>
#include <string.h>

#include "store/glob.h"
#include "store/redis/keys.h"

void snk_names_pattern(const char *prefix, char pattern[SNK_NAMES_PATTERN_SIZE])
{
    size_t length = 0;
    pattern[length++] = '*';
    for (const char *at = prefix; *at != '\0'; at++) {
        if (strchr("*?[]\\^-", *at) != NULL)
            pattern[length++] = '\\';
        pattern[length++] = *at;
    }
    if (length > 1)
        pattern[length++] = '*';
    pattern[length] = '\0';
}

static bool add_name(snk_names *names, const char *name)
{
    if (names->count == names->capacity) {
        size_t capacity = names->capacity == 0 ? 64 : 2 * names->capacity;
        char **list = capacity > SNK_NAMES_MAX ? NULL : realloc(names->list, capacity * sizeof *list);
        if (list == NULL)
            return false;
        names->list = list;
        names->capacity = capacity;
    }
    names->list[names->count] = strdup(name);
    return names->list[names->count] != NULL && ++names->count > 0;
}

bool snk_names_add_page(snk_names *names, const redisReply *page, const char *prefix, const char *pattern)
{
    for (size_t i = 0; i < page->elements; i++) {
        const redisReply *key = page->element[i];
        char name[SNK_NAME_LENGTH_MAX + 1];
        if (key->type == REDIS_REPLY_STRING && snk_keys_name_of(key->str, (size_t)key->len, prefix, name) &&
            snk_glob_matches(pattern, name) && !add_name(names, name))
            return false;
    }
    return true;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void snk_names_sort(snk_names *names)
{
    size_t kept = 0;
    if (names->count == 0)
        return;
    qsort(names->list, names->count, sizeof *names->list, compare_names);
    for (size_t i = 0; i < names->count; i++) {
        if (kept > 0 && strcmp(names->list[i], names->list[kept - 1]) == 0)
            free(names->list[i]);
        else
            names->list[kept++] = names->list[i];
    }
    names->count = kept;
}

void snk_names_deinit(snk_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->list[i]);
    free(names->list);
}
