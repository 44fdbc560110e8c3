#include "client/thread.h"

#include <signal.h>

#include "base/error.h"

sneck_status snk_thread_start(pthread_t *thread_out, const char *name, void *(*run)(void *argument), void *argument,
                              sneck_error *error)
{
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int failure = pthread_create(thread_out, NULL, run, argument);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failure != 0)
        return snk_fail(error, SNECK_NO_MEMORY, failure, "cannot start the thread %s: no memory, or too many threads",
                        name);
    (void)pthread_setname_np(*thread_out, name);
    return SNECK_OK;
}
