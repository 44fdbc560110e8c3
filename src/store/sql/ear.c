#include "store/sql/ear.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"

void snk_sql_ear_init(snk_sql_ear *ear)
{
    (void)pthread_mutex_init(&ear->mutex, NULL);
    ear->stop_fd = -1;
    atomic_init(&ear->socket, -1);
}

void snk_sql_ear_deinit(snk_sql_ear *ear)
{
    if (ear->is_started) {
        (void)eventfd_write(ear->stop_fd, 1);
        (void)pthread_join(ear->thread, NULL);
    }
    if (ear->stop_fd >= 0)
        (void)close(ear->stop_fd);
    (void)pthread_mutex_destroy(&ear->mutex);
}

void snk_sql_ear_abandon(snk_sql_ear *ear)
{
    int heard = atomic_load(&ear->socket);
    if (heard >= 0)
        (void)close(heard);
    if (ear->stop_fd >= 0)
        (void)close(ear->stop_fd);
}

void snk_sql_ear_set(snk_sql_ear *ear, snk_sql_hearing state)
{
    atomic_store(&ear->state, (uint32_t)state);
}

bool snk_sql_ear_is_stopping(const snk_sql_ear *ear, int64_t wait_ns)
{
    struct pollfd stop = { .fd = ear->stop_fd, .events = POLLIN };
    return poll(&stop, 1, (int)(wait_ns / SNK_NS_PER_MS)) != 0;
}

/* Without a descriptor or a thread, those who wait look often. */
static void start(snk_sql_ear *ear, void *(*run)(void *store), void *store)
{
    (void)pthread_mutex_lock(&ear->mutex);
    if (!ear->is_started) {
        if (ear->stop_fd < 0)
            ear->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        ear->is_started = ear->stop_fd >= 0 && snk_thread_create(&ear->thread, NULL, run, store) == 0;
    }
    (void)pthread_mutex_unlock(&ear->mutex);
}

bool snk_sql_ear_listen(snk_sql_ear *ear, void *(*run)(void *store), void *store)
{
    if (atomic_load(&ear->state) == SNK_SQL_SILENT)
        start(ear, run, store);
    return atomic_load(&ear->state) == SNK_SQL_HEARS;
}
