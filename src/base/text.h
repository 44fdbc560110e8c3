/*
 * Texts put together by hand, for what is made with every request: printf would cost more than all the rest of it. Each
 * returns the end of what it has written, where it has put a NUL; the caller sees to the room.
 */
#ifndef SNK_BASE_TEXT_H
#define SNK_BASE_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SNK_NUMBER_SIZE 24 /* room for any number */

static inline char *snk_text_append(char *to, const char *text, size_t length)
{
    memcpy(to, text, length);
    to[length] = '\0';
    return to + length;
}

/* `value` is not negative. */
static inline char *snk_text_number(char *to, int64_t value)
{
    char digits[SNK_NUMBER_SIZE];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    return snk_text_append(to, digits + at, sizeof digits - at);
}

/* As it stands within a JSON string; there are no control characters in it. */
static inline char *snk_text_escape(char *to, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '"' || text[i] == '\\')
            *to++ = '\\';
        *to++ = text[i];
    }
    *to = '\0';
    return to;
}

#endif
