#include "store/postgres/statements.h"

#include <stdlib.h>
#include <string.h>

#include "store/sql/text.h"

const snk_pg_sql snk_pg_sql_of[SNK_PG_STATEMENTS] = {
    [SNK_PG_ACQUIRE] = { "sneck_acquire",
                         "SELECT sneck_acquire($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)", 15 },
    [SNK_PG_RENEW] = { "sneck_renew", "SELECT sneck_renew($1, $2, $3, $4)", 4 },
    /* In the order of the arrays: whoever sends it sorts by name, so that two of them never wait for each other. */
    [SNK_PG_RENEW_MANY] = { "sneck_renew_many",
                            "SELECT sneck_renew(name, claim, lease, NULL)"
                            " FROM unnest($1::text[], $2::uuid[], $3::bigint[]) AS asked(name, claim, lease)",
                            3 },
    [SNK_PG_RELEASE] = { "sneck_release", "SELECT sneck_release($1, $2, $3, $4)", 4 },
    [SNK_PG_BREAK] = { "sneck_break", "SELECT sneck_break($1, $2, $3)", 3 },
    [SNK_PG_END_BACKEND] = { "sneck_end_backend",
                             "SELECT pg_terminate_backend(pid, 1000) FROM pg_locks WHERE locktype = 'transactionid'"
                             " AND mode = 'ExclusiveLock' AND granted AND transactionid = $1::xid8::xid",
                             1 },
    [SNK_PG_INSPECT] = { "sneck_inspect", "SELECT * FROM sneck_inspect($1)", 1 },
    [SNK_PG_LIST] = { "sneck_list", "SELECT sneck_list($1, $2, $3)", 3 },
    [SNK_PG_TALLY] = { "sneck_tally", "SELECT sneck_tally($1, $2, $3, $4)", 4 },
    [SNK_PG_VERSION] = { "sneck_version", "SELECT sneck_version($1)", 1 },
    [SNK_PG_VERSION_BUMP] = { "sneck_version_bump", "SELECT sneck_version_bump($1, $2)", 2 },
    [SNK_PG_ROW_MAKE] = { "sneck_row_make", "SELECT sneck_row_make($1)", 1 },
    [SNK_PG_ROW_LOCK] = { "sneck_row_lock", "SELECT sneck_row_lock($1, $2)", 2 },
    [SNK_PG_REAP] = { "sneck_reap", "SELECT sneck_reap($1)", 1 },
    [SNK_PG_NOTIFY] = { "sneck_notify", "SELECT pg_notify($1, $2)", 2 },
};

static void append_value(snk_sql_text *to, PGconn *connection, const char *value)
{
    if (value == NULL) {
        snk_sql_text_word(to, "NULL");
        return;
    }
    char *literal = PQescapeLiteral(connection, value, strlen(value));
    if (literal != NULL) {
        snk_sql_text_word(to, literal);
    } else {
        snk_sql_text_spoil(to);
    }
    PQfreemem(literal);
}

char *snk_pg_sql_write(PGconn *connection, const char *before, snk_pg_statement which, const char *const values[],
                       const char *after)
{
    snk_sql_text made;
    snk_sql_text_init(&made);
    snk_sql_text_word(&made, before);
    const char *at = snk_pg_sql_of[which].text;
    while (*at != '\0') {
        size_t plain = strcspn(at, "$");
        snk_sql_text_add(&made, at, plain);
        at += plain;
        if (*at == '\0')
            break;
        char *end = NULL;
        long number = strtol(at + 1, &end, 10);
        if (number < 1 || number > snk_pg_sql_of[which].parameters)
            break; /* no statement is like that */
        append_value(&made, connection, values[number - 1]);
        at = end;
    }
    snk_sql_text_word(&made, after);
    return made.text;
}
