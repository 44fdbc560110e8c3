/* Running statements: which connection, and how often. */
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "store/mysql/mysql_store.h"

void snk_my_add_resource(const snk_my_store *store, snk_object object, const char *name, snk_sql_text *to)
{
    char resource[SNK_MY_RESOURCE_SIZE];
    (void)snprintf(resource, sizeof resource, "%s%s%s", snk_object_mark(object), store->prefix, name);
    snk_sql_text_hex(to, resource);
}

void snk_my_add_id(snk_sql_text *to, const snk_id *id)
{
    char digits[SNK_ID_TEXT_SIZE];
    snk_id_to_hex(id, digits);
    snk_sql_text_word(to, "'");
    snk_sql_text_word(to, digits);
    snk_sql_text_word(to, "'");
}

static void run_once(snk_my_store *store, const snk_sql_text *text, snk_my_reply *reply)
{
    *reply = (snk_my_reply){ .outcome = SNK_SQL_FAILED };
    snk_my_conn *conn = snk_my_pool_take(&store->pool, &reply->error);
    if (conn == NULL)
        return;
    snk_my_conn_query(conn, store->options.where, text->text, text->length, reply);
    snk_my_conn_drain(conn, reply);
    snk_my_pool_give(&store->pool, conn, reply->is_broken);
}

void snk_my_run(snk_my_store *store, snk_sql_text *text, snk_my_reply *reply)
{
    *reply = (snk_my_reply){ .outcome = SNK_SQL_FAILED };
    if (text->text == NULL) {
        (void)snk_fail(&reply->error, SNECK_NO_MEMORY, 0, "out of memory");
        return;
    }
    for (unsigned tries = 1;; tries++) {
        run_once(store, text, reply);
        if (reply->outcome != SNK_SQL_FAILED || !snk_my_is_transient(reply->code) || tries == SNK_MY_TRIES_MAX)
            break;
        /* Those that met in a deadlock should not meet again. */
        struct timespec pause = snk_timespec(SNK_NS_PER_MS * tries + snk_now_ns() % SNK_NS_PER_MS);
        (void)nanosleep(&pause, NULL);
    }
    snk_sql_text_deinit(text);
}

sneck_status snk_my_change_result(const snk_my_reply *reply, sneck_error *error)
{
    return reply->outcome == SNK_SQL_ANSWERED ? SNECK_OK : snk_fail_as(error, &reply->error);
}

sneck_status snk_my_look_result(const snk_my_reply *reply, sneck_error *error)
{
    sneck_status status = snk_my_change_result(reply, error);
    if (status != SNECK_UNKNOWN)
        return status;
    if (error != NULL)
        error->status = SNECK_UNAVAILABLE;
    return SNECK_UNAVAILABLE;
}
