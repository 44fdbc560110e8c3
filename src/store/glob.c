#include "store/glob.h"

#include <stddef.h>
#include <stdint.h>

/* The character at `*text`, which moves on. Bytes that are no UTF-8 count as a character each; NUL is the end. */
static uint32_t next_character(const char **text)
{
    const unsigned char *bytes = (const unsigned char *)*text;
    uint32_t character = bytes[0];
    unsigned more = character >= 0xF0U ? 3 : character >= 0xE0U ? 2 : character >= 0xC0U ? 1 : 0;
    unsigned used = 1;
    if (more > 0) {
        uint32_t value = character & (0x3FU >> more);
        while (used <= more && (bytes[used] & 0xC0U) == 0x80U)
            value = (value << 6) | (bytes[used++] & 0x3FU);
        if (used == more + 1)
            character = value;
        else
            used = 1;
    }
    *text += used;
    return character;
}

/*
 * Whether the set that begins after '[' has the character; `*pattern` moves behind its ']'. A set without end is no
 * set: false, and the pattern stays where it is.
 */
static bool set_has(const char **pattern, uint32_t character, bool *is_set)
{
    const char *at = *pattern;
    bool negated = *at == '!' || *at == '^';
    bool found = false;
    if (negated)
        at++;
    bool first = true;
    while (*at != '\0' && (first || *at != ']')) {
        first = false;
        uint32_t low = next_character(&at);
        uint32_t high = low;
        if (at[0] == '-' && at[1] != ']' && at[1] != '\0') {
            at++;
            high = next_character(&at);
        }
        found = found || (character >= low && character <= high);
    }
    *is_set = *at == ']';
    if (*is_set)
        *pattern = at + 1;
    return *is_set && found != negated;
}

/* Matches one character of the name with one element of the pattern that is no '*'; both move on. */
static bool element_matches(const char **pattern, const char **name)
{
    uint32_t character = next_character(name);
    uint32_t element = next_character(pattern);
    if (element == '?')
        return true;
    if (element == '[') {
        bool is_set = false;
        bool has = set_has(pattern, character, &is_set);
        return is_set ? has : character == '[';
    }
    if (element == '\\' && **pattern != '\0')
        element = next_character(pattern);
    return element == character;
}

bool snk_glob_matches(const char *pattern, const char *name)
{
    if (pattern == NULL)
        return true;
    /* After a mismatch only the last star can take one character more: earlier ones need no second look. */
    const char *star = NULL;
    const char *star_name = NULL;
    while (*name != '\0') {
        if (*pattern == '*') {
            star = ++pattern;
            star_name = name;
            continue;
        }
        if (*pattern != '\0' && element_matches(&pattern, &name))
            continue;
        if (star == NULL)
            return false;
        (void)next_character(&star_name);
        pattern = star;
        name = star_name;
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == '\0';
}
