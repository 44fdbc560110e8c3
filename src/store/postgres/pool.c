#include "store/postgres/pool.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/futex.h"
#include "base/limits.h"
#include "engine/renewal.h"
#include "store/postgres/dial.h"

/* A connection that was not needed for so long is ended, unless it is the only one. */
#define IDLE_NS (60 * SNK_NS_PER_S)

/* A thread in line. */
typedef struct waiter {
    snk_link link;
    snk_pg_conn *conn; /* what it was given; NULL: it may try for itself */
    _Atomic uint32_t is_called;
} waiter;

bool snk_pg_pool_init(snk_pg_pool *pool, snk_pg_target *target, const char *where, unsigned most)
{
    *pool = (snk_pg_pool){ .where = where, .most = most };
    pool->sockets = malloc(most * sizeof *pool->sockets);
    if (pool->sockets == NULL)
        return false;
    for (unsigned i = 0; i < most; i++)
        atomic_init(&pool->sockets[i], -1);
    snk_pg_target_ref(target);
    pool->target = target;
    snk_list_init(&pool->idle);
    snk_list_init(&pool->line);
    return pthread_mutex_init(&pool->mutex, NULL) == 0;
}

static void end(snk_pg_conn *conn, bool in_order)
{
    if (in_order)
        PQfinish(conn->pg);
    else
        snk_pg_hang_up(conn->pg);
    free(conn);
}

/* Its socket is no longer to be found by then. */
static void end_broken_locked(snk_pg_pool *pool, snk_pg_conn *conn)
{
    atomic_store(&pool->sockets[conn->slot], -1);
    end(conn, false);
}

static snk_pg_conn *conn_of(snk_link *link)
{
    return SNK_CONTAINER(link, snk_pg_conn, link);
}

void snk_pg_pool_deinit(snk_pg_pool *pool)
{
    if (pool->sockets == NULL)
        return;
    snk_link *link = NULL;
    while ((link = snk_list_take_first(&pool->idle)) != NULL) {
        end(conn_of(link), true);
    }
    snk_pg_target_unref(pool->target);
    free(pool->sockets);
    (void)pthread_mutex_destroy(&pool->mutex);
}

void snk_pg_pool_abandon(snk_pg_pool *pool)
{
    for (unsigned i = 0; i < pool->most; i++) {
        int fd = atomic_load(&pool->sockets[i]);
        if (fd >= 0)
            (void)close(fd);
    }
}

/* ---- The line ---- */

/* Calls the first in line, with a connection or to try for itself. False when nobody waits. */
static bool call_first_locked(snk_pg_pool *pool, snk_pg_conn *conn)
{
    snk_link *link = snk_list_first(&pool->line);
    if (link == NULL)
        return false;
    waiter *first = SNK_CONTAINER(link, waiter, link);
    snk_list_remove(link);
    first->conn = conn;
    atomic_store(&first->is_called, 1);
    snk_futex_wake(&first->is_called, 1, false);
    return true;
}

/* Waits to be called, until `until_ns` at the latest. What it was given, or NULL. */
static snk_pg_conn *stand_in_line_locked(snk_pg_pool *pool, bool is_urgent, int64_t until_ns)
{
    waiter self = { .conn = NULL };
    if (is_urgent)
        snk_list_prepend(&pool->line, &self.link);
    else
        snk_list_append(&pool->line, &self.link);
    (void)pthread_mutex_unlock(&pool->mutex);
    int64_t left_ns = until_ns - snk_now_ns();
    while (atomic_load(&self.is_called) == 0 && left_ns > 0) {
        (void)snk_futex_wait_any(&(snk_futex_word){ .word = &self.is_called, .expected = 0 }, 1, left_ns);
        left_ns = until_ns - snk_now_ns();
    }
    (void)pthread_mutex_lock(&pool->mutex);
    if (snk_link_is_linked(&self.link))
        snk_list_remove(&self.link);
    return self.conn;
}

/* ---- Making connections ---- */

static snk_pg_conn *note_dialed_locked(snk_pg_pool *pool, PGconn *pg, const sneck_error *trouble)
{
    snk_pg_conn *conn = pg == NULL ? NULL : calloc(1, sizeof *conn);
    pool->is_dialing = false;
    if (conn == NULL) {
        pool->open--;
        pool->trouble = *trouble;
        if (pg != NULL)
            (void)snk_fail(&pool->trouble, SNECK_NO_MEMORY, 0, "out of memory");
        if (pool->trouble.status != SNECK_NO_MEMORY) {
            pool->failures++;
            pool->pause_until_ns = snk_time_add(snk_now_ns(), snk_backoff_ns(pool->failures, SNK_BACKOFF_NS_MAX));
        }
    } else {
        pool->failures = 0;
        conn->pg = pg;
        while (atomic_load(&pool->sockets[conn->slot]) >= 0)
            conn->slot++;
        atomic_store(&pool->sockets[conn->slot], PQsocket(pg));
    }
    /* Whoever is first in line may make the next one, or must be told of the trouble. */
    (void)call_first_locked(pool, NULL);
    return conn;
}

/* NULL, with the trouble in the pool, when it fails. */
static snk_pg_conn *dial_locked(snk_pg_pool *pool, int64_t until_ns)
{
    sneck_error trouble = { .status = SNECK_OK };
    pool->is_dialing = true;
    pool->open++;
    (void)pthread_mutex_unlock(&pool->mutex);
    PGconn *pg = snk_pg_dial(pool->target, pool->where, -1, until_ns, &trouble);
    if (pool->link != NULL && pg != NULL)
        snk_sql_link_up(pool->link);
    else if (pool->link != NULL)
        snk_sql_link_down(pool->link, trouble.message);
    (void)pthread_mutex_lock(&pool->mutex);
    snk_pg_conn *conn = note_dialed_locked(pool, pg, &trouble);
    if (conn == NULL && pg != NULL)
        PQfinish(pg);
    return conn;
}

/* ---- Taking and giving ---- */

static snk_pg_conn *pop_idle_locked(snk_pg_pool *pool)
{
    snk_link *link = NULL;
    while ((link = snk_list_take_first(&pool->idle)) != NULL) {
        if (snk_pg_conn_is_alive(conn_of(link)))
            return conn_of(link);
        pool->open--;
        end_broken_locked(pool, conn_of(link));
    }
    return NULL;
}

/* One look: a connection; or NULL, and `error` says why there is none to be had, or is SNECK_OK: look again. */
static snk_pg_conn *look_locked(snk_pg_pool *pool, bool is_urgent, int64_t until_ns, sneck_error *error)
{
    snk_pg_conn *conn = pop_idle_locked(pool);
    if (conn != NULL)
        return conn;
    int64_t now_ns = snk_now_ns();
    bool is_pausing = now_ns < pool->pause_until_ns;
    if (!pool->is_dialing && !is_pausing && pool->open < pool->most) {
        conn = dial_locked(pool, until_ns);
        if (conn == NULL)
            (void)snk_fail_as(error, &pool->trouble);
        return conn;
    }
    if (is_pausing && pool->open == 0) {
        (void)call_first_locked(pool, NULL);
        (void)snk_fail_as(error, &pool->trouble);
        return NULL;
    }
    if (now_ns < until_ns)
        return stand_in_line_locked(pool, is_urgent, until_ns);
    (void)snk_fail(error, SNECK_UNAVAILABLE, ETIMEDOUT, "%s: all %u connections are busy", pool->where, pool->open);
    return NULL;
}

snk_pg_conn *snk_pg_pool_take(snk_pg_pool *pool, bool is_urgent, int64_t until_ns, sneck_error *error)
{
    snk_pg_conn *conn = NULL;
    error->status = SNECK_OK;
    (void)pthread_mutex_lock(&pool->mutex);
    while (conn == NULL && error->status == SNECK_OK)
        conn = look_locked(pool, is_urgent, until_ns, error);
    (void)pthread_mutex_unlock(&pool->mutex);
    if (conn != NULL && pool->link != NULL)
        (void)atomic_fetch_add(&pool->link->in_flight, 1);
    return conn;
}

/* One that nobody has needed for long, taken out; NULL: none. */
static snk_pg_conn *find_unneeded_locked(snk_pg_pool *pool, int64_t now_ns)
{
    snk_link *link = snk_list_last(&pool->idle);
    if (link == NULL || link == snk_list_first(&pool->idle) || now_ns - conn_of(link)->idle_since_ns < IDLE_NS)
        return NULL;
    snk_list_remove(link);
    pool->open--;
    atomic_store(&pool->sockets[conn_of(link)->slot], -1);
    return conn_of(link);
}

static void give(snk_pg_pool *pool, snk_pg_conn *conn, bool is_broken)
{
    snk_pg_conn *unneeded = NULL;
    int64_t now_ns = snk_now_ns();
    (void)pthread_mutex_lock(&pool->mutex);
    if (is_broken) {
        pool->open--;
        end_broken_locked(pool, conn);
        (void)call_first_locked(pool, NULL);
    } else if (!call_first_locked(pool, conn)) {
        conn->idle_since_ns = now_ns;
        snk_list_prepend(&pool->idle, &conn->link);
        unneeded = find_unneeded_locked(pool, now_ns);
    }
    (void)pthread_mutex_unlock(&pool->mutex);
    if (unneeded != NULL)
        end(unneeded, true);
}

void snk_pg_pool_give(snk_pg_pool *pool, snk_pg_conn *conn, bool is_broken)
{
    give(pool, conn, is_broken);
    if (pool->link == NULL)
        return;
    (void)atomic_fetch_sub(&pool->link->in_flight, 1);
    if (is_broken)
        snk_sql_link_down(pool->link, "a connection was lost");
    else
        snk_sql_link_up(pool->link);
}

void snk_pg_pool_drop(snk_pg_pool *pool, snk_pg_conn *conn)
{
    give(pool, conn, true);
    if (pool->link != NULL)
        (void)atomic_fetch_sub(&pool->link->in_flight, 1);
}

void snk_pg_pool_end_all(snk_pg_pool *pool)
{
    (void)pthread_mutex_lock(&pool->mutex);
    snk_sql_end_sockets(pool->sockets, pool->most);
    (void)pthread_mutex_unlock(&pool->mutex);
}
