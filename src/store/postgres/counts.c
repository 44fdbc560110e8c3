/* Counts and versions. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "store/postgres/postgres.h"

sneck_status snk_pg_tally(snk_store *base, const snk_tally *tally, snk_tallied *tallied_out, sneck_error *error)
{
    snk_pg_store *store = snk_pg_store_of(base);
    char resource[SNK_PG_RESOURCE_SIZE];
    char verb[16];
    char value[24];
    char id[SNK_ID_TEXT_SIZE];
    snk_pg_resource(store, tally->object, tally->name, resource);
    (void)snprintf(verb, sizeof verb, "%d", (int)tally->verb);
    (void)snprintf(value, sizeof value, "%" PRId64, tally->value);
    snk_id_to_hex(&tally->id, id);
    const char *const values[] = { resource, verb, value, id };
    snk_pg_reply reply;
    snk_sql_numbers numbers = { .at = { 0 } };
    snk_pg_run(store, SNK_PG_TALLY, values, &reply);
    sneck_status status = snk_pg_change_result(&reply, error);
    if (status == SNECK_OK && !snk_sql_numbers_read(&numbers, snk_pg_reply_text(&reply)))
        status = snk_fail(error, SNECK_UNKNOWN, 0, "%s: the answer makes no sense", store->options.where);
    snk_pg_reply_clear(&reply);
    *tallied_out = (snk_tallied){ .count = numbers.at[0], .used = numbers.at[1], .done = numbers.at[2] == 1 };
    return status == SNECK_OK ? snk_ok(error) : status;
}

static sneck_status read_version(snk_pg_store *store, const char *resource, uint64_t *version_out, sneck_error *error)
{
    const char *const values[] = { resource };
    snk_pg_reply reply;
    snk_pg_run(store, SNK_PG_VERSION, values, &reply);
    sneck_status status = snk_pg_look_result(&reply, error);
    if (status == SNECK_OK)
        *version_out = strtoull(snk_pg_reply_text(&reply), NULL, 10);
    snk_pg_reply_clear(&reply);
    return status == SNECK_OK ? snk_ok(error) : status;
}

sneck_status snk_pg_version(snk_store *base, const char *name, const uint64_t *expected, uint64_t *version_out,
                            sneck_error *error)
{
    snk_pg_store *store = snk_pg_store_of(base);
    char resource[SNK_PG_RESOURCE_SIZE];
    char expected_text[24];
    snk_pg_resource(store, SNK_OBJECT_LOCK, name, resource);
    if (expected == NULL)
        return read_version(store, resource, version_out, error);
    /* One that no version can be is passed on as such. */
    (void)snprintf(expected_text, sizeof expected_text, "%" PRId64,
                   *expected <= INT64_MAX ? (int64_t)*expected : (int64_t)-1);
    const char *const values[] = { resource, expected_text };
    snk_pg_reply reply;
    snk_pg_run(store, SNK_PG_VERSION_BUMP, values, &reply);
    sneck_status status = snk_pg_change_result(&reply, error);
    bool bumped = status == SNECK_OK && PQgetisnull(reply.result, 0, 0) == 0;
    if (bumped)
        *version_out = strtoull(snk_pg_reply_text(&reply), NULL, 10);
    snk_pg_reply_clear(&reply);
    if (status != SNECK_OK || bumped)
        return status == SNECK_OK ? snk_ok(error) : status;
    status = read_version(store, resource, version_out, error);
    if (status != SNECK_OK)
        return status;
    return snk_fail(error, SNECK_CONFLICT, 0, "the version of %.120s is %" PRIu64 ", not %" PRIu64, name, *version_out,
                    *expected);
}
