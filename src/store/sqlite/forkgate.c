#include "store/sqlite/forkgate.h"

#include <pthread.h>
#include <time.h>

/* A fork() is not delayed longer than this by a transaction that does not get on. */
#define FORK_WAIT_S 1

static pthread_once_t registered = PTHREAD_ONCE_INIT;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* guards what follows; kept by a thread while it forks */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned inside;  /* threads */
static unsigned forking; /* threads that want to fork: nobody enters meanwhile */

static void before_fork(void)
{
    struct timespec limit;
    (void)clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += FORK_WAIT_S;
    (void)pthread_mutex_lock(&mutex);
    forking++;
    int waited = 0;
    while (inside > 0 && waited == 0)
        waited = pthread_cond_timedwait(&changed, &mutex, &limit);
}

static void after_fork_in_parent(void)
{
    forking--;
    (void)pthread_cond_broadcast(&changed);
    (void)pthread_mutex_unlock(&mutex);
}

static void after_fork_in_child(void)
{
    /* Whoever was inside, waited or wanted to fork is not in this process. */
    static const pthread_cond_t nobody_waits = PTHREAD_COND_INITIALIZER;
    changed = nobody_waits;
    inside = 0;
    forking = 0;
    (void)pthread_mutex_unlock(&mutex);
}

static void register_handlers(void)
{
    (void)pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

void snk_forkgate_enter(void)
{
    (void)pthread_once(&registered, register_handlers);
    (void)pthread_mutex_lock(&mutex);
    while (forking > 0)
        (void)pthread_cond_wait(&changed, &mutex);
    inside++;
    (void)pthread_mutex_unlock(&mutex);
}

void snk_forkgate_leave(void)
{
    (void)pthread_mutex_lock(&mutex);
    inside--;
    if (forking > 0)
        (void)pthread_cond_broadcast(&changed);
    (void)pthread_mutex_unlock(&mutex);
}
