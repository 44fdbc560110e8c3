/* Looking at locks, and breaking holds. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "store/glob.h"
#include "store/postgres/postgres.h"
#include "store/view.h"

/* ---- One lock ---- */

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

static int64_t number(const PGresult *rows, int row, int column)
{
    return strtoll(PQgetvalue(rows, row, column), NULL, 10);
}

static void show_row(const PGresult *rows, int row, snk_view *view)
{
    const char *what = PQgetvalue(rows, row, COLUMN_WHAT);
    uint64_t token = (uint64_t)number(rows, row, COLUMN_TOKEN);
    int64_t age_us = number(rows, row, COLUMN_AGE_US);
    const sneck_party party = {
        .owner = PQgetvalue(rows, row, COLUMN_OWNER),
        .host = PQgetvalue(rows, row, COLUMN_HOST),
        .why = PQgetvalue(rows, row, COLUMN_WORDS),
        .pid = number(rows, row, COLUMN_PID),
        .age_ms = age_us > 0 ? age_us / 1000 : 0,
        .remaining_ms = number(rows, row, COLUMN_REMAINING_US) / 1000,
        .mode = snk_mode_word((snk_mode)number(rows, row, COLUMN_MODE)),
        .units = (uint32_t)number(rows, row, COLUMN_UNITS),
    };
    if (strcmp(what, "counter") == 0) {
        view->info.token = token;
        view->info.permits = number(rows, row, COLUMN_UNITS);
    } else if (strcmp(what, "holder") == 0) {
        snk_view_hold(view, &party, token, PQgetvalue(rows, row, COLUMN_FAIR)[0] == 't');
    } else if (strcmp(what, "waiter") == 0) {
        snk_view_waiter(view, &party);
    } else {
        snk_view_incident(
            view,
            &(sneck_incident){
                .time_ms = age_us / 1000, .kind = what, .owner = party.owner, .text = party.why, .token = token });
    }
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
    if (status == SNECK_OK && PQnfields(reply.result) != COLUMNS)
        status = snk_fail(error, SNECK_UNAVAILABLE, 0, "%s: the answer makes no sense", store->options.where);
    for (int row = 0; status == SNECK_OK && row < PQntuples(reply.result); row++)
        show_row(reply.result, row, view);
    snk_pg_reply_clear(&reply);
    if (status == SNECK_OK && view->out_of_memory)
        return snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory");
    return status == SNECK_OK ? snk_ok(error) : status;
}

/* ---- All locks ---- */

typedef struct listing {
    snk_pg_store *store;
    const char *pattern;
    snk_view_fn callback;
    void *context;
    snk_view *view;
    char after[SNK_PG_RESOURCE_SIZE];
    bool goes_on;
} listing;

static sneck_status show_page(listing *list, const PGresult *names, sneck_error *error)
{
    size_t prefix_length = strlen(list->store->prefix);
    int count = PQntuples(names);
    sneck_status status = SNECK_OK;
    for (int i = 0; i < count && status == SNECK_OK && list->goes_on; i++) {
        (void)snk_copy_text(list->after, sizeof list->after, PQgetvalue(names, i, 0));
        const char *name = list->after + prefix_length;
        if (!snk_glob_matches(list->pattern, name))
            continue;
        status = snk_pg_inspect(&list->store->base, name, list->view, error);
        /* It may have become free since. */
        if (status == SNECK_OK && (list->view->info.held || list->view->info.waiter_count > 0))
            list->goes_on = list->callback(list->context, list->view);
    }
    list->goes_on = list->goes_on && count == SNK_PG_LIST_PAGE;
    return status;
}

sneck_status snk_pg_list(snk_store *base, const char *pattern, snk_view_fn callback, void *context, sneck_error *error)
{
    snk_pg_store *store = snk_pg_store_of(base);
    listing list = { .store = store, .pattern = pattern, .callback = callback, .context = context, .goes_on = true };
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
