/* Connections that threads share: each has one for as long as a statement takes. */
#ifndef SNK_STORE_MYSQL_POOL_H
#define SNK_STORE_MYSQL_POOL_H

#include <pthread.h>
#include <stdatomic.h>

#include "store/mysql/conn.h"

typedef struct snk_my_pool {
    const snk_my_options *options; /* borrowed from the store */
    unsigned most;
    _Atomic int *sockets;  /* owned; of all that are open, `most` of them; -1: none. For a child of fork() */
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
void snk_my_pool_give(snk_my_pool *pool, snk_my_conn *conn, bool is_broken);

#endif
