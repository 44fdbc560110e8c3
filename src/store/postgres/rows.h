/*
 * mode=row: a hold is a row of sneck_lock that is locked in an open transaction on a connection of its own. The server
 * frees it when the connection is gone, or when nothing was heard of it for the lease.
 *
 * The claim in the tables goes with it: it has the token, committed on another connection, and the transaction's number, by
 * which others see whether the hold still is one.
 */
#ifndef SNK_STORE_POSTGRES_ROWS_H
#define SNK_STORE_POSTGRES_ROWS_H

#include <pthread.h>

#include "base/ids.h"
#include "store/postgres/pool.h"

#define SNK_PG_ROW_BUCKETS 64
#define SNK_PG_XID_SIZE 24

struct snk_pg_store;
struct snk_claim;
struct snk_answer;

typedef struct snk_pg_rows {
    snk_pg_pool pool;                     /* of connections with a transaction each */
    pthread_mutex_t mutex;                /* guards what follows */
    pthread_cond_t changed;               /* a row is no longer in use by another thread */
    snk_list buckets[SNK_PG_ROW_BUCKETS]; /* of rows that are held, by claim */
} snk_pg_rows;

bool snk_pg_rows_init(snk_pg_rows *rows, snk_pg_target *target, const char *where);
/* Ends what is left. */
void snk_pg_rows_deinit(snk_pg_rows *rows);

/* Does one request of mode=row. */
void snk_pg_row_ask(struct snk_pg_store *store, const struct snk_claim *claim, struct snk_answer *answer);

#endif
