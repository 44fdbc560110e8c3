#include "table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "escape.h"

/* Escaped, a byte becomes four at most (\xNN); a name has at most 512. */
#define CELL_SIZE 2080
#define ROOM_FIRST 4096
#define GAP 2

static bool make_room(snk_table *table, size_t size)
{
    if (table->room - table->length >= size)
        return true;
    size_t room = 2 * table->room + ROOM_FIRST + size;
    char *text = realloc(table->text, room);
    if (text == NULL)
        return false;
    table->text = text;
    table->room = room;
    return true;
}

void snk_table_add(snk_table *table, const char *text)
{
    char escaped[CELL_SIZE];
    (void)snk_escape(escaped, sizeof escaped, text);
    size_t size = strlen(escaped) + 1;
    if (!make_room(table, size)) {
        table->out_of_memory = true;
        return;
    }
    memcpy(table->text + table->length, escaped, size);
    table->length += size;
    table->count++;
}

/* In characters: what the terminal makes of wide ones is its own affair. */
static size_t text_width(const char *text)
{
    size_t width = 0;
    for (; *text != '\0'; text++)
        width += ((unsigned char)*text & 0xC0) != 0x80 ? 1 : 0;
    return width;
}

static const char *next_cell(const char *cell)
{
    return cell + strlen(cell) + 1;
}

static void measure(const snk_table *table, size_t widths[SNK_TABLE_COLUMNS_MAX])
{
    const char *cell = table->text;
    for (size_t i = 0; i < table->count; i++, cell = next_cell(cell)) {
        size_t width = text_width(cell);
        if (width > widths[i % table->columns])
            widths[i % table->columns] = width;
    }
}

/* Prints the row that begins with `cell`, and returns the first cell of the next one. */
static const char *print_row(const snk_table *table, const char *cell, const size_t widths[])
{
    size_t owed = 0; /* spaces that only a further text makes necessary */
    for (size_t i = 0; i < table->columns; i++, cell = next_cell(cell)) {
        if (cell[0] != '\0') {
            printf("%*s%s", (int)owed, "", cell);
            owed = 0;
        }
        owed += widths[i] - text_width(cell) + GAP;
    }
    putchar('\n');
    return cell;
}

void snk_table_print(const snk_table *table)
{
    size_t widths[SNK_TABLE_COLUMNS_MAX] = { 0 };
    const char *cell = table->text;
    measure(table, widths);
    for (size_t i = 0; i + table->columns <= table->count; i += table->columns)
        cell = print_row(table, cell, widths);
}

void snk_table_deinit(snk_table *table)
{
    free(table->text);
    *table = (snk_table){ .columns = table->columns };
}
