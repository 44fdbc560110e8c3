/*
 * One connection, used by one thread at a time: a statement goes out, and its whole answer is awaited within a time limit.
 */
#ifndef SNK_STORE_POSTGRES_CONN_H
#define SNK_STORE_POSTGRES_CONN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "store/postgres/errors.h"
#include "store/postgres/statements.h"
#include "store/sql/answer.h"

typedef struct snk_pg_conn {
    snk_link link;     /* in the pool's list of idle ones */
    PGconn *pg;        /* owned */
    uint32_t prepared; /* bits of snk_pg_statement */
    unsigned slot;     /* in the pool */
    int64_t idle_since_ns;
} snk_pg_conn;

/* What came of a statement. */
typedef struct snk_pg_reply {
    snk_sql_outcome outcome;
    PGresult *result;              /* answered, with rows; owned */
    char state[SNK_PG_STATE_SIZE]; /* failed, and the server said so */
    bool is_broken;                /* the connection is of no use any more */
    bool is_late;                  /* uncertain, because time was over: the answer may still come */
    sneck_error error;             /* failed, uncertain */
} snk_pg_reply;

void snk_pg_reply_init(snk_pg_reply *reply);
/* Frees the result; may be called twice. */
void snk_pg_reply_clear(snk_pg_reply *reply);

/* The first value of the first row; "" when there is none, or it is NULL. */
const char *snk_pg_reply_text(const snk_pg_reply *reply);

/* Whether an idle connection is still there. What the server said meanwhile is read. */
bool snk_pg_conn_is_alive(const snk_pg_conn *conn);

/* Sends a statement as one that this session has prepared (it prepares it if need be), and awaits its answer. */
void snk_pg_conn_execute(snk_pg_conn *conn, const char *where, snk_pg_statement which, const char *const values[],
                         int64_t until_ns, snk_pg_reply *reply);

/* Sends text, perhaps of several statements. The rows of the last that had some are kept. */
void snk_pg_conn_query(snk_pg_conn *conn, const char *where, const char *text, int64_t until_ns, snk_pg_reply *reply);

/* Goes on waiting for an answer that was late. */
void snk_pg_conn_await(snk_pg_conn *conn, const char *where, int64_t until_ns, snk_pg_reply *reply);

#endif
