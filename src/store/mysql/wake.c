/*
 * Being told. MariaDB has no messages, but a session can wait on the server until another one ends its statement: a thread
 * of ours sleeps there (sneck_listen), under a name by which the function that grants a claim of this client finds it
 * (sneck_ring). Which claims those were is read from a table, within the same question; so nothing is missed between two
 * sleeps. Whatever it says, all it does is that claims of ours which wait are asked about.
 *
 * Whether we are told is the server's word, in each answer to a claim that waits: it knows whether such a session is there.
 * So a claim that was queued before the session was there, or while it is gone, looks again and again.
 */
#include <stdio.h>
#include <string.h>

#include <mysqld_error.h>

#include "base/clock.h"
#include "base/error.h"
#include "engine/renewal.h"
#include "store/mysql/mysql_store.h"

#define STATEMENT_SIZE 256
#define VALUE_SIZE 8

/* ---- One question ---- */

typedef enum heard {
    HEARD_ANSWER,
    HEARD_CALL, /* the statement was ended: somebody called */
    HEARD_END   /* the connection is gone, or it is to stop */
} heard;

/* Tells the claims that the rows name; `value` is what the last row said if it is no claim, as far as there is room. */
static void take_rows(snk_my_store *store, snk_my_reply *reply, char value[VALUE_SIZE])
{
    MYSQL_ROW row = NULL;
    while (reply->result != NULL && (row = mysql_fetch_row(reply->result)) != NULL) {
        snk_id claim;
        if (row[0] == NULL)
            continue;
        if (snk_id_from_hex(&claim, row[0]))
            snk_sql_waiters_tell(&store->waiters, &claim);
        else
            (void)snk_copy_text(value, VALUE_SIZE, row[0]);
    }
}

/* Asks on the connection of the ear. */
static heard ask(snk_my_store *store, snk_my_conn *conn, const char *text, char value[VALUE_SIZE])
{
    snk_my_reply reply;
    int64_t limit_ns = store->options.timeout_ns + SNK_MY_LISTEN_S * SNK_NS_PER_S;
    value[0] = '\0';
    if (snk_my_conn_send(conn, store->options.where, text, strlen(text), &reply))
        snk_my_conn_await(conn, store->options.where, store->ear.stop_fd, snk_time_add(snk_now_ns(), limit_ns), &reply);
    while (reply.outcome == SNK_SQL_ANSWERED) {
        take_rows(store, &reply, value);
        if (!mysql_more_results(conn->my))
            break;
        snk_my_conn_next(conn, store->options.where, &reply);
    }
    snk_my_reply_clear(&reply);
    if (reply.outcome == SNK_SQL_ANSWERED)
        return HEARD_ANSWER;
    return reply.code == ER_QUERY_INTERRUPTED && !reply.is_broken ? HEARD_CALL : HEARD_END;
}

/* Asks until it is answered: a call may come at any time, and ends whatever is asked then. */
static bool insist(snk_my_store *store, snk_my_conn *conn, const char *text, char value[VALUE_SIZE])
{
    heard result = HEARD_CALL;
    while (result == HEARD_CALL)
        result = ask(store, conn, text, value);
    return result == HEARD_ANSWER;
}

/* Takes a name by GET_LOCK. A session of ours that had it, and whose end the server has not noticed, is ended. */
static bool take_name(snk_my_store *store, snk_my_conn *conn, const char *before)
{
    char text[STATEMENT_SIZE];
    char value[VALUE_SIZE];
    (void)snprintf(text, sizeof text,
                   "BEGIN NOT ATOMIC DECLARE v BIGINT DEFAULT IS_USED_LOCK('%s%s');"
                   " IF v <> CONNECTION_ID() THEN KILL CONNECTION v; END IF; END",
                   before, store->identity.uuid);
    if (!insist(store, conn, text, value))
        return false;
    (void)snprintf(text, sizeof text, "SELECT GET_LOCK('%s%s', 2)", before, store->identity.uuid);
    return insist(store, conn, text, value) && strcmp(value, "1") == 0;
}

/* ---- The session ---- */

typedef enum session {
    SESSION_ENDED, /* it was heard for a while */
    SESSION_FAILED,
    SESSION_DEAF /* calls never come here */
} session;

/* Whether statements go to the server that this session is on, and may call it. */
static session try_out(snk_my_store *store, snk_my_conn *conn)
{
    snk_sql_text text;
    snk_my_reply reply;
    char value[VALUE_SIZE];
    if (!insist(store, conn, "SET SESSION max_statement_time = 0", value) || !take_name(store, conn, "sneck.try."))
        return SESSION_FAILED;
    snk_sql_text_init(&text);
    snk_sql_text_word(&text, "SELECT sneck_hears('");
    snk_sql_text_word(&text, store->identity.uuid);
    snk_sql_text_word(&text, "')");
    snk_my_run(store, &text, &reply);
    bool is_deaf = reply.outcome == SNK_SQL_ANSWERED && strcmp(snk_my_reply_text(&reply), "1") != 0;
    snk_my_reply_clear(&reply);
    is_deaf = is_deaf || reply.code == ER_PROCACCESS_DENIED_ERROR || reply.code == ER_SP_DOES_NOT_EXIST;
    if (is_deaf)
        return SESSION_DEAF;
    return reply.outcome == SNK_SQL_ANSWERED ? SESSION_ENDED : SESSION_FAILED;
}

static session listen_on(snk_my_store *store, snk_my_conn *conn)
{
    char text[STATEMENT_SIZE];
    char value[VALUE_SIZE];
    session result = try_out(store, conn);
    if (result != SESSION_ENDED)
        return result;
    if (!take_name(store, conn, "sneck."))
        return SESSION_FAILED;
    snk_sql_ear_set(&store->ear, SNK_SQL_HEARS);
    /* What was granted before was not said. */
    snk_sql_waiters_tell_all(&store->waiters);
    (void)snprintf(text, sizeof text, "CALL sneck_listen('%s', %d)", store->identity.uuid, SNK_MY_LISTEN_S);
    while (ask(store, conn, text, value) != HEARD_END)
        ;
    return SESSION_ENDED;
}

static session listen_once(snk_my_store *store)
{
    sneck_error error;
    snk_my_conn conn = { .my = snk_my_dial(&store->options, &error) };
    if (conn.my == NULL)
        return SESSION_FAILED;
    atomic_store(&store->ear.socket, (int)mysql_get_socket(conn.my));
    session result = listen_on(store, &conn);
    atomic_store(&store->ear.socket, -1);
    snk_my_hang_up(conn.my);
    return result;
}

static void become_deaf(snk_my_store *store)
{
    char text[256];
    (void)snprintf(text, sizeof text, "event=polling server=\"%s\" reason=rights", store->options.where);
    if (store->log != NULL)
        store->log(store->log_context, SNECK_LOG_WARNING, text);
    snk_sql_ear_set(&store->ear, SNK_SQL_DEAF);
}

static void *run(void *argument)
{
    snk_my_store *store = argument;
    session result = SESSION_FAILED;
    unsigned failures = 0;
    do {
        result = listen_once(store);
        snk_sql_ear_set(&store->ear, SNK_SQL_SILENT);
        failures = result == SESSION_ENDED ? 1 : failures + 1;
        if (result == SESSION_ENDED && !snk_sql_ear_is_stopping(&store->ear, 0))
            snk_sql_waiters_tell_all(&store->waiters); /* they must look for themselves again */
    } while (result != SESSION_DEAF &&
             !snk_sql_ear_is_stopping(&store->ear, snk_backoff_ns(failures, SNK_BACKOFF_NS_MAX)));
    if (result == SESSION_DEAF)
        become_deaf(store);
    return NULL;
}

/* ---- What the store wants ---- */

bool snk_my_listen(snk_store *base)
{
    snk_my_store *store = snk_my_store_of(base);
    return snk_sql_ear_listen(&store->ear, run, store);
}

bool snk_my_wait(snk_store *base, uint64_t ticket, _Atomic uint32_t *word, uint32_t expected, int64_t until_ns)
{
    return snk_bell_wait(&snk_my_store_of(base)->waiters.bell, ticket, word, expected, until_ns);
}
