/* For tests that need other processes: children that report when they are ready, and are killed at the end. */
#ifndef SNK_TEST_CHILDREN_H
#define SNK_TEST_CHILDREN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct test_child {
    pid_t pid;
    int ready; /* a byte comes when the child calls test_child_ready */
} test_child;

/* Runs `work` in a child, which ends with its result as exit code. */
test_child test_child_start(int (*work)(void *context), void *context);

/* In the child: tells the parent. */
void test_child_ready(void);

/* In the parent: waits for that. Fails the test if the child ends first. */
void test_child_await(test_child *child);

/* Waits for its end. Returns its exit code, or -1 if it was killed. */
int test_child_join(test_child *child);

void test_child_kill(test_child *child);

/* Runs `work` in a child and insists that it returns 0. A child that fails a check returns the line where. */
void test_in_child(int (*work)(void *context), void *context);

/* For `work`: returns the line from it unless the condition is true (cmocka's own checks work in the parent only). */
#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            return __LINE__;                                                                                           \
    } while (0)

#endif
