/* The first words with the server, and the tables and functions there. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "store/postgres/postgres.h"

/* What a session says of itself: whether our settings reached it, and whether there are functions of ours. */
static const char first_words[] = "SELECT coalesce(current_setting('sneck.client', true), ''),"
                                  " to_regprocedure('sneck_schema()') IS NOT NULL,"
                                  " current_setting('server_version_num')::int";

#define OLDEST_SERVER 140000

static void query(snk_pg_store *store, snk_pg_conn *conn, const char *text, int64_t time_ns, snk_pg_reply *reply)
{
    snk_pg_reply_init(reply);
    snk_pg_conn_query(conn, store->options.where, text, snk_time_add(snk_now_ns(), time_ns), reply);
}

static sneck_status run_schema(snk_pg_store *store, snk_pg_conn *conn, bool is_there, sneck_error *error)
{
    static const char before[] = "SET LOCAL statement_timeout = 60000; SET LOCAL lock_timeout = 60000;"
                                 " SET LOCAL check_function_bodies = off;";
    size_t size = sizeof before + strlen(snk_pg_schema_text);
    char *text = malloc(size);
    if (text == NULL)
        return snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory");
    memcpy(text, before, sizeof before - 1);
    memcpy(text + sizeof before - 1, snk_pg_schema_text, size - sizeof before + 1);
    snk_pg_reply reply;
    query(store, conn, text, SNK_PG_SETUP_NS, &reply);
    free(text);
    sneck_status status = snk_pg_look_result(&reply, error);
    snk_pg_reply_clear(&reply);
    if (status == SNECK_DENIED)
        return snk_fail(error, SNECK_DENIED, 0, "%s: the tables of sneck are %s, and this role may not %s them%s",
                        store->options.where, is_there ? "there" : "not there", is_there ? "change" : "make",
                        is_there ? "" : "; run sneck setup as one that may");
    return status;
}

/* `may_be_older`: the tables are about to be brought up to date. */
static sneck_status check_version(snk_pg_store *store, snk_pg_conn *conn, bool may_be_older, sneck_error *error)
{
    snk_pg_reply reply;
    query(store, conn, "SELECT sneck_schema()", store->options.timeout_ns, &reply);
    sneck_status status = snk_pg_look_result(&reply, error);
    long version = strtol(snk_pg_reply_text(&reply), NULL, 10);
    snk_pg_reply_clear(&reply);
    if (status != SNECK_OK)
        return status;
    if (version > SNK_PG_SCHEMA)
        return snk_fail(error, SNECK_UNSUPPORTED, 0,
                        "%s: the tables are of version %ld, made by a later sneck; this one knows %d",
                        store->options.where, version, SNK_PG_SCHEMA);
    if (version < SNK_PG_SCHEMA && !may_be_older)
        return snk_fail(error, SNECK_UNSUPPORTED, 0,
                        "%s: the tables are of version %ld, and this sneck needs %d: run sneck setup",
                        store->options.where, version, SNK_PG_SCHEMA);
    return SNECK_OK;
}

/* Reads the first words; `*has_functions_out`: there is something of ours already. */
static sneck_status read_words(snk_pg_store *store, const snk_pg_reply *reply, bool *has_functions_out,
                               sneck_error *error)
{
    const PGresult *row = reply->result;
    if (row == NULL || PQntuples(row) != 1 || PQnfields(row) != 3)
        return snk_fail(error, SNECK_UNAVAILABLE, 0, "%s: the answer makes no sense", store->options.where);
    /* Our settings were taken at the door, and are not here: the session is somebody else's. */
    if (strcmp(PQgetvalue(row, 0, 0), store->identity.uuid) != 0)
        atomic_store(&store->target->is_pooled, true);
    *has_functions_out = PQgetvalue(row, 0, 1)[0] == 't';
    if (strtol(PQgetvalue(row, 0, 2), NULL, 10) < OLDEST_SERVER)
        return snk_fail(error, SNECK_UNSUPPORTED, 0, "%s: sneck needs PostgreSQL 14 or later", store->options.where);
    return SNECK_OK;
}

static sneck_status greet_on(snk_pg_store *store, snk_pg_conn *conn, bool anew, sneck_error *error)
{
    snk_pg_reply reply;
    bool has_functions = false;
    query(store, conn, first_words, store->options.timeout_ns, &reply);
    sneck_status status = snk_pg_look_result(&reply, error);
    if (status == SNECK_OK)
        status = read_words(store, &reply, &has_functions, error);
    snk_pg_reply_clear(&reply);
    /* What a later sneck has made is not taken back. */
    if (status == SNECK_OK && anew && has_functions)
        status = check_version(store, conn, true, error);
    if (status == SNECK_OK && (anew || !has_functions))
        status = run_schema(store, conn, has_functions, error);
    return status == SNECK_OK ? check_version(store, conn, false, error) : status;
}

sneck_status snk_pg_greet(snk_pg_store *store, bool anew, sneck_error *error)
{
    sneck_error problem;
    int64_t until_ns = snk_time_add(snk_now_ns(), store->options.timeout_ns);
    snk_pg_conn *conn = snk_pg_pool_take(&store->pool, false, until_ns, &problem);
    if (conn == NULL)
        return snk_fail_as(error, &problem);
    sneck_status status = greet_on(store, conn, anew, error);
    snk_pg_pool_give(&store->pool, conn, status != SNECK_OK);
    return status;
}
