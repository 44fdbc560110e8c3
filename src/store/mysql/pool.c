#include "store/mysql/pool.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"

bool snk_my_pool_init(snk_my_pool *pool, const snk_my_options *options, unsigned most)
{
    pool->options = options;
    pool->most = most;
    snk_list_init(&pool->idle);
    pool->sockets = calloc(most, sizeof *pool->sockets);
    if (pool->sockets == NULL)
        return false;
    for (size_t i = 0; i < most; i++)
        atomic_init(&pool->sockets[i], -1);
    pthread_condattr_t attributes;
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    bool done = pthread_mutex_init(&pool->mutex, NULL) == 0 && pthread_cond_init(&pool->given, &attributes) == 0;
    (void)pthread_condattr_destroy(&attributes);
    return done;
}

static snk_my_conn *conn_of(snk_link *link)
{
    return SNK_CONTAINER(link, snk_my_conn, link);
}

static void end(snk_my_pool *pool, snk_my_conn *conn, bool in_order)
{
    atomic_store(&pool->sockets[conn->slot], -1);
    if (in_order)
        mysql_close(conn->my);
    else
        snk_my_hang_up(conn->my);
    free(conn);
}

void snk_my_pool_deinit(snk_my_pool *pool)
{
    if (pool->sockets == NULL)
        return;
    snk_link *link = NULL;
    while ((link = snk_list_take_first(&pool->idle)) != NULL) {
        end(pool, conn_of(link), true);
    }
    free(pool->sockets);
    (void)pthread_cond_destroy(&pool->given);
    (void)pthread_mutex_destroy(&pool->mutex);
}

void snk_my_pool_abandon(snk_my_pool *pool)
{
    for (size_t i = 0; i < pool->most; i++) {
        int fd = atomic_load(&pool->sockets[i]);
        if (fd >= 0)
            (void)close(fd);
    }
}

/* Makes a connection; there is room for it. */
static snk_my_conn *dial(snk_my_pool *pool, sneck_error *error)
{
    snk_my_conn *conn = calloc(1, sizeof *conn);
    if (conn == NULL) {
        (void)snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory");
        return NULL;
    }
    conn->my = snk_my_dial(pool->options, error);
    if (conn->my == NULL) {
        free(conn);
        return NULL;
    }
    conn->timeout_ns = pool->options->timeout_ns;
    int fd = (int)mysql_get_socket(conn->my);
    int none = -1;
    while (!atomic_compare_exchange_strong(&pool->sockets[conn->slot], &none, fd)) {
        conn->slot++;
        none = -1;
    }
    return conn;
}

static snk_my_conn *pop_idle_locked(snk_my_pool *pool)
{
    snk_link *link = NULL;
    while ((link = snk_list_take_first(&pool->idle)) != NULL) {
        if (snk_my_conn_is_alive(conn_of(link)))
            return conn_of(link);
        pool->open--;
        end(pool, conn_of(link), false);
    }
    return NULL;
}

snk_my_conn *snk_my_pool_take(snk_my_pool *pool, sneck_error *error)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until = snk_timespec((int64_t)until.tv_sec * SNK_NS_PER_S + until.tv_nsec + pool->options->timeout_ns);
    (void)pthread_mutex_lock(&pool->mutex);
    snk_my_conn *conn = pop_idle_locked(pool);
    int waited = 0;
    while (conn == NULL && pool->open >= pool->most && waited == 0) {
        waited = pthread_cond_timedwait(&pool->given, &pool->mutex, &until);
        conn = pop_idle_locked(pool);
    }
    bool dials = conn == NULL && pool->open < pool->most;
    if (dials)
        pool->open++;
    (void)pthread_mutex_unlock(&pool->mutex);
    if (conn == NULL && !dials)
        (void)snk_fail(error, SNECK_UNAVAILABLE, ETIMEDOUT, "%s: all %u connections are busy", pool->options->where,
                       pool->most);
    if (!dials)
        return conn;
    conn = dial(pool, error);
    if (conn == NULL) {
        (void)pthread_mutex_lock(&pool->mutex);
        pool->open--;
        (void)pthread_cond_signal(&pool->given);
        (void)pthread_mutex_unlock(&pool->mutex);
    }
    return conn;
}

void snk_my_pool_give(snk_my_pool *pool, snk_my_conn *conn, bool is_broken)
{
    if (is_broken)
        end(pool, conn, false); /* before there is room for another: each has a place in the table of sockets */
    (void)pthread_mutex_lock(&pool->mutex);
    if (is_broken)
        pool->open--;
    else
        snk_list_prepend(&pool->idle, &conn->link);
    (void)pthread_cond_signal(&pool->given);
    (void)pthread_mutex_unlock(&pool->mutex);
}
