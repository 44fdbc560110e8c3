#include "base/array.h"

#include <stdint.h>
#include <stdlib.h>

#define ROOM_FIRST 4

void *snk_array_with_room(void *array, size_t count, size_t *room, size_t element_size)
{
    if (count < *room)
        return array;
    size_t larger_room = *room == 0 ? ROOM_FIRST : 2 * *room;
    if (larger_room > SIZE_MAX / element_size)
        return NULL;
    void *larger = realloc(array, larger_room * element_size);
    if (larger != NULL)
        *room = larger_room;
    return larger;
}
