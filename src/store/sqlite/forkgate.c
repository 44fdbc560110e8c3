#include "store/sqlite/forkgate.h"

#include <pthread.h>
#include <stdbool.h>
#include <time.h>

/* A fork() is not delayed longer than this by a transaction that does not get on. */
#define FORK_WAIT_S 1

static pthread_rwlock_t gate = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP; /* readers are inside */
static pthread_once_t registered = PTHREAD_ONCE_INIT;
static bool closed; /* by the thread that forks; written and read in its handlers only */

static void before_fork(void)
{
    struct timespec limit;
    (void)clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += FORK_WAIT_S;
    closed = pthread_rwlock_timedwrlock(&gate, &limit) == 0;
}

static void after_fork_in_parent(void)
{
    if (closed)
        (void)pthread_rwlock_unlock(&gate);
}

static void after_fork_in_child(void)
{
    if (closed) {
        (void)pthread_rwlock_unlock(&gate);
        return;
    }
    /* Somebody was inside for too long, who is not in this process. */
    static const pthread_rwlock_t open_gate = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
    gate = open_gate;
}

static void register_handlers(void)
{
    (void)pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

void snk_forkgate_enter(void)
{
    (void)pthread_once(&registered, register_handlers);
    (void)pthread_rwlock_rdlock(&gate);
}

void snk_forkgate_leave(void)
{
    (void)pthread_rwlock_unlock(&gate);
}
