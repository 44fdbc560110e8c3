/*
 * Stops one thread of this process, and nothing else of it, as a debugger does: by another process that traces it.
 */
#ifndef SNK_TEST_FREEZER_H
#define SNK_TEST_FREEZER_H

#include <stdbool.h>
#include <sys/types.h>

typedef struct test_freezer {
    pid_t pid;
    int order_fd;
} test_freezer;

/* The id of a thread of this process with that name; 0: none. */
pid_t test_thread_named(const char *name);
/* How many there are. */
unsigned test_threads_named(const char *name);

/* The thread stands still when it returns. False when that is not allowed here. */
bool test_freeze(test_freezer *freezer, pid_t thread);
/* It goes on. */
void test_thaw(test_freezer *freezer);

#endif
