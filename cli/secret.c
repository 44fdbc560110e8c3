#include "secret.h"

#include <stdlib.h>
#include <string.h>

/* Where the password of a URL stands: [*start, *end), with its ':' before and its '@' behind. NULL: there is none. */
static const char *find_password(const char *url, const char **end)
{
    const char *authority = strstr(url, "://");
    if (authority == NULL)
        return NULL;
    authority += strlen("://");
    const char *stop = authority + strcspn(authority, "/?#");
    const char *at = NULL;
    for (const char *c = authority; c < stop; c++) {
        if (*c == '@')
            at = c; /* the last one: a password may hold others by mistake */
    }
    const char *colon = at != NULL ? memchr(authority, ':', (size_t)(at - authority)) : NULL;
    *end = at;
    return colon != NULL ? colon + 1 : NULL;
}

bool snk_secret_take_url(char *argument, char *url, size_t size)
{
    size_t length = strlen(argument);
    bool fits = length > 0 && length < size;
    if (fits)
        memcpy(url, argument, length + 1);
    const char *end = NULL;
    const char *start = find_password(argument, &end);
    if (start != NULL)
        memset(argument + (start - argument), '*', (size_t)(end - start));
    return fits;
}

char *snk_secret_strip_url(const char *url)
{
    char *copy = strdup(url);
    const char *end = NULL;
    const char *start = find_password(url, &end);
    if (copy == NULL || start == NULL)
        return copy;
    size_t from = (size_t)(start - url) - 1; /* with the ':' */
    size_t to = (size_t)(end - url);
    if (from >= 2 && url[from - 1] == '/' && url[from - 2] == '/')
        to++; /* no user either: the '@' goes too */
    memmove(copy + from, copy + to, strlen(url) - to + 1);
    return copy;
}
