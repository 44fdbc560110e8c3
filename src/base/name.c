#include "base/name.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"

/*
 * Reads one character. Returns its length in bytes, or 0 when it is not UTF-8: also when it is longer than it need be,
 * is half of a surrogate pair or is beyond the last character. The text ends in NUL, which no continuation byte is.
 */
static size_t read_character(const unsigned char *at, uint32_t *character_out)
{
    static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
    size_t length = at[0] < 0x80 ? 1 : at[0] >= 0xF0 ? 4 : at[0] >= 0xE0 ? 3 : at[0] >= 0xC0 ? 2 : 0;
    if (length == 0 || at[0] > 0xF4)
        return 0;
    uint32_t character = length == 1 ? at[0] : at[0] & (0x7FU >> length);
    for (size_t i = 1; i < length; i++) {
        if ((at[i] & 0xC0U) != 0x80U)
            return 0;
        character = character << 6 | (at[i] & 0x3FU);
    }
    if (character < smallest[length] || character > 0x10FFFF || (character >= 0xD800 && character <= 0xDFFF))
        return 0;
    *character_out = character;
    return length;
}

static bool is_control(uint32_t character)
{
    return character < 0x20 || (character >= 0x7F && character <= 0x9F);
}

sneck_status snk_text_check(const char *text, const char *what, size_t length_min, size_t length_max,
                            sneck_error *error)
{
    if (text == NULL)
        return snk_fail(error, SNECK_INVALID, 0, "%s is NULL: give a text of %zu to %zu bytes", what, length_min,
                        length_max);
    size_t length = strnlen(text, length_max + 1);
    if (length < length_min)
        return snk_fail(error, SNECK_INVALID, 0, "%s is empty: give 1 to %zu bytes", what, length_max);
    if (length > length_max)
        return snk_fail(error, SNECK_INVALID, 0, "%s is longer than %zu bytes: use a shorter one", what, length_max);
    const unsigned char *start = (const unsigned char *)text;
    for (const unsigned char *at = start; *at != '\0';) {
        uint32_t character = 0;
        size_t bytes = read_character(at, &character);
        if (bytes == 0)
            return snk_fail(error, SNECK_INVALID, 0, "%s is not UTF-8 at byte %zu", what, (size_t)(at - start));
        if (is_control(character))
            return snk_fail(error, SNECK_INVALID, 0,
                            "%s has a control character at byte %zu: leave it out, or encode it", what,
                            (size_t)(at - start));
        at += bytes;
    }
    return snk_ok(error);
}

sneck_status snk_name_check(const char *name, sneck_error *error)
{
    return snk_text_check(name, "the lock's name", 1, SNK_NAME_LENGTH_MAX, error);
}
