/* Counts and versions. */
#include <inttypes.h>

#include "base/error.h"
#include "store/mysql/mysql_store.h"

/* Runs a call that changes something, and reads the numbers that it answers with. */
static sneck_status run_change(snk_my_store *store, snk_sql_text *text, snk_sql_numbers *numbers, sneck_error *error)
{
    snk_my_reply reply;
    *numbers = (snk_sql_numbers){ .at = { 0 } };
    snk_my_run(store, text, &reply);
    sneck_status status = snk_my_change_result(&reply, error);
    if (status == SNECK_OK && !snk_sql_numbers_read(numbers, snk_my_reply_text(&reply)))
        status = snk_fail(error, SNECK_UNKNOWN, 0, "%s: the answer makes no sense", store->options.where);
    snk_my_reply_clear(&reply);
    return status;
}

sneck_status snk_my_tally(snk_store *base, const snk_tally *tally, snk_tallied *tallied_out, sneck_error *error)
{
    snk_my_store *store = snk_my_store_of(base);
    snk_sql_text text;
    snk_sql_numbers numbers;
    snk_sql_text_init(&text);
    snk_sql_text_word(&text, "SELECT sneck_tally(");
    snk_my_add_resource(store, tally->object, tally->name, &text);
    snk_sql_text_word(&text, ",");
    snk_sql_text_number(&text, (int64_t)tally->verb);
    snk_sql_text_word(&text, ",");
    snk_sql_text_number(&text, tally->value);
    snk_sql_text_word(&text, ",");
    snk_my_add_id(&text, &tally->id);
    snk_sql_text_word(&text, ")");
    sneck_status status = run_change(store, &text, &numbers, error);
    *tallied_out = (snk_tallied){ .count = numbers.at[0], .used = numbers.at[1], .done = numbers.at[2] == 1 };
    return status == SNECK_OK ? snk_ok(error) : status;
}

sneck_status snk_my_version(snk_store *base, const char *name, const uint64_t *expected, uint64_t *version_out,
                            sneck_error *error)
{
    snk_my_store *store = snk_my_store_of(base);
    snk_sql_text text;
    snk_sql_numbers numbers;
    snk_sql_text_init(&text);
    snk_sql_text_word(&text, "SELECT sneck_version(");
    snk_my_add_resource(store, SNK_OBJECT_LOCK, name, &text);
    snk_sql_text_word(&text, ",");
    if (expected == NULL)
        snk_sql_text_word(&text, "NULL");
    else /* one that no version can be is passed on as such */
        snk_sql_text_number(&text, *expected <= INT64_MAX ? (int64_t)*expected : -1);
    snk_sql_text_word(&text, ")");
    sneck_status status = run_change(store, &text, &numbers, error);
    if (status != SNECK_OK)
        return status;
    *version_out = (uint64_t)numbers.at[0];
    if (expected == NULL || numbers.at[1] == 1)
        return snk_ok(error);
    return snk_fail(error, SNECK_CONFLICT, 0, "the version of %.120s is %" PRIu64 ", not %" PRIu64, name, *version_out,
                    *expected);
}
