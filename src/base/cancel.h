/* System calls that a thread may be cancelled in, though the C library knows nothing of them. */
#ifndef SNK_BASE_CANCEL_H
#define SNK_BASE_CANCEL_H

/* The arguments of a system call, in their order. */
typedef struct snk_syscall {
    const void *first;
    long second;
    const void *third;
    const void *fourth;
    long fifth;
    long sixth;
} snk_syscall;

/*
 * A raw system call as a point of cancellation. For calls that only wait: a thread may end at any instruction of it, so
 * nothing may be held. Returns and sets errno as syscall(2) does.
 */
long snk_wait_cancellably(long number, const snk_syscall *call);

#endif
