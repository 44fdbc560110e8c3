/* A text that grows. */
#ifndef SNK_CLI_PAGE_TEXT_H
#define SNK_CLI_PAGE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

typedef struct snk_page_text {
    char *data; /* owned */
    size_t length;
    size_t capacity;
    bool out_of_memory;
} snk_page_text;

/* A sneck_write_fn: `context` is the text. */
void snk_page_text_add(void *context, const char *text, size_t length);
void snk_page_text_deinit(snk_page_text *page);

#endif
