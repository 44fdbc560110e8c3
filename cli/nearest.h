/* "Did you mean": the word that is most like one that was typed. */
#ifndef SNK_CLI_NEAREST_H
#define SNK_CLI_NEAREST_H

#include <stddef.h>

/* How many letters must be added, left out, changed or swapped with their neighbour; a large number for long words. */
size_t snk_edit_distance(const char *a, const char *b);

typedef struct snk_nearest {
    const char *typed;
    const char *best; /* NULL: nothing is near */
    size_t distance;
} snk_nearest;

snk_nearest snk_nearest_to(const char *typed);
void snk_nearest_offer(snk_nearest *nearest, const char *word);

#endif
