/* Arrays that grow. */
#ifndef SNK_BASE_ARRAY_H
#define SNK_BASE_ARRAY_H

#include <stddef.h>

/*
 * The array (NULL at first, with `*room` 0) with room for one more than `count` elements, moved if need be; `*room` is
 * how many it can have. NULL: out of memory, and the array is what it was.
 */
void *snk_array_with_room(void *array, size_t count, size_t *room, size_t element_size);

#endif
