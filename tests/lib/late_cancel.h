/*
 * pthread_cancel with its signal held back. The C library tells a thread that sleeps by a signal; between its decision
 * to send it and its arrival anything may happen in that thread, and here it does.
 */
#ifndef SNK_TEST_LATE_CANCEL_H
#define SNK_TEST_LATE_CANCEL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct late_cancel {
    pthread_t target;
    pid_t target_id;
    char target_call[64]; /* what the kernel does for the target, when it was cancelled */
    pthread_t canceller;
    _Atomic int listener; /* the kernel asks here whether the signal may be sent; -1: it cannot, -2: not known yet */
    uint64_t request;
} late_cancel;

/*
 * Cancels a thread as soon as it sleeps on a futex; its signal stays behind. False: this kernel cannot hold it back, and
 * the thread is cancelled in the usual way.
 */
bool late_cancel_begin(late_cancel *late, pthread_t target, pid_t target_id);

/* Waits until the target has left the sleep in which it was cancelled, and sleeps again. */
void late_cancel_await_move(const late_cancel *late);

/* Lets the signal go; it has been sent when this returns. */
void late_cancel_deliver(late_cancel *late);

#endif
