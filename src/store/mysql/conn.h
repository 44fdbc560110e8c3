/* One connection to a MariaDB server: dialing, a statement and its answer, and what its errors mean. */
#ifndef SNK_STORE_MYSQL_CONN_H
#define SNK_STORE_MYSQL_CONN_H

#include <mysql.h>

#include "base/list.h"
#include "store/mysql/options.h"
#include "store/sql/answer.h"

typedef struct snk_my_conn {
    snk_link link; /* in the pool, while it is idle */
    MYSQL *my;     /* owned */
    unsigned slot; /* in the pool's table of sockets */
} snk_my_conn;

typedef struct snk_my_reply {
    snk_sql_outcome outcome;
    sneck_error error; /* unless it was answered */
    unsigned code;     /* the server's or the library's; 0: none */
    bool is_broken;    /* the connection is of no more use */
    MYSQL_RES *result; /* owned; what was answered, or NULL */
} snk_my_reply;

/* NULL, with the error, when none of the hosts can be reached. */
MYSQL *snk_my_dial(const snk_my_options *options, sneck_error *error);
/* Ends a connection without a word to the server. */
void snk_my_hang_up(MYSQL *my);

bool snk_my_conn_is_alive(const snk_my_conn *conn);

/* Runs one statement and awaits its end. Clear the reply. */
void snk_my_conn_query(snk_my_conn *conn, const char *where, const char *text, size_t length, snk_my_reply *reply);
/* Reads the answer to a statement that was sent by mysql_send_query (with whose failure, if it failed). */
void snk_my_conn_read(snk_my_conn *conn, const char *where, bool was_sent, snk_my_reply *reply);
/*
 * The answer to the next of several statements that were sent in one text; `reply` is that of the one before, and stays as
 * it is when that one was not answered: the server stops at the first error, so the rest did not happen or nobody knows.
 */
void snk_my_conn_next(snk_my_conn *conn, const char *where, snk_my_reply *reply);
/* Whatever is left of the answers is read and dropped. */
void snk_my_conn_drain(snk_my_conn *conn, snk_my_reply *reply);

void snk_my_reply_clear(snk_my_reply *reply);
/* The first value of the first row; "" when there is none. */
const char *snk_my_reply_text(snk_my_reply *reply);

/* The whole transaction was rolled back, and may well work when tried again. */
bool snk_my_is_transient(unsigned code);

#endif
