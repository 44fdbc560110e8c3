/* Shell patterns over lock names. */
#ifndef SNK_STORE_GLOB_H
#define SNK_STORE_GLOB_H

#include <stdbool.h>

/*
 * Whether `name` matches `pattern`: `*` any text, `?` one character of UTF-8, `[a-z]` and `[!a-z]` one character in or
 * not in a set, `\` takes the next character as it is. All match '/' too. A NULL pattern matches everything.
 */
bool snk_glob_matches(const char *pattern, const char *name);

#endif
