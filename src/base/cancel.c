#include "base/cancel.h"

#include <errno.h>
#include <pthread.h>
#include <unistd.h>

/*
 * Somebody who cancels this thread may have found it asynchronous and be about to send it a signal. The C library (glibc
 * before 2.41) obeys that signal whenever it comes within a point of cancellation, even one that is reached with
 * cancellation disabled: the thread would end in the middle of some later send(), holding whatever it holds there. The
 * library's own points of cancellation wait until such a signal has come; pthread_setcanceltype does not. This one returns
 * at once, and is not wrapped by the sanitizers, which lose count when a thread ends in what they have wrapped.
 */
static void await_late_cancel(void)
{
    (void)fdatasync(-1);
    pthread_testcancel();
}

long snk_wait_cancellably(long number, const snk_syscall *call)
{
    int type = PTHREAD_CANCEL_DEFERRED;
    /* NOLINTNEXTLINE(cert-pos47-c,concurrency-thread-canceltype-asynchronous): safe exactly here, see the header */
    (void)pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
    long result = syscall(number, call->first, call->second, call->third, call->fourth, call->fifth, call->sixth);
    int cause = errno;
    (void)pthread_setcanceltype(type, NULL);
    await_late_cancel();
    errno = cause;
    return result;
}
