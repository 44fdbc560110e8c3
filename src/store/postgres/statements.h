/* Every statement that clients send, in one place: calls of the functions in schema/. */
#ifndef SNK_STORE_POSTGRES_STATEMENTS_H
#define SNK_STORE_POSTGRES_STATEMENTS_H

#include <libpq-fe.h>

typedef enum snk_pg_statement {
    SNK_PG_ACQUIRE,
    SNK_PG_RENEW,
    SNK_PG_RENEW_MANY,
    SNK_PG_RELEASE,
    SNK_PG_BREAK,
    SNK_PG_END_BACKEND,
    SNK_PG_INSPECT,
    SNK_PG_LIST,
    SNK_PG_TALLY,
    SNK_PG_VERSION,
    SNK_PG_VERSION_BUMP,
    SNK_PG_ROW_MAKE,
    SNK_PG_ROW_LOCK,
    SNK_PG_REAP,
    SNK_PG_NOTIFY,
    SNK_PG_STATEMENTS
} snk_pg_statement;

typedef struct snk_pg_sql {
    const char *name; /* when it is prepared */
    const char *text; /* parameters are $1, $2, … */
    int parameters;
} snk_pg_sql;

extern const snk_pg_sql snk_pg_sql_of[SNK_PG_STATEMENTS];

/* Of schema/, as one text that runs as one transaction. */
extern const char snk_pg_schema_text[];
#define SNK_PG_SCHEMA 1

/*
 * The statement with its parameters written into it (NULL: NULL), between `before` and `after`; free it. NULL: out of
 * memory, or a value is no valid text.
 */
char *snk_pg_sql_write(PGconn *connection, const char *before, snk_pg_statement which, const char *const values[],
                       const char *after);

#endif
