#include <pthread.h>

#include "base/error.h"
#include "client/lock.h"

static bool cannot_be_had(sneck_status status)
{
    return status == SNECK_BUSY || status == SNECK_TIMEOUT || status == SNECK_UNAVAILABLE || status == SNECK_UNKNOWN;
}

/* A result that a function of the application returned, as an error that says so. */
static sneck_status report(sneck_error *error, const char *who, sneck_status status)
{
    if (status == SNECK_OK)
        return snk_ok(error);
    return snk_fail(error, status, 0, "%s returned %s", who, sneck_status_name(status));
}

static void release_when_cancelled(void *lock)
{
    (void)sneck_release(lock, NULL);
}

static sneck_status run_and_release(sneck_lock *lock, sneck_work_fn work, void *context, sneck_error *error)
{
    sneck_status status = SNECK_OK;
    pthread_cleanup_push(release_when_cancelled, lock);
    status = work(context, lock);
    pthread_cleanup_pop(0);
    sneck_error released;
    if (sneck_release(lock, &released) == SNECK_LOST && status == SNECK_OK)
        return snk_fail_as(error, &released);
    return report(error, "work", status);
}

sneck_status sneck_with(sneck_lock *lock, int64_t wait_ms, sneck_work_fn work, sneck_work_fn busy, void *context,
                        sneck_error *error)
{
    if (work == NULL)
        return snk_fail(error, SNECK_INVALID, 0, "work is NULL: give a function to run under the lock");
    sneck_status status = sneck_acquire(lock, wait_ms, error);
    if (status == SNECK_OK)
        return run_and_release(lock, work, context, error);
    if (busy == NULL || !cannot_be_had(status))
        return status;
    return report(error, "busy", busy(context, lock));
}
