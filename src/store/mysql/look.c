/* Looking at locks, and breaking holds. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "store/mysql/mysql_store.h"
#include "store/sql/look.h"

static void show_row(MYSQL_ROW row, snk_view *view)
{
    const char *cells[SNK_SQL_COLUMNS];
    for (size_t i = 0; i < SNK_SQL_COLUMNS; i++)
        cells[i] = row[i] == NULL ? "" : row[i];
    snk_sql_show_row(cells, view);
}

sneck_status snk_my_inspect(snk_store *base, const char *name, snk_view *view, sneck_error *error)
{
    snk_my_store *store = snk_my_store_of(base);
    snk_sql_text text;
    snk_my_reply reply;
    snk_sql_text_init(&text);
    snk_sql_text_word(&text, "CALL sneck_inspect(");
    snk_my_add_resource(store, SNK_OBJECT_LOCK, name, &text);
    snk_sql_text_word(&text, ")");
    snk_my_run(store, &text, &reply);
    sneck_status status = snk_my_look_result(&reply, error);
    snk_view_reset(view);
    snk_view_name(view, name);
    if (status == SNECK_OK && (reply.result == NULL || mysql_num_fields(reply.result) != SNK_SQL_COLUMNS))
        status = snk_fail(error, SNECK_UNAVAILABLE, 0, "%s: the answer makes no sense", store->options.where);
    MYSQL_ROW row = NULL;
    while (status == SNECK_OK && (row = mysql_fetch_row(reply.result)) != NULL)
        show_row(row, view);
    snk_my_reply_clear(&reply);
    if (status == SNECK_OK && view->out_of_memory)
        return snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory");
    return status == SNECK_OK ? snk_ok(error) : status;
}

static sneck_status show_page(snk_sql_listing *list, MYSQL_RES *names, sneck_error *error)
{
    sneck_status status = SNECK_OK;
    MYSQL_ROW row = NULL;
    while (status == SNECK_OK && list->goes_on && (row = mysql_fetch_row(names)) != NULL)
        status = snk_sql_list_name(list, row[0], error);
    list->goes_on = list->goes_on && mysql_num_rows(names) == SNK_MY_LIST_PAGE;
    return status;
}

sneck_status snk_my_list(snk_store *base, const char *pattern, snk_view_fn callback, void *context, sneck_error *error)
{
    snk_my_store *store = snk_my_store_of(base);
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
    sneck_status status = SNECK_OK;
    while (status == SNECK_OK && list.goes_on) {
        snk_sql_text text;
        snk_my_reply reply;
        snk_sql_text_init(&text);
        snk_sql_text_word(&text, "CALL sneck_list(");
        snk_sql_text_hex(&text, store->prefix);
        snk_sql_text_word(&text, ",");
        snk_sql_text_hex(&text, list.after);
        snk_sql_text_word(&text, ",");
        snk_sql_text_number(&text, SNK_MY_LIST_PAGE);
        snk_sql_text_word(&text, ")");
        snk_my_run(store, &text, &reply);
        status = snk_my_look_result(&reply, error);
        if (status == SNECK_OK && reply.result != NULL)
            status = show_page(&list, reply.result, error);
        snk_my_reply_clear(&reply);
    }
    snk_view_free(list.view);
    return status == SNECK_OK ? snk_ok(error) : status;
}

sneck_status snk_my_break(snk_store *base, const char *name, uint64_t token, const char *reason, sneck_error *error)
{
    snk_my_store *store = snk_my_store_of(base);
    char why[SNK_WHY_LENGTH_MAX + SNK_HOST_LENGTH_MAX + 48];
    (void)snprintf(why, sizeof why, "%.200s (by pid %lld on %s)", reason, (long long)store->identity.pid,
                   store->identity.host);
    snk_sql_text text;
    snk_my_reply reply;
    snk_sql_text_init(&text);
    snk_sql_text_word(&text, "SELECT sneck_break(");
    snk_my_add_resource(store, SNK_OBJECT_LOCK, name, &text);
    snk_sql_text_word(&text, ",");
    snk_sql_text_number(&text, token <= INT64_MAX ? (int64_t)token : 0);
    snk_sql_text_word(&text, ",");
    snk_sql_text_hex(&text, why);
    snk_sql_text_word(&text, ")");
    snk_my_run(store, &text, &reply);
    sneck_status status = snk_my_change_result(&reply, error);
    bool broken = status == SNECK_OK && strcmp(snk_my_reply_text(&reply), "5") == 0;
    snk_my_reply_clear(&reply);
    if (status != SNECK_OK)
        return status;
    return broken ? snk_ok(error)
                  : snk_fail(error, SNECK_CONFLICT, 0, "%.120s is not held with token %" PRIu64, name, token);
}
