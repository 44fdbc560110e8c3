/* Reading UTF-8. */
#ifndef SNK_BASE_UTF8_H
#define SNK_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/*
 * Reads one character of `text`, which ends in NUL (and is not at it): its length in bytes, or 0 when it is not UTF-8:
 * also when it is longer than it need be, is half of a surrogate pair or is beyond the last character.
 */
size_t snk_utf8_read(const char *text, uint32_t *character_out);

#endif
