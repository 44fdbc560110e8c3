#include "page_text.h"

#include <stdlib.h>
#include <string.h>

void snk_page_text_add(void *context, const char *text, size_t length)
{
    snk_page_text *page = context;
    while (!page->out_of_memory && page->capacity - page->length < length) {
        size_t capacity = page->capacity == 0 ? 65536 : 2 * page->capacity;
        char *data = realloc(page->data, capacity);
        page->out_of_memory = data == NULL;
        if (data == NULL)
            return;
        page->data = data;
        page->capacity = capacity;
    }
    if (page->out_of_memory)
        return;
    memcpy(page->data + page->length, text, length);
    page->length += length;
}

void snk_page_text_deinit(snk_page_text *page)
{
    free(page->data);
    *page = (snk_page_text){ .data = NULL };
}
