/* The reason that a handle gives for its acquires: a shared text, because a request may outlive the handle. */
#ifndef SNK_CLIENT_WHY_H
#define SNK_CLIENT_WHY_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct snk_why {
    _Atomic uint32_t references;
    char text[];
} snk_why;

/* A copy with one reference; NULL when out of memory. */
static inline snk_why *snk_why_new(const char *text)
{
    size_t size = strlen(text) + 1;
    snk_why *why = malloc(sizeof *why + size);
    if (why == NULL)
        return NULL;
    atomic_init(&why->references, 1);
    memcpy(why->text, text, size);
    return why;
}

/* Both take NULL, which is "no reason". */
static inline snk_why *snk_why_ref(snk_why *why)
{
    if (why != NULL)
        (void)atomic_fetch_add_explicit(&why->references, 1, memory_order_relaxed);
    return why;
}

static inline void snk_why_unref(snk_why *why)
{
    if (why != NULL && atomic_fetch_sub_explicit(&why->references, 1, memory_order_acq_rel) == 1)
        free(why);
}

static inline const char *snk_why_text(const snk_why *why)
{
    return why == NULL ? "" : why->text;
}

#endif
