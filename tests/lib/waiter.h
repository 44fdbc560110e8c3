/* A thread that waits for a lock, and gives it back as soon as it has it. */
#ifndef SNK_TEST_WAITER_H
#define SNK_TEST_WAITER_H

#include <pthread.h>
#include <stdint.h>

#include "sneck.h"

typedef struct test_waiter {
    pthread_t thread;
    sneck_lock *lock;
    int64_t wait_ms;
    sneck_status status; /* of the acquire; the rest once it has returned */
    sneck_error error;
    uint64_t token;
    int64_t served_at_ms; /* as test_now_ms */
} test_waiter;

void test_waiter_start(test_waiter *waiter, sneck_lock *lock, int64_t wait_ms);
/* Waits for it, and insists that it had the lock. */
void test_waiter_join(test_waiter *waiter);

#endif
