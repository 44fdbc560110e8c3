/* A table of texts on standard output: columns as wide as their widest text, left-aligned. */
#ifndef SNK_CLI_TABLE_H
#define SNK_CLI_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#define SNK_TABLE_COLUMNS_MAX 8

typedef struct snk_table {
    size_t columns;
    char *text; /* owned; the cells, row by row, each with its NUL */
    size_t length;
    size_t room;
    size_t count;       /* of cells */
    bool out_of_memory; /* something is missing */
} snk_table;

/* A zeroed table with its number of columns set is an empty one. */

/* Adds the next cell, row by row. The text is escaped for the terminal and copied. */
void snk_table_add(snk_table *table, const char *text);

/* Prints all full rows; no spaces at the ends of lines. */
void snk_table_print(const snk_table *table);

void snk_table_deinit(snk_table *table);

#endif
