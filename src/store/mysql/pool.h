/* Connections that threads share: each has one for as long as a statement takes. */
#ifndef SNK_STORE_MYSQL_POOL_H
#define SNK_STORE_MYSQL_POOL_H

#include <pthread.h>
#include <stdatomic.h>

#include "store/mysql/conn.h"
#include "store/sql/link.h"

typedef struct snk_my_pool {
    const snk_my_options *options; /* borrowed from the store */
    unsigned most;
    snk_sql_link *link; /* borrowed from the store; is told of connections that are made, and lost; NULL: nobody is */
    _Atomic int
        *sockets; /* owned; of all that are open, `most` of them; -1: none. For a child of fork(), and to end them */
    pthread_mutex_t mutex; /* guards what follows; never held while the server is asked */
    pthread_cond_t given;  /* a connection came back, or there is room for one */
    snk_list idle;         /* of owned snk_my_conn; the one used last is first */
    unsigned open;         /* idle, in use, or being made */
} snk_my_pool;

bool snk_my_pool_init(snk_my_pool *pool, const snk_my_options *options, unsigned most);
/* A no-op on one that is all zero. */
void snk_my_pool_deinit(snk_my_pool *pool);
/* In a child of fork(): closes descriptors, and nothing else. */
void snk_my_pool_abandon(snk_my_pool *pool);

/* A connection, made if need be; NULL, with the error, when there is none to be had in time. */
snk_my_conn *snk_my_pool_take(snk_my_pool *pool, sneck_error *error);
/* The same for who waits no longer than that for one to be given back. */
snk_my_conn *snk_my_pool_take_within(snk_my_pool *pool, int64_t timeout_ns, sneck_error *error);
void snk_my_pool_give(snk_my_pool *pool, snk_my_conn *conn, bool is_broken);
/* Ends one whose server was silent; nobody is told. */
void snk_my_pool_drop(snk_my_pool *pool, snk_my_conn *conn);
/* Whoever waits for an answer does so no longer, and no connection that there is now is used again. */
void snk_my_pool_end_all(snk_my_pool *pool);

#endif
