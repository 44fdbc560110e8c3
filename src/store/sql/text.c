#include "store/sql/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 512

void snk_sql_text_init(snk_sql_text *to)
{
    *to = (snk_sql_text){ .text = malloc(FIRST_ROOM), .room = FIRST_ROOM };
    if (to->text != NULL)
        to->text[0] = '\0';
}

void snk_sql_text_deinit(snk_sql_text *to)
{
    free(to->text);
    to->text = NULL;
}

void snk_sql_text_spoil(snk_sql_text *to)
{
    snk_sql_text_deinit(to);
}

void snk_sql_text_add(snk_sql_text *to, const char *text, size_t length)
{
    if (to->text == NULL)
        return;
    if (to->length + length >= to->room) {
        size_t room = 2 * (to->length + length) + 1;
        char *larger = realloc(to->text, room);
        if (larger == NULL) {
            snk_sql_text_spoil(to);
            return;
        }
        to->text = larger;
        to->room = room;
    }
    memcpy(to->text + to->length, text, length);
    to->length += length;
    to->text[to->length] = '\0';
}

void snk_sql_text_word(snk_sql_text *to, const char *word)
{
    snk_sql_text_add(to, word, strlen(word));
}

void snk_sql_text_number(snk_sql_text *to, int64_t number)
{
    char digits[24];
    (void)snprintf(digits, sizeof digits, "%" PRId64, number);
    snk_sql_text_word(to, digits);
}

void snk_sql_text_hex(snk_sql_text *to, const char *bytes)
{
    static const char digits[] = "0123456789abcdef";
    snk_sql_text_word(to, "x'");
    for (; *bytes != '\0'; bytes++) {
        unsigned char byte = (unsigned char)*bytes;
        snk_sql_text_add(to, (const char[]){ digits[byte >> 4], digits[byte & 15] }, 2);
    }
    snk_sql_text_word(to, "'");
}
