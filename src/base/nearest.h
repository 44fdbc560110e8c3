/* "Did you mean": the word that is most like one that was typed. */
#ifndef SNK_BASE_NEAREST_H
#define SNK_BASE_NEAREST_H

#include <stddef.h>

typedef struct snk_nearest {
    const char *typed;
    const char *best; /* NULL: nothing is near */
    size_t distance;  /* of the best, or what is still near */
} snk_nearest;

/* What was typed, and then each word that there is. */
snk_nearest snk_nearest_to(const char *typed);
void snk_nearest_offer(snk_nearest *nearest, const char *word);

#endif
