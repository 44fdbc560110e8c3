#include "client/thread.h"

#include "base/error.h"
#include "base/thread.h"

sneck_status snk_thread_start(pthread_t *thread_out, const char *name, void *(*run)(void *argument), void *argument,
                              sneck_error *error)
{
    int failure = snk_thread_create(thread_out, NULL, run, argument);
    if (failure != 0)
        return snk_fail(error, SNECK_NO_MEMORY, failure, "cannot start the thread %s: no memory, or too many threads",
                        name);
    (void)pthread_setname_np(*thread_out, name);
    return SNECK_OK;
}
