/* See store/sql/rows.h. */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/error.h"
#include "base/thread.h"
#include "store/sql/rows.h"

void snk_sql_vigil_init(snk_sql_vigil *vigil)
{
    *vigil = (snk_sql_vigil){ .epoll = -1, .stop_fd = -1 };
}

void snk_sql_rows_watch(snk_sql_rows *rows, void (*doubt)(void *context, const char *name, const snk_id *claim),
                        void *context)
{
    rows->vigil.doubt = doubt;
    rows->vigil.context = context;
}

static void close_descriptors(const snk_sql_vigil *vigil)
{
    if (vigil->epoll >= 0)
        (void)close(vigil->epoll);
    if (vigil->stop_fd >= 0)
        (void)close(vigil->stop_fd);
}

void snk_sql_rows_abandon(const snk_sql_rows *rows)
{
    if (rows->ops != NULL)
        close_descriptors(&rows->vigil);
}

void snk_sql_vigil_end(snk_sql_vigil *vigil)
{
    if (vigil->is_started) {
        (void)eventfd_write(vigil->stop_fd, 1);
        (void)pthread_join(vigil->thread, NULL);
    }
    close_descriptors(vigil);
}

/* ---- The thread ---- */

/* The row at this address, if there still is one that nobody uses. Its memory may have been another row's before. */
static snk_sql_row *find_unused_locked(snk_sql_rows *rows, const void *address)
{
    for (size_t i = 0; i < SNK_SQL_ROW_BUCKETS; i++) {
        const snk_list *bucket = &rows->buckets[i];
        for (snk_link *link = snk_list_first(bucket); link != NULL; link = snk_list_next(bucket, link)) {
            snk_sql_row *row = SNK_CONTAINER(link, snk_sql_row, link);
            if (row == address)
                return row->is_used ? NULL : row;
        }
    }
    return NULL;
}

/* Something came on a connection that was asked nothing. If that was its end, somebody must look at the claim. */
static void look(snk_sql_rows *rows, const void *address)
{
    bool is_gone = false;
    snk_id claim;
    char name[SNK_NAME_LENGTH_MAX + 1];
    (void)pthread_mutex_lock(&rows->mutex);
    snk_sql_row *row = find_unused_locked(rows, address);
    if (row != NULL) {
        snk_sql_vigil_stop_locked(rows, row);
        is_gone = !rows->ops->is_alive(row); /* reads what is there, and waits for nothing */
        claim = row->claim;
        (void)snk_copy_text(name, sizeof name, row->name);
        if (!is_gone)
            snk_sql_vigil_begin_locked(rows, row);
    }
    (void)pthread_mutex_unlock(&rows->mutex);
    if (is_gone)
        rows->vigil.doubt(rows->vigil.context, name, &claim);
}

static void *run(void *argument)
{
    snk_sql_rows *rows = argument;
    struct epoll_event event;
    for (;;) {
        int ready = epoll_wait(rows->vigil.epoll, &event, 1, -1);
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0 || event.data.ptr == NULL)
            return NULL;
        look(rows, event.data.ptr);
    }
}

/* Without a descriptor or a thread the heartbeats find out. */
static bool start_locked(snk_sql_rows *rows)
{
    snk_sql_vigil *vigil = &rows->vigil;
    if (vigil->is_started || vigil->doubt == NULL)
        return vigil->is_started;
    if (vigil->epoll < 0)
        vigil->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (vigil->stop_fd < 0)
        vigil->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct epoll_event stop = { .events = EPOLLIN };
    vigil->is_started = vigil->epoll >= 0 && vigil->stop_fd >= 0 &&
                        (epoll_ctl(vigil->epoll, EPOLL_CTL_ADD, vigil->stop_fd, &stop) == 0 || errno == EEXIST) &&
                        snk_thread_create(&vigil->thread, NULL, run, rows) == 0;
    return vigil->is_started;
}

/* ---- What is watched ---- */

void snk_sql_vigil_begin_locked(snk_sql_rows *rows, snk_sql_row *row)
{
    struct epoll_event event = { .events = EPOLLIN | EPOLLRDHUP, .data = { .ptr = row } };
    row->is_watched = !row->is_late && start_locked(rows) &&
                      epoll_ctl(rows->vigil.epoll, EPOLL_CTL_ADD, rows->ops->socket(row), &event) == 0;
}

void snk_sql_vigil_stop_locked(snk_sql_rows *rows, snk_sql_row *row)
{
    if (row->is_watched)
        (void)epoll_ctl(rows->vigil.epoll, EPOLL_CTL_DEL, rows->ops->socket(row), NULL);
    row->is_watched = false;
}
