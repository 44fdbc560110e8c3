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
    int64_t timeout_ns;
} snk_my_conn;

typedef struct snk_my_reply {
    snk_sql_outcome outcome;
    sneck_error error; /* unless it was answered */
    unsigned code;     /* the server's or the library's; 0: none */
    bool is_broken;    /* the connection is of no more use */
    bool is_late;      /* uncertain, because time was over: the answer may still come */
    MYSQL_RES *result; /* owned; what was answered, or NULL */
} snk_my_reply;

/* To the first of the hosts that takes writes, or else that can be reached; NULL, with the error, when there is none. */
MYSQL *snk_my_dial(const snk_my_options *options, sneck_error *error);
/* Ends a connection without a word to the server. */
void snk_my_hang_up(MYSQL *my);

bool snk_my_conn_is_alive(const snk_my_conn *conn);

/* Runs one statement and awaits its end. Clear the reply. */
void snk_my_conn_query(snk_my_conn *conn, const char *where, const char *text, size_t length, snk_my_reply *reply);
/* The same in two steps: sends it. False, with the reply, when that fails. */
bool snk_my_conn_send(snk_my_conn *conn, const char *where, const char *text, size_t length, snk_my_reply *reply);
/*
 * Waits for the answer until then, or until `stop_fd` (-1: none) is readable; then the reply is late, and it may be awaited
 * again.
 */
void snk_my_conn_await(snk_my_conn *conn, const char *where, int stop_fd, int64_t until_ns, snk_my_reply *reply);
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
