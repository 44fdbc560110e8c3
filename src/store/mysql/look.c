/* Looking at locks, and breaking holds. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "store/glob.h"
#include "store/mysql/mysql_store.h"
#include "store/view.h"

/* The columns of sneck_inspect. */
enum {
    COLUMN_WHAT,
    COLUMN_OWNER,
    COLUMN_HOST,
    COLUMN_WORDS,
    COLUMN_PID,
    COLUMN_AGE_US, /* of an incident: when it was */
    COLUMN_REMAINING_US,
    COLUMN_TOKEN,
    COLUMN_FAIR,
    COLUMN_MODE,
    COLUMN_UNITS, /* of the counter: the count */
    COLUMNS
};

static int64_t number(MYSQL_ROW row, int column)
{
    return row[column] == NULL ? 0 : strtoll(row[column], NULL, 10);
}

static void show_row(MYSQL_ROW row, snk_view *view)
{
    const char *what = row[COLUMN_WHAT];
    uint64_t token = (uint64_t)number(row, COLUMN_TOKEN);
    int64_t age_us = number(row, COLUMN_AGE_US);
    const sneck_party party = {
        .owner = row[COLUMN_OWNER],
        .host = row[COLUMN_HOST],
        .why = row[COLUMN_WORDS],
        .pid = number(row, COLUMN_PID),
        .age_ms = age_us > 0 ? age_us / 1000 : 0,
        .remaining_ms = number(row, COLUMN_REMAINING_US) / 1000,
        .mode = snk_mode_word((snk_mode)number(row, COLUMN_MODE)),
        .units = (uint32_t)number(row, COLUMN_UNITS),
    };
    if (strcmp(what, "counter") == 0) {
        view->info.token = token;
        view->info.permits = number(row, COLUMN_UNITS);
    } else if (strcmp(what, "holder") == 0) {
        snk_view_hold(view, &party, token, number(row, COLUMN_FAIR) != 0);
    } else if (strcmp(what, "waiter") == 0) {
        snk_view_waiter(view, &party);
    } else {
        snk_view_incident(
            view,
            &(sneck_incident){
                .time_ms = age_us / 1000, .kind = what, .owner = party.owner, .text = party.why, .token = token });
    }
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
    if (status == SNECK_OK && (reply.result == NULL || mysql_num_fields(reply.result) != COLUMNS))
        status = snk_fail(error, SNECK_UNAVAILABLE, 0, "%s: the answer makes no sense", store->options.where);
    MYSQL_ROW row = NULL;
    while (status == SNECK_OK && (row = mysql_fetch_row(reply.result)) != NULL)
        show_row(row, view);
    snk_my_reply_clear(&reply);
    if (status == SNECK_OK && view->out_of_memory)
        return snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory");
    return status == SNECK_OK ? snk_ok(error) : status;
}

typedef struct listing {
    snk_my_store *store;
    const char *pattern;
    snk_view_fn callback;
    void *context;
    snk_view *view;
    char after[SNK_MY_RESOURCE_SIZE];
    bool goes_on;
} listing;

static sneck_status show_page(listing *list, MYSQL_RES *names, sneck_error *error)
{
    size_t prefix_length = strlen(list->store->prefix);
    sneck_status status = SNECK_OK;
    unsigned count = 0;
    MYSQL_ROW row = NULL;
    while (status == SNECK_OK && list->goes_on && (row = mysql_fetch_row(names)) != NULL) {
        count++;
        (void)snk_copy_text(list->after, sizeof list->after, row[0]);
        const char *name = list->after + prefix_length;
        if (!snk_glob_matches(list->pattern, name))
            continue;
        status = snk_my_inspect(&list->store->base, name, list->view, error);
        /* It may have become free since. */
        if (status == SNECK_OK && (list->view->info.held || list->view->info.waiter_count > 0))
            list->goes_on = list->callback(list->context, list->view);
    }
    list->goes_on = list->goes_on && count == SNK_MY_LIST_PAGE;
    return status;
}

sneck_status snk_my_list(snk_store *base, const char *pattern, snk_view_fn callback, void *context, sneck_error *error)
{
    snk_my_store *store = snk_my_store_of(base);
    listing list = { .store = store, .pattern = pattern, .callback = callback, .context = context, .goes_on = true };
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
