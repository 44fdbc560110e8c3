/*
 * mode=row: a hold is a row of sneck_lock that is locked in an open transaction on a connection of its own. The server
 * frees it when the connection is gone, or when nothing was heard of it for the lease.
 *
 * The claim in the tables goes with it: it has the token, committed on another connection, and something by which others
 * see whether the transaction still is one. What is particular to a server is behind snk_sql_row_ops.
 */
#ifndef SNK_STORE_SQL_ROWS_H
#define SNK_STORE_SQL_ROWS_H

#include <pthread.h>

#include "base/ids.h"
#include "base/limits.h"
#include "base/list.h"
#include "store/sql/answer.h"
#include "store/store.h"

#define SNK_SQL_RESOURCE_SIZE (1 + SNK_PREFIX_LENGTH_MAX + SNK_NAME_LENGTH_MAX + 1)
#define SNK_SQL_ROW_BUCKETS 64

/*
 * A claim that has the lock in the tables waits so long for the row in the server's own queue: whoever has it is mostly one
 * that has tried, and is about to give it back. After that it comes back to look each retry_ns.
 */
#define SNK_SQL_ROW_WAIT_MS 20

/* A row that is locked, or about to be. */
typedef struct snk_sql_row {
    snk_link link;
    snk_id claim;
    char resource[SNK_SQL_RESOURCE_SIZE];
    void *conn; /* owned; the server's kind of connection, with its transaction open */
    char name[SNK_NAME_LENGTH_MAX + 1];
    char mark[24];      /* by which the tables know the transaction, where the server has such a thing */
    int64_t silence_ms; /* after which the server ends the transaction */
    bool is_used;       /* by a thread; under rows.mutex, and the rest is that thread's */
    bool is_late;       /* the answer to the last heartbeat has not come yet */
    bool is_watched;    /* its socket is; never while it is used */
} snk_sql_row;

typedef enum snk_sql_taken {
    SNK_SQL_ROW_LOCKED,
    SNK_SQL_ROW_BUSY, /* another transaction has it */
    SNK_SQL_ROW_FAILED
} snk_sql_taken;

typedef enum snk_sql_beat {
    SNK_SQL_BEAT_HEARD,
    SNK_SQL_BEAT_MISSED, /* nobody knows; the next one may be heard */
    SNK_SQL_BEAT_DEAD
} snk_sql_beat;

/* What a server does; `store` is the one that was given to snk_sql_rows_init. */
typedef struct snk_sql_row_ops {
    /* Takes a connection and locks the row in a transaction that stays open. On failure the connection is given back. */
    snk_sql_taken (*lock)(snk_store *store, snk_sql_row *row, bool waits, sneck_error *error);
    /* Something is said in the transaction, so that the server does not end it for its silence. Sets is_late. */
    snk_sql_beat (*beat)(snk_store *store, snk_sql_row *row, sneck_error *error);
    /*
     * Ends the claim in the transaction itself, and commits: that frees the row in the same step. SNK_SQL_FAILED: it did
     * not happen, or the connection is gone.
     */
    snk_sql_outcome (*release)(snk_store *store, const snk_claim *claim, snk_sql_row *row, snk_sql_numbers *numbers,
                               sneck_error *error);
    /* Gives the connection back: after a commit as it is, else its transaction is rolled back or it is ended. */
    void (*give)(snk_store *store, snk_sql_row *row, bool committed);
    /* The connection's descriptor, and whether it is still there. */
    int (*socket)(const snk_sql_row *row);
    bool (*is_alive)(const snk_sql_row *row);
    /* One request, in the tables. `row`: the claim has that row; NULL: it has none. */
    void (*ask)(snk_store *store, const snk_claim *claim, const snk_sql_row *row, snk_answer *answer);
} snk_sql_row_ops;

/*
 * A thread that watches the connections of rows that nobody uses: the server frees a row in the moment its connection is
 * gone, so its holder must hear of it then, and not with its next heartbeat.
 */
typedef struct snk_sql_vigil {
    void (*doubt)(void *context, const char *name, const snk_id *claim); /* NULL: nothing is watched */
    void *context;
    int epoll; /* owned; -1: none */
    int stop_fd;
    bool is_started; /* under rows.mutex */
    pthread_t thread;
} snk_sql_vigil;

typedef struct snk_sql_rows {
    const snk_sql_row_ops *ops;
    snk_store *store;   /* borrowed */
    const char *prefix; /* borrowed from the store */
    int64_t retry_ns;
    pthread_mutex_t mutex;                 /* guards what follows; a leaf */
    pthread_cond_t changed;                /* a row is no longer in use by another thread */
    snk_list buckets[SNK_SQL_ROW_BUCKETS]; /* of rows that are held, by claim */
    snk_sql_vigil vigil;
} snk_sql_rows;

bool snk_sql_rows_init(snk_sql_rows *rows, const snk_sql_row_ops *ops, snk_store *store, const char *prefix,
                       int64_t retry_ns);
/* From now on `doubt` is called, with nothing locked, when the connection of a row is gone. */
void snk_sql_rows_watch(snk_sql_rows *rows, void (*doubt)(void *context, const char *name, const snk_id *claim),
                        void *context);
/* In a child of fork(): closes descriptors, and nothing else. */
void snk_sql_rows_abandon(const snk_sql_rows *rows);
/* Ends what is left; a no-op on one that is all zero. */
void snk_sql_rows_deinit(snk_sql_rows *rows);

/* vigil.c; under rows.mutex: a row that is used no longer is watched, and one that comes to be used is not. */
void snk_sql_vigil_init(snk_sql_vigil *vigil);
void snk_sql_vigil_end(snk_sql_vigil *vigil);
void snk_sql_vigil_begin_locked(snk_sql_rows *rows, snk_sql_row *row);
void snk_sql_vigil_stop_locked(snk_sql_rows *rows, snk_sql_row *row);

/* Does one request of mode=row. */
void snk_sql_row_ask(snk_sql_rows *rows, const snk_claim *claim, snk_answer *answer);

#endif
