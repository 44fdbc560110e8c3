#include "escape.h"

#include <stdbool.h>
#include <string.h>

#define PIECE_SIZE 8 /* the longest escape, \uNNNN, or a character of UTF-8, and NUL */

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
