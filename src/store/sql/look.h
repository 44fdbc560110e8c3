/* What stores on SQL servers share of looking at locks: the rows that sneck_inspect and sneck_list answer with. */
#ifndef SNK_STORE_SQL_LOOK_H
#define SNK_STORE_SQL_LOOK_H

#include "base/limits.h"
#include "store/view.h"

/* The columns of sneck_inspect. */
enum {
    SNK_SQL_COLUMN_WHAT, /* counter, holder, waiter, or the kind of an incident */
    SNK_SQL_COLUMN_OWNER,
    SNK_SQL_COLUMN_HOST,
    SNK_SQL_COLUMN_WORDS,
    SNK_SQL_COLUMN_PID,
    SNK_SQL_COLUMN_AGE_US, /* of an incident: when it was */
    SNK_SQL_COLUMN_REMAINING_US,
    SNK_SQL_COLUMN_TOKEN,
    SNK_SQL_COLUMN_FAIR, /* t or 1: yes */
    SNK_SQL_COLUMN_MODE,
    SNK_SQL_COLUMN_UNITS, /* of the counter: the count */
    SNK_SQL_COLUMNS
};

/* Adds what one row says. */
void snk_sql_show_row(const char *const cells[SNK_SQL_COLUMNS], snk_view *view);

typedef struct snk_sql_listing {
    snk_store *store; /* borrowed, as are the others */
    size_t prefix_length;
    const char *pattern;
    snk_view_fn callback;
    void *context;
    snk_view *view;
    char after[1 + SNK_PREFIX_LENGTH_MAX + SNK_NAME_LENGTH_MAX + 1]; /* the last name that was seen, with its prefix */
    bool goes_on;                                                    /* the callback wants more */
} snk_sql_listing;

/* Shows the lock with that full name, unless the pattern leaves it out or it has become free since. */
sneck_status snk_sql_list_name(snk_sql_listing *list, const char *full_name, sneck_error *error);

#endif
