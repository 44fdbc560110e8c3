#include "base/utf8.h"

/* The NUL at the end is no continuation byte, so nothing is read beyond it. */
size_t snk_utf8_read(const char *text, uint32_t *character_out)
{
    static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
    const unsigned char *at = (const unsigned char *)text;
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
