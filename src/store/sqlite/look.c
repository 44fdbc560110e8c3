/* Looking at locks, and breaking holds. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "store/glob.h"
#include "store/sqlite/crowd.h"
#include "store/sqlite/settle.h"
#include "store/view.h"

static int64_t age_ms(const snk_sqlite *store, int64_t since_ns)
{
    return store->now_ns > since_ns ? (store->now_ns - since_ns) / SNK_NS_PER_MS : 0;
}

static void show_claim(const snk_sqlite *store, sqlite3_stmt *statement, const snk_claim_row *claim, snk_view *view)
{
    const sneck_party party = {
        .age_ms = age_ms(store, sqlite3_column_int64(statement, 9)),
        .pid = sqlite3_column_int64(statement, 11),
        .owner = snk_column_text(statement, 12),
        .host = snk_column_text(statement, 13),
        .why = snk_column_text(statement, 14),
        .remaining_ms = (claim->expires_ns - store->now_ns) / SNK_NS_PER_MS,
        .mode = snk_mode_word((snk_mode)claim->record.mode),
        .units = claim->record.units,
    };
    if (claim->state == SNK_CLAIM_QUEUED)
        snk_view_waiter(view, &party);
    else
        snk_view_hold(view, &party, claim->token_first, sqlite3_column_int(statement, 10) != 0);
}

static bool show_claims(snk_sqlite *store, snk_view *view)
{
    sqlite3_stmt *statement = snk_prepare(store, SNK_SQL_SHOW_CLAIMS);
    bool found = false;
    while (snk_step(store, statement, &found) && found) {
        uint64_t token = (uint64_t)sqlite3_column_int64(statement, 1);
        view->info.token = token > view->info.token ? token : view->info.token;
        snk_claim_row claim;
        if (sqlite3_column_int64(statement, 0) == 0) {
            view->info.permits = sqlite3_column_int64(statement, 7);
            continue;
        }
        if (!snk_column_claim(store, statement, &claim))
            break;
        if (snk_fate_of(store, &claim.record.stamp, claim.expires_ns) == SNK_FATE_ALIVE)
            show_claim(store, statement, &claim, view);
    }
    (void)sqlite3_reset(statement);
    return store->code == SQLITE_OK;
}

static bool show_incidents(snk_sqlite *store, snk_view *view)
{
    sqlite3_stmt *statement = snk_prepare(store, SNK_SQL_SHOW_INCIDENTS);
    bool found = false;
    if (statement != NULL)
        (void)sqlite3_bind_int64(statement, 2, store->wall_us / 1000 - (int64_t)SNK_INCIDENT_AGE_S * 1000);
    while (snk_step(store, statement, &found) && found) {
        snk_view_incident(view, &(sneck_incident){ .time_ms = sqlite3_column_int64(statement, 0),
                                                   .kind = snk_column_text(statement, 1),
                                                   .owner = snk_column_text(statement, 2),
                                                   .text = snk_column_text(statement, 3),
                                                   .token = (uint64_t)sqlite3_column_int64(statement, 4) });
    }
    return store->code == SQLITE_OK;
}

/* Shows the lock of store.resource. */
static void show(snk_sqlite *store, snk_view *view)
{
    snk_view_reset(view);
    snk_view_name(view, store->resource + strlen(store->prefix));
    (void)(show_claims(store, view) && show_incidents(store, view));
}

sneck_status snk_sqlite_inspect(snk_store *base, const char *name, snk_view *view, sneck_error *error)
{
    snk_sqlite *store = snk_sqlite_of(base);
    sneck_status status = snk_begin(store, false, error);
    if (status != SNECK_OK)
        return status;
    snk_set_resource(store, SNK_OBJECT_LOCK, name);
    show(store, view);
    status = snk_end(store, NULL, error);
    if (status != SNECK_OK)
        return status;
    if (view->out_of_memory)
        return snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory");
    return snk_ok(error);
}

/*
 * Finds the first lock after `cursor` (a full name, moved on) that is held or waited for and matches, and shows it; the
 * cursor is "" when there is none. A transaction a lock, so that a long list stops nobody.
 */
static sneck_status show_next(snk_sqlite *store, const char *pattern, char cursor[SNK_RESOURCE_SIZE], snk_view *view,
                              sneck_error *error)
{
    sneck_status status = snk_begin(store, false, error);
    if (status != SNECK_OK)
        return status;
    size_t prefix_length = strlen(store->prefix);
    bool found = true;
    bool matches = false;
    while (found && !matches) {
        sqlite3_stmt *statement = snk_prepare(store, SNK_SQL_SHOW_NEXT);
        if (statement != NULL)
            (void)sqlite3_bind_text(statement, 1, cursor, -1, SQLITE_TRANSIENT);
        if (!snk_step(store, statement, &found) || !found)
            break;
        (void)snk_copy_text(cursor, SNK_RESOURCE_SIZE, snk_column_text(statement, 0));
        (void)sqlite3_reset(statement);
        found = strncmp(cursor, store->prefix, prefix_length) == 0;
        matches = found && snk_object_of_mark(cursor[0]) == SNK_OBJECT_LOCK &&
                  snk_glob_matches(pattern, cursor + prefix_length);
    }
    if (matches) {
        (void)snk_copy_text(store->resource, sizeof store->resource, cursor);
        show(store, view);
    } else {
        cursor[0] = '\0';
    }
    return snk_end(store, NULL, error);
}

sneck_status snk_sqlite_list(snk_store *base, const char *pattern, snk_view_fn callback, void *context,
                             sneck_error *error)
{
    snk_sqlite *store = snk_sqlite_of(base);
    snk_view *view = snk_view_new();
    if (view == NULL)
        return snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory");
    char cursor[SNK_RESOURCE_SIZE];
    (void)snk_copy_text(cursor, sizeof cursor, store->prefix);
    sneck_status status = snk_ok(error);
    bool goes_on = true;
    while (goes_on) {
        status = show_next(store, pattern, cursor, view, error);
        if (status == SNECK_OK && view->out_of_memory)
            status = snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory");
        goes_on = status == SNECK_OK && cursor[0] != '\0';
        /* One whose holder and waiters have all died meanwhile is free. Nothing is locked: it may call the store. */
        if (goes_on && (view->info.held || view->info.waiter_count > 0))
            goes_on = callback(context, view);
    }
    snk_view_free(view);
    return status;
}

sneck_status snk_sqlite_break(snk_store *base, const char *name, uint64_t token, const char *reason, sneck_error *error)
{
    snk_sqlite *store = snk_sqlite_of(base);
    sneck_status status = snk_begin(store, true, error);
    if (status != SNECK_OK)
        return status;
    char text[SNK_WHY_LENGTH_MAX + SNK_HOST_LENGTH_MAX + 48];
    (void)snprintf(text, sizeof text, "%.200s (by pid %lld on %s)", reason, (long long)store->identity.pid,
                   store->identity.host);
    bool broken = false;
    bool uncertain = false;
    snk_set_resource(store, SNK_OBJECT_LOCK, name);
    snk_crowd_break(store, token, text, &broken);
    status = snk_end(store, &uncertain, error);
    if (uncertain && error != NULL)
        error->status = SNECK_UNKNOWN;
    if (status != SNECK_OK)
        return uncertain ? SNECK_UNKNOWN : status;
    if (!broken)
        return snk_fail(error, SNECK_CONFLICT, 0, "%.120s is not held with token %llu", name,
                        (unsigned long long)token);
    return snk_ok(error);
}
