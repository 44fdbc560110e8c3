/*
 * Memory that runs out on command: a program that links this has its own malloc, calloc and realloc. Not with the
 * sanitizers, which have an allocator of their own.
 */
#ifndef SNK_TEST_ALLOCATIONS_H
#define SNK_TEST_ALLOCATIONS_H

#include <stdbool.h>

bool allocations_can_fail(void);

/* How many more allocations of this thread succeed; negative: all. */
extern _Thread_local int allocations_left;
/* One of this thread has failed. */
extern _Thread_local bool allocations_have_failed;

/* Whichever thread makes the allocation after the next `allowed` ones: that one fails, and those after it succeed. */
void allocations_fail_one(int allowed);
/* From now on only those count that this program makes itself: for libraries that cannot do without memory. */
void allocations_spare_libraries(void);
/* From now on all succeed. True: one has failed. */
bool allocations_fail_none(void);

#endif
