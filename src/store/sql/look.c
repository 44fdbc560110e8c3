#include "store/sql/look.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "store/glob.h"

static int64_t number(const char *cell)
{
    return strtoll(cell, NULL, 10);
}

void snk_sql_show_row(const char *const cells[SNK_SQL_COLUMNS], snk_view *view)
{
    const char *what = cells[SNK_SQL_COLUMN_WHAT];
    uint64_t token = (uint64_t)number(cells[SNK_SQL_COLUMN_TOKEN]);
    int64_t age_us = number(cells[SNK_SQL_COLUMN_AGE_US]);
    const sneck_party party = {
        .owner = cells[SNK_SQL_COLUMN_OWNER],
        .host = cells[SNK_SQL_COLUMN_HOST],
        .why = cells[SNK_SQL_COLUMN_WORDS],
        .pid = number(cells[SNK_SQL_COLUMN_PID]),
        .age_ms = age_us > 0 ? age_us / 1000 : 0,
        .remaining_ms = number(cells[SNK_SQL_COLUMN_REMAINING_US]) / 1000,
        .mode = snk_mode_word((snk_mode)number(cells[SNK_SQL_COLUMN_MODE])),
        .units = (uint32_t)number(cells[SNK_SQL_COLUMN_UNITS]),
    };
    if (strcmp(what, "counter") == 0) {
        view->info.token = token;
        view->info.permits = number(cells[SNK_SQL_COLUMN_UNITS]);
    } else if (strcmp(what, "holder") == 0) {
        snk_view_hold(view, &party, token, strchr("t1", cells[SNK_SQL_COLUMN_FAIR][0]) != NULL);
    } else if (strcmp(what, "waiter") == 0) {
        snk_view_waiter(view, &party);
    } else {
        snk_view_incident(
            view,
            &(sneck_incident){
                .time_ms = age_us / 1000, .kind = what, .owner = party.owner, .text = party.why, .token = token });
    }
}

sneck_status snk_sql_list_name(snk_sql_listing *list, const char *full_name, sneck_error *error)
{
    (void)snk_copy_text(list->after, sizeof list->after, full_name);
    const char *name = list->after + list->prefix_length;
    if (!snk_glob_matches(list->pattern, name))
        return SNECK_OK;
    sneck_status status = list->store->ops->inspect(list->store, name, list->view, error);
    if (status == SNECK_OK && (list->view->info.held || list->view->info.waiter_count > 0))
        list->goes_on = list->callback(list->context, list->view);
    return status;
}
