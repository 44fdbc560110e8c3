/* What PostgreSQL's error codes mean to us. */
#ifndef SNK_STORE_POSTGRES_ERRORS_H
#define SNK_STORE_POSTGRES_ERRORS_H

#include <libpq-fe.h>

#include "sneck.h"

#define SNK_PG_STATE_SIZE 6 /* five letters and NUL */

/* Why a connection could not be made. */
sneck_status snk_pg_connect_error(const PGconn *connection, const char *where, sneck_error *error);

/* True when what snk_pg_connect_error said is that the settings of our session are not taken: there is a pooler. */
bool snk_pg_refused_settings(const sneck_error *error);

/* Why a statement failed, and the code of it ("" when there is none). */
sneck_status snk_pg_result_error(const PGresult *result, const char *where, char state[SNK_PG_STATE_SIZE],
                                 sneck_error *error);

/*
 * Whether an error with this code proves that nothing was changed: the server has said it. libpq's own errors have none
 * (it may have had no memory for the answer), and what poolers say about a connection they lost proves nothing.
 */
bool snk_pg_is_proof(const char *state);

/* Serialization failures and deadlocks: it was rolled back, and may go well the next time. */
bool snk_pg_is_transient(const char *state);

/* The session has lost a prepared statement, or has one that it should not have: it is not ours. */
bool snk_pg_is_strange_session(const char *state);

/* This server takes no writes (any more): another connection may lead to one that does. */
bool snk_pg_is_read_only(const char *state);

/* The row is locked by another transaction. */
bool snk_pg_is_locked(const char *state);

#endif
