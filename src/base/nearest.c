#include "base/nearest.h"

#include <string.h>

#define WORD_LENGTH_MAX 32
#define FAR 1000

static size_t smallest(size_t a, size_t b, size_t c)
{
    size_t least = a < b ? a : b;
    return least < c ? least : c;
}

/* How many letters must be added, left out, changed or swapped with their neighbour; FAR for long words. */
static size_t edit_distance(const char *a, const char *b)
{
    size_t rows[WORD_LENGTH_MAX + 1][WORD_LENGTH_MAX + 1];
    size_t length_a = strlen(a);
    size_t length_b = strlen(b);
    if (length_a > WORD_LENGTH_MAX || length_b > WORD_LENGTH_MAX)
        return FAR;
    for (size_t i = 0; i <= length_a; i++)
        rows[i][0] = i;
    for (size_t j = 0; j <= length_b; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= length_a; i++) {
        for (size_t j = 1; j <= length_b; j++) {
            size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
            rows[i][j] = smallest(rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + change);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && rows[i - 2][j - 2] + 1 < rows[i][j])
                rows[i][j] = rows[i - 2][j - 2] + 1;
        }
    }
    return rows[length_a][length_b];
}

snk_nearest snk_nearest_to(const char *typed)
{
    /* Up to a third of the word may be wrong; more would be guessing. */
    return (snk_nearest){ .typed = typed, .distance = strlen(typed) / 3 + 1 };
}

void snk_nearest_offer(snk_nearest *nearest, const char *word)
{
    size_t distance = edit_distance(nearest->typed, word);
    if (distance < nearest->distance || (nearest->best == NULL && distance == nearest->distance)) {
        nearest->best = word;
        nearest->distance = distance;
    }
}
