/* Starting threads of a library: they take none of the signals that are the program's. */
#ifndef SNK_BASE_THREAD_H
#define SNK_BASE_THREAD_H

#include <pthread.h>
#include <signal.h>

/* As pthread_create, with every signal blocked. */
static inline int snk_thread_create(pthread_t *thread_out, const pthread_attr_t *attributes,
                                    void *(*run)(void *argument), void *argument)
{
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int failure = pthread_create(thread_out, attributes, run, argument);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failure;
}

#endif
