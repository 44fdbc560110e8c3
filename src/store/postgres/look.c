/* Looking at locks, and breaking holds. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "store/postgres/postgres.h"
#include "store/sql/look.h"

/* ---- One lock ---- */

static void show_row(const PGresult *rows, int row, snk_view *view)
{
    const char *cells[SNK_SQL_COLUMNS];
    for (int i = 0; i < SNK_SQL_COLUMNS; i++)
        cells[i] = PQgetvalue(rows, row, i);
    snk_sql_show_row(cells, view);
}

sneck_status snk_pg_inspect(snk_store *base, const char *name, snk_view *view, sneck_error *error)
{
    snk_pg_store *store = snk_pg_store_of(base);
    char resource[SNK_PG_RESOURCE_SIZE];
    snk_pg_resource(store, SNK_OBJECT_LOCK, name, resource);
    const char *const values[] = { resource };
    snk_pg_reply reply;
    snk_pg_run(store, SNK_PG_INSPECT, values, &reply);
    sneck_status status = snk_pg_look_result(&reply, error);
    snk_view_reset(view);
    snk_view_name(view, name);
    if (status == SNECK_OK && PQnfields(reply.result) != SNK_SQL_COLUMNS)
        status = snk_fail(error, SNECK_UNAVAILABLE, 0, "%s: the answer makes no sense", store->options.where);
    for (int row = 0; status == SNECK_OK && row < PQntuples(reply.result); row++)
        show_row(reply.result, row, view);
    snk_pg_reply_clear(&reply);
    if (status == SNECK_OK && view->out_of_memory)
        return snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory");
    return status == SNECK_OK ? snk_ok(error) : status;
}

/* ---- All locks ---- */

static sneck_status show_page(snk_sql_listing *list, const PGresult *names, sneck_error *error)
{
    int count = PQntuples(names);
    sneck_status status = SNECK_OK;
    for (int i = 0; i < count && status == SNECK_OK && list->goes_on; i++)
        status = snk_sql_list_name(list, PQgetvalue(names, i, 0), error);
    list->goes_on = list->goes_on && count == SNK_PG_LIST_PAGE;
    return status;
}

sneck_status snk_pg_list(snk_store *base, const char *pattern, snk_view_fn callback, void *context, sneck_error *error)
{
    snk_pg_store *store = snk_pg_store_of(base);
    snk_sql_listing list = {
        .store = base,
        .prefix_length = strlen(store->prefix),
        .pattern = pattern,
        .callback = callback,
        .context = context,
        .goes_on = true,
    };
    list.view = snk_view_new();
    if (list.view == NULL)
        return snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory");
    char most[16];
    (void)snprintf(most, sizeof most, "%d", SNK_PG_LIST_PAGE);
    sneck_status status = SNECK_OK;
    while (status == SNECK_OK && list.goes_on) {
        const char *const values[] = { store->prefix, list.after, most };
        snk_pg_reply reply;
        snk_pg_run(store, SNK_PG_LIST, values, &reply);
        status = snk_pg_look_result(&reply, error);
        if (status == SNECK_OK)
            status = show_page(&list, reply.result, error);
        snk_pg_reply_clear(&reply);
    }
    snk_view_free(list.view);
    return status == SNECK_OK ? snk_ok(error) : status;
}

/* ---- Changes ---- */

/*
 * The holder that was broken has the row of its lock in a transaction (mode=row): that one ends too, if our role may do
 * that. Otherwise it ends when its client hears of it.
 */
static void end_transaction(snk_pg_store *store, int64_t xid)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%" PRId64, xid);
    const char *const values[] = { text };
    snk_pg_reply reply;
    snk_pg_run(store, SNK_PG_END_BACKEND, values, &reply);
    if (reply.outcome != SNK_SQL_ANSWERED)
        snk_pg_log(store, SNECK_LOG_WARNING, "event=row-kept reason=\"%s\"", reply.error.message);
    snk_pg_reply_clear(&reply);
}

sneck_status snk_pg_break(snk_store *base, const char *name, uint64_t token, const char *reason, sneck_error *error)
{
    snk_pg_store *store = snk_pg_store_of(base);
    char resource[SNK_PG_RESOURCE_SIZE];
    char token_text[24];
    char text[SNK_WHY_LENGTH_MAX + SNK_HOST_LENGTH_MAX + 48];
    snk_pg_resource(store, SNK_OBJECT_LOCK, name, resource);
    (void)snprintf(token_text, sizeof token_text, "%" PRIu64, token);
    (void)snprintf(text, sizeof text, "%.200s (by pid %lld on %s)", reason, (long long)store->identity.pid,
                   store->identity.host);
    const char *const values[] = { resource, token_text, text };
    snk_pg_reply reply;
    snk_sql_numbers numbers = { .at = { 0 } };
    if (token > INT64_MAX)
        return snk_fail(error, SNECK_CONFLICT, 0, "%.120s is not held with token %" PRIu64, name, token);
    snk_pg_run(store, SNK_PG_BREAK, values, &reply);
    sneck_status status = snk_pg_change_result(&reply, error);
    bool broken = status == SNECK_OK && snk_sql_numbers_read(&numbers, snk_pg_reply_text(&reply)) &&
                  numbers.at[0] == SNK_SQL_DONE;
    snk_pg_reply_clear(&reply);
    if (status != SNECK_OK)
        return status;
    if (!broken)
        return snk_fail(error, SNECK_CONFLICT, 0, "%.120s is not held with token %" PRIu64, name, token);
    if (numbers.at[1] != 0)
        end_transaction(store, numbers.at[1]);
    return snk_ok(error);
}
