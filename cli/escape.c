#include "escape.h"

#include <stdbool.h>
#include <string.h>

#define PIECE_SIZE 8 /* the longest escape, \uNNNN, or a character of UTF-8, and NUL */

size_t snk_utf8_read(const char *text, uint32_t *character_out)
{
    static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
    const unsigned char *bytes = (const unsigned char *)text;
    size_t length = 0;
    if (bytes[0] < 0x80) {
        *character_out = bytes[0];
        return 1;
    }
    if (bytes[0] >= 0xC2 && bytes[0] < 0xE0)
        length = 2;
    else if (bytes[0] >= 0xE0 && bytes[0] < 0xF0)
        length = 3;
    else if (bytes[0] >= 0xF0 && bytes[0] < 0xF5)
        length = 4;
    else
        return 0;
    uint32_t character = bytes[0] & (0xFFU >> (length + 1));
    for (size_t i = 1; i < length; i++) {
        if ((bytes[i] & 0xC0U) != 0x80U) /* also the NUL at the end */
            return 0;
        character = character << 6 | (bytes[i] & 0x3FU);
    }
    bool surrogate = character >= 0xD800 && character <= 0xDFFF;
    if (character < smallest[length] || surrogate || character > 0x10FFFF)
        return 0;
    *character_out = character;
    return length;
}

/* Control characters, and those that change the direction of what follows or end the line. */
static bool is_dangerous(uint32_t character)
{
    return character < 0x20 || (character >= 0x7F && character < 0xA0) || character == 0x200E || character == 0x200F ||
           (character >= 0x2028 && character <= 0x202E) || (character >= 0x2066 && character <= 0x2069);
}

/* The next piece of `text`, safe to print; returns how many bytes of `text` it stands for. */
static size_t next_piece(const char *text, char piece[PIECE_SIZE])
{
    uint32_t character = 0;
    size_t length = snk_utf8_read(text, &character);
    if (length == 0) {
        snprintf(piece, PIECE_SIZE, "\\x%02X", (unsigned)(unsigned char)*text);
        return 1;
    }
    if (character == '\n' || character == '\t' || character == '\\')
        snprintf(piece, PIECE_SIZE, "\\%c", character == '\n' ? 'n' : character == '\t' ? 't' : '\\');
    else if (is_dangerous(character))
        snprintf(piece, PIECE_SIZE, character < 0x80 ? "\\x%02X" : "\\u%04X", (unsigned)character & 0xFFFFU);
    else
        snprintf(piece, PIECE_SIZE, "%.*s", (int)length, text);
    return length;
}

void snk_escape_write(FILE *stream, const char *text)
{
    char piece[PIECE_SIZE];
    while (*text != '\0') {
        text += next_piece(text, piece);
        fputs(piece, stream);
    }
}

const char *snk_escape(char *buffer, size_t size, const char *text)
{
    static const char dots[] = "...";
    size_t used = 0;
    size_t cut_at = 0; /* the longest beginning that leaves room for the dots */
    if (size < sizeof dots)
        return "";
    while (*text != '\0') {
        char piece[PIECE_SIZE];
        text += next_piece(text, piece);
        size_t length = strlen(piece);
        if (used + length >= size) {
            memcpy(buffer + cut_at, dots, sizeof dots);
            return buffer;
        }
        memcpy(buffer + used, piece, length);
        used += length;
        if (used + sizeof dots <= size)
            cut_at = used;
    }
    buffer[used] = '\0';
    return buffer;
}
