/* The first words with the server, and the tables and functions there. */
#include <mysqld_error.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "store/mysql/mysql_store.h"

#define OLDEST_SERVER 100600

static void query(snk_my_store *store, snk_my_conn *conn, const char *text, snk_my_reply *reply)
{
    snk_my_conn_query(conn, store->options.where, text, strlen(text), reply);
    snk_my_conn_drain(conn, reply);
}

static sneck_status run_schema(snk_my_store *store, snk_my_conn *conn, sneck_error *error)
{
    static const char parting[] = "\n//\n";
    sneck_status status = SNECK_OK;
    const char *at = snk_my_schema_text;
    const char *end = NULL;
    while (status == SNECK_OK && (end = strstr(at, parting)) != NULL) {
        snk_my_reply reply;
        snk_my_conn_query(conn, store->options.where, at, (size_t)(end - at), &reply);
        snk_my_conn_drain(conn, &reply);
        status = snk_my_look_result(&reply, error);
        snk_my_reply_clear(&reply);
        at = end + sizeof parting - 1;
    }
    if (status == SNECK_DENIED && error != NULL) {
        sneck_error why = *error;
        return snk_fail(error, SNECK_DENIED, 0,
                        "this user may not make the tables; run sneck setup as one that may: %.140s", why.message);
    }
    return status;
}

/* SNECK_OK, with the version of the tables; 0: there are none. */
static sneck_status read_version(snk_my_store *store, snk_my_conn *conn, long *version_out, sneck_error *error)
{
    snk_my_reply reply;
    query(store, conn, "SELECT sneck_schema()", &reply);
    *version_out = strtol(snk_my_reply_text(&reply), NULL, 10);
    sneck_status status = snk_my_look_result(&reply, error);
    snk_my_reply_clear(&reply);
    return status != SNECK_OK && reply.code == ER_SP_DOES_NOT_EXIST ? SNECK_OK : status;
}

static sneck_status greet_on(snk_my_store *store, snk_my_conn *conn, bool anew, sneck_error *error)
{
    long version = 0;
    if (strstr(mysql_get_server_info(conn->my), "MariaDB") == NULL ||
        mysql_get_server_version(conn->my) < OLDEST_SERVER)
        return snk_fail(error, SNECK_UNSUPPORTED, 0, "%s: sneck needs MariaDB 10.6 or later here, and this is %.60s",
                        store->options.where, mysql_get_server_info(conn->my));
    sneck_status status = read_version(store, conn, &version, error);
    if (status == SNECK_OK && version <= SNK_MY_SCHEMA && (anew || version == 0)) {
        status = run_schema(store, conn, error);
        if (status == SNECK_OK)
            status = read_version(store, conn, &version, error);
    }
    if (status == SNECK_OK && version != SNK_MY_SCHEMA)
        status =
            snk_fail(error, SNECK_UNSUPPORTED, 0, "%s: the tables are of version %ld, and this sneck knows %d%s",
                     store->options.where, version, SNK_MY_SCHEMA, version < SNK_MY_SCHEMA ? ": run sneck setup" : "");
    return status;
}

sneck_status snk_my_greet(snk_my_store *store, bool anew, sneck_error *error)
{
    sneck_error problem;
    snk_my_conn *conn = snk_my_pool_take(&store->pool, &problem);
    if (conn == NULL)
        return snk_fail_as(error, &problem);
    sneck_status status = greet_on(store, conn, anew, error);
    snk_my_pool_give(&store->pool, conn, status != SNECK_OK);
    return status;
}
