#include "table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "escape.h"

/* Escaped, a byte becomes four at most (\xNN); a name has at most 512. */
#define CELL_SIZE 2080
#define ROOM_FIRST 64
#define GAP 2

void snk_table_add(snk_table *table, const char *text)
{
    char escaped[CELL_SIZE];
    if (table->count == table->room) {
        size_t room = table->room == 0 ? ROOM_FIRST : 2 * table->room;
        char **cells = realloc(table->cells, room * sizeof *cells);
        if (cells == NULL) {
            table->out_of_memory = true;
            return;
        }
        table->cells = cells;
        table->room = room;
    }
    char *copy = strdup(snk_escape(escaped, sizeof escaped, text));
    if (copy == NULL) {
        table->out_of_memory = true;
        return;
    }
    table->cells[table->count++] = copy;
}

/* In characters: what the terminal makes of wide ones is its own affair. */
static size_t text_width(const char *text)
{
    size_t width = 0;
    for (; *text != '\0'; text++)
        width += ((unsigned char)*text & 0xC0) != 0x80 ? 1 : 0;
    return width;
}

static void measure(const snk_table *table, size_t widths[SNK_TABLE_COLUMNS_MAX])
{
    for (size_t i = 0; i < table->count; i++) {
        size_t width = text_width(table->cells[i]);
        if (width > widths[i % table->columns])
            widths[i % table->columns] = width;
    }
}

static void print_row(const snk_table *table, char *const cells[], const size_t widths[])
{
    size_t owed = 0; /* spaces that only a further text makes necessary */
    for (size_t i = 0; i < table->columns; i++) {
        if (cells[i][0] != '\0') {
            printf("%*s%s", (int)owed, "", cells[i]);
            owed = 0;
        }
        owed += widths[i] - text_width(cells[i]) + GAP;
    }
    putchar('\n');
}

void snk_table_print(const snk_table *table)
{
    size_t widths[SNK_TABLE_COLUMNS_MAX] = { 0 };
    measure(table, widths);
    for (size_t i = 0; i + table->columns <= table->count; i += table->columns)
        print_row(table, table->cells + i, widths);
}

void snk_table_deinit(snk_table *table)
{
    for (size_t i = 0; i < table->count; i++)
        free(table->cells[i]);
    free(table->cells);
    *table = (snk_table){ .columns = table->columns };
}
