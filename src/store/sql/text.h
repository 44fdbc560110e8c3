/* A text that grows: statements are written into it. */
#ifndef SNK_STORE_SQL_TEXT_H
#define SNK_STORE_SQL_TEXT_H

#include <stddef.h>
#include <stdint.h>

typedef struct snk_sql_text {
    char *text; /* owned; ends in NUL; NULL: out of memory, and it stays so */
    size_t length;
    size_t room;
} snk_sql_text;

void snk_sql_text_init(snk_sql_text *to);
void snk_sql_text_deinit(snk_sql_text *to);

void snk_sql_text_add(snk_sql_text *to, const char *text, size_t length);
void snk_sql_text_word(snk_sql_text *to, const char *word);
void snk_sql_text_number(snk_sql_text *to, int64_t number);
/* As x'…': bytes whatever they are, and nothing to escape. */
void snk_sql_text_hex(snk_sql_text *to, const char *bytes);
/* From now on it is no text. */
void snk_sql_text_spoil(snk_sql_text *to);

#endif
