/*
 * Connections, each used by one thread at a time. They are made when they are needed, up to a number; further threads wait
 * in line, renewals before others. A server that cannot be reached is asked again only after a pause, which grows; until
 * then everybody who asks is told at once what the trouble is.
 *
 * Why several, and not one with a pipeline: a statement that waits (for the row of its lock, or for the disk at its commit)
 * holds up whatever is behind it on the same connection, and commits of several connections share one write to the disk.
 */
#ifndef SNK_STORE_POSTGRES_POOL_H
#define SNK_STORE_POSTGRES_POOL_H

#include <pthread.h>

#include "store/postgres/conn.h"
#include "store/postgres/options.h"
#include "store/sql/link.h"

typedef struct snk_pg_pool {
    snk_pg_target *target; /* owned reference */
    const char *where;     /* borrowed from the store */
    unsigned most;
    snk_sql_link *link;   /* borrowed from the store; is told of connections that are made, and lost; NULL: nobody is */
    _Atomic int *sockets; /* owned; `most` of them, -1: none. Cleared under the mutex. For a child of
                             fork(), which may look at nothing else, and to end them */

    pthread_mutex_t mutex; /* guards what follows; a leaf, and nobody waits for a server under it */
    snk_list idle;         /* of snk_pg_conn; the one used last is first */
    snk_list line;         /* of threads that wait */
    unsigned open;         /* connections that there are, or that are being made */
    bool is_dialing;       /* one at a time */
    unsigned failures;     /* attempts to connect that failed, in a row */
    int64_t pause_until_ns;
    sneck_error trouble; /* of the last attempt, if it failed */
} snk_pg_pool;

bool snk_pg_pool_init(snk_pg_pool *pool, snk_pg_target *target, const char *where, unsigned most);
/* Ends all connections; none is taken. */
void snk_pg_pool_deinit(snk_pg_pool *pool);
/* In a child of fork(). */
void snk_pg_pool_abandon(snk_pg_pool *pool);

/* A connection that was alive a moment ago, or NULL with `error`: then nothing was sent. */
snk_pg_conn *snk_pg_pool_take(snk_pg_pool *pool, bool is_urgent, int64_t until_ns, sneck_error *error);
/* Gives it back; a broken one is ended. */
void snk_pg_pool_give(snk_pg_pool *pool, snk_pg_conn *conn, bool is_broken);
/* Ends one whose server was silent; nobody is told. */
void snk_pg_pool_drop(snk_pg_pool *pool, snk_pg_conn *conn);
/* Whoever waits for an answer does so no longer, and no connection that there is now is used again. */
void snk_pg_pool_end_all(snk_pg_pool *pool);

#endif
