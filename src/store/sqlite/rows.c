#include "store/sqlite/rows.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "store/tokens.h"

sqlite3_stmt *snk_prepare(snk_sqlite *store, snk_statement which)
{
    sqlite3_stmt *statement = snk_database_statement(&store->database, which);
    if (statement == NULL)
        store->code = sqlite3_extended_errcode(store->database.connection);
    else
        (void)sqlite3_bind_text(statement, 1, store->resource, -1, SQLITE_STATIC);
    return statement;
}

bool snk_run(snk_sqlite *store, sqlite3_stmt *statement)
{
    if (statement == NULL)
        return false;
    int code = snk_database_run(&store->database, statement);
    if (code != SQLITE_OK)
        store->code = code;
    return code == SQLITE_OK;
}

bool snk_step(snk_sqlite *store, sqlite3_stmt *statement, bool *row_out)
{
    *row_out = false;
    if (statement == NULL)
        return false;
    int code = sqlite3_step(statement);
    *row_out = code == SQLITE_ROW;
    if (*row_out)
        return true;
    (void)sqlite3_reset(statement);
    if (code != SQLITE_DONE)
        store->code = code;
    return code == SQLITE_DONE;
}

const char *snk_column_text(sqlite3_stmt *statement, int column)
{
    const unsigned char *text = sqlite3_column_text(statement, column);
    return text == NULL ? "" : (const char *)text;
}

bool snk_column_id(snk_sqlite *store, sqlite3_stmt *statement, int column, snk_id *id_out)
{
    const void *blob = sqlite3_column_blob(statement, column);
    if (blob == NULL || sqlite3_column_bytes(statement, column) != SNK_ID_BYTES) {
        store->code = SQLITE_CORRUPT;
        return false;
    }
    memcpy(id_out->bytes, blob, SNK_ID_BYTES);
    return true;
}

bool snk_column_stamp(snk_sqlite *store, sqlite3_stmt *statement, int column, snk_stamp *stamp_out)
{
    stamp_out->slot = (uint32_t)sqlite3_column_int64(statement, column + 1);
    stamp_out->generation = (uint64_t)sqlite3_column_int64(statement, column + 2);
    return snk_column_id(store, statement, column, &stamp_out->client);
}

static void bind_id(sqlite3_stmt *statement, int parameter, const snk_id *id)
{
    (void)sqlite3_bind_blob(statement, parameter, id->bytes, SNK_ID_BYTES, SQLITE_STATIC);
}

static void bind_token(sqlite3_stmt *statement, int parameter, uint64_t token)
{
    (void)sqlite3_bind_int64(statement, parameter, (sqlite3_int64)token);
}

/* Binds who asks, as seven parameters from there on. `owner` must outlive the statement's run. */
static void bind_party(const snk_sqlite *store, sqlite3_stmt *statement, int parameter, const snk_claim *claim,
                       char owner[SNK_OWNER_LENGTH_MAX + 1])
{
    (void)snprintf(owner, SNK_OWNER_LENGTH_MAX + 1, "%s:%lld", store->identity.uuid, (long long)claim->thread);
    bind_id(statement, parameter, &store->identity.client);
    (void)sqlite3_bind_int64(statement, parameter + 1, store->sidecar->slot);
    (void)sqlite3_bind_int64(statement, parameter + 2, (sqlite3_int64)store->sidecar->generation);
    (void)sqlite3_bind_int64(statement, parameter + 3, store->identity.pid);
    (void)sqlite3_bind_text(statement, parameter + 4, owner, -1, SQLITE_STATIC);
    (void)sqlite3_bind_text(statement, parameter + 5, store->identity.host, -1, SQLITE_STATIC);
    (void)sqlite3_bind_text(statement, parameter + 6, claim->why == NULL ? "" : claim->why, -1, SQLITE_STATIC);
}

static bool read_holder(snk_sqlite *store, sqlite3_stmt *statement, snk_lock_row *row)
{
    row->held = true;
    row->held_stored = true;
    row->token_first = (uint64_t)sqlite3_column_int64(statement, 4);
    row->expires_ns = sqlite3_column_int64(statement, 5);
    (void)snk_copy_text(row->owner, sizeof row->owner, snk_column_text(statement, 9));
    return snk_column_id(store, statement, 3, &row->claim) && snk_column_stamp(store, statement, 6, &row->stamp);
}

bool snk_lock_find(snk_sqlite *store, snk_lock_row *row)
{
    *row = (snk_lock_row){ .found = false };
    sqlite3_stmt *statement = snk_prepare(store, SNK_SQL_LOCK_FIND);
    if (!snk_step(store, statement, &row->found))
        return false;
    if (!row->found)
        return true;
    row->token = (uint64_t)sqlite3_column_int64(statement, 0);
    row->waiters = sqlite3_column_int64(statement, 1);
    row->waiters_stored = row->waiters;
    row->tombstones_until_ns = sqlite3_column_int64(statement, 2);
    bool sound = sqlite3_column_type(statement, 3) == SQLITE_NULL || read_holder(store, statement, row);
    (void)sqlite3_reset(statement);
    return sound;
}

bool snk_lock_add(snk_sqlite *store, snk_lock_row *row)
{
    sqlite3_stmt *floor = snk_database_statement(&store->database, SNK_SQL_FLOOR_GET);
    bool found = false;
    if (!snk_step(store, floor, &found))
        return false;
    if (found) {
        row->token = (uint64_t)sqlite3_column_int64(floor, 0);
        (void)sqlite3_reset(floor);
    }
    sqlite3_stmt *statement = snk_prepare(store, SNK_SQL_LOCK_ADD);
    if (statement == NULL)
        return false;
    bind_token(statement, 2, row->token);
    row->found = snk_run(store, statement);
    return row->found;
}

bool snk_lock_grant(snk_sqlite *store, snk_lock_row *row, const snk_claim *claim)
{
    sqlite3_stmt *statement = snk_prepare(store, SNK_SQL_LOCK_GRANT);
    if (statement == NULL)
        return false;
    char owner[SNK_OWNER_LENGTH_MAX + 1];
    snk_token_block tokens = snk_tokens_next(row->token, store->wall_us, claim->send.tokens);
    row->held = true;
    row->held_stored = true;
    row->claim = claim->send.claim;
    row->token = tokens.last;
    row->token_first = tokens.first;
    row->expires_ns = snk_time_add(store->now_ns, claim->send.lease_ns);
    bind_token(statement, 2, tokens.last);
    bind_id(statement, 3, &claim->send.claim);
    bind_token(statement, 4, tokens.first);
    (void)sqlite3_bind_int64(statement, 5, row->expires_ns);
    (void)sqlite3_bind_int64(statement, 6, store->now_ns);
    (void)sqlite3_bind_int(statement, 7, claim->send.fair);
    bind_party(store, statement, 8, claim, owner);
    return snk_run(store, statement);
}

bool snk_lock_offer(snk_sqlite *store, snk_lock_row *row, const snk_queue_row *next)
{
    sqlite3_stmt *statement = snk_prepare(store, SNK_SQL_LOCK_OFFER);
    if (statement == NULL)
        return false;
    snk_token_block tokens = snk_tokens_next(row->token, store->wall_us, next->tokens);
    int64_t life_ns = next->lease_ns < SNK_OFFER_NS ? next->lease_ns : SNK_OFFER_NS;
    row->held = true;
    row->held_stored = true;
    row->claim = next->claim;
    row->stamp = next->stamp;
    row->token = tokens.last;
    row->token_first = tokens.first;
    row->expires_ns = snk_time_add(store->now_ns, life_ns);
    (void)sqlite3_bind_int64(statement, 2, next->place);
    bind_token(statement, 3, tokens.last);
    bind_token(statement, 4, tokens.first);
    (void)sqlite3_bind_int64(statement, 5, row->expires_ns);
    (void)sqlite3_bind_int64(statement, 6, store->now_ns);
    (void)sqlite3_bind_int64(statement, 7, row->waiters - 1);
    if (!snk_run(store, statement) || !snk_queue_remove(store, row, next->place))
        return false;
    row->waiters_stored = row->waiters;
    return true;
}

static bool set_number(snk_sqlite *store, snk_statement which, int64_t number)
{
    sqlite3_stmt *statement = snk_prepare(store, which);
    if (statement != NULL)
        (void)sqlite3_bind_int64(statement, 2, number);
    return snk_run(store, statement);
}

bool snk_lock_renew(snk_sqlite *store, snk_lock_row *row, int64_t expires_ns)
{
    row->expires_ns = expires_ns;
    return set_number(store, SNK_SQL_LOCK_RENEW, expires_ns);
}

bool snk_lock_store(snk_sqlite *store, snk_lock_row *row)
{
    if (!row->held && row->held_stored && !set_number(store, SNK_SQL_LOCK_FREE, store->now_ns))
        return false;
    row->held_stored = row->held;
    if (row->waiters != row->waiters_stored && !set_number(store, SNK_SQL_LOCK_COUNT_WAITERS, row->waiters))
        return false;
    row->waiters_stored = row->waiters;
    return true;
}

bool snk_queue_add(snk_sqlite *store, snk_lock_row *row, const snk_claim *claim, int64_t *place_out)
{
    sqlite3_stmt *statement = snk_prepare(store, SNK_SQL_QUEUE_ADD);
    if (statement == NULL)
        return false;
    char owner[SNK_OWNER_LENGTH_MAX + 1];
    bind_id(statement, 2, &claim->send.claim);
    (void)sqlite3_bind_int64(statement, 3, claim->send.tokens);
    (void)sqlite3_bind_int64(statement, 4, claim->send.lease_ns);
    (void)sqlite3_bind_int64(statement, 5, snk_time_add(store->now_ns, claim->send.lease_ns));
    (void)sqlite3_bind_int64(statement, 6, store->now_ns);
    (void)sqlite3_bind_int(statement, 7, claim->send.fair);
    bind_party(store, statement, 8, claim, owner);
    bool found = false;
    if (!snk_step(store, statement, &found) || !found)
        return false;
    *place_out = sqlite3_column_int64(statement, 0);
    row->waiters++;
    return snk_run(store, statement);
}

static bool read_queue_row(snk_sqlite *store, sqlite3_stmt *statement, snk_queue_row *row)
{
    *row = (snk_queue_row){ .found = false };
    if (!snk_step(store, statement, &row->found))
        return false;
    if (!row->found)
        return true;
    row->place = sqlite3_column_int64(statement, 0);
    row->expires_ns = sqlite3_column_int64(statement, 2);
    row->tokens = (uint32_t)sqlite3_column_int64(statement, 6);
    row->lease_ns = sqlite3_column_int64(statement, 7);
    bool sound = snk_column_id(store, statement, 1, &row->claim) && snk_column_stamp(store, statement, 3, &row->stamp);
    (void)sqlite3_reset(statement);
    return sound;
}

bool snk_queue_first(snk_sqlite *store, snk_queue_row *row)
{
    return read_queue_row(store, snk_prepare(store, SNK_SQL_QUEUE_FIRST), row);
}

bool snk_queue_find(snk_sqlite *store, const snk_id *claim, snk_queue_row *row)
{
    sqlite3_stmt *statement = snk_prepare(store, SNK_SQL_QUEUE_FIND);
    if (statement != NULL)
        bind_id(statement, 2, claim);
    return read_queue_row(store, statement, row);
}

static bool find_neighbour(snk_sqlite *store, snk_statement which, int64_t place, snk_queue_row *row)
{
    sqlite3_stmt *statement = snk_prepare(store, which);
    if (statement != NULL)
        (void)sqlite3_bind_int64(statement, 2, place);
    return read_queue_row(store, statement, row);
}

bool snk_queue_before(snk_sqlite *store, int64_t place, snk_queue_row *row)
{
    return find_neighbour(store, SNK_SQL_QUEUE_BEFORE, place, row);
}

bool snk_queue_after(snk_sqlite *store, int64_t place, snk_queue_row *row)
{
    return find_neighbour(store, SNK_SQL_QUEUE_AFTER, place, row);
}

bool snk_queue_renew(snk_sqlite *store, const snk_queue_row *row, int64_t expires_ns)
{
    sqlite3_stmt *statement = snk_prepare(store, SNK_SQL_QUEUE_RENEW);
    if (statement == NULL)
        return false;
    (void)sqlite3_bind_int64(statement, 2, row->place);
    (void)sqlite3_bind_int64(statement, 3, expires_ns);
    return snk_run(store, statement);
}

bool snk_queue_remove(snk_sqlite *store, snk_lock_row *lock, int64_t place)
{
    lock->waiters--;
    return set_number(store, SNK_SQL_QUEUE_REMOVE, place);
}

bool snk_tombstone_add(snk_sqlite *store, snk_lock_row *row, const snk_id *claim, int64_t expires_ns)
{
    if (!set_number(store, SNK_SQL_TOMBSTONE_TRIM, store->now_ns))
        return false;
    sqlite3_stmt *statement = snk_prepare(store, SNK_SQL_TOMBSTONE_ADD);
    if (statement == NULL)
        return false;
    bind_id(statement, 2, claim);
    (void)sqlite3_bind_int64(statement, 3, expires_ns);
    if (!snk_run(store, statement))
        return false;
    if (expires_ns <= row->tombstones_until_ns)
        return true;
    row->tombstones_until_ns = expires_ns;
    return set_number(store, SNK_SQL_LOCK_TOMBSTONES, expires_ns);
}

bool snk_tombstone_find(snk_sqlite *store, const snk_id *claim, bool *found_out)
{
    sqlite3_stmt *statement = snk_prepare(store, SNK_SQL_TOMBSTONE_FIND);
    if (statement != NULL)
        bind_id(statement, 2, claim);
    if (!snk_step(store, statement, found_out))
        return false;
    if (*found_out) {
        *found_out = sqlite3_column_int64(statement, 0) > store->now_ns;
        (void)sqlite3_reset(statement);
    }
    return true;
}

bool snk_incident_add(snk_sqlite *store, const snk_lock_row *row, const char *kind, const char *text)
{
    int64_t now_ms = store->wall_us / 1000;
    sqlite3_stmt *statement = snk_prepare(store, SNK_SQL_INCIDENT_ADD);
    if (statement == NULL)
        return false;
    (void)sqlite3_bind_int64(statement, 2, now_ms);
    (void)sqlite3_bind_text(statement, 3, kind, -1, SQLITE_STATIC);
    (void)sqlite3_bind_text(statement, 4, row->owner, -1, SQLITE_STATIC);
    (void)sqlite3_bind_text(statement, 5, text, -1, SQLITE_STATIC);
    bind_token(statement, 6, row->token_first);
    if (!snk_run(store, statement))
        return false;
    statement = snk_prepare(store, SNK_SQL_INCIDENT_TRIM);
    if (statement == NULL)
        return false;
    (void)sqlite3_bind_int64(statement, 2, now_ms - (int64_t)SNK_INCIDENT_AGE_S * 1000);
    (void)sqlite3_bind_int(statement, 3, SNK_INCIDENTS_MAX);
    return snk_run(store, statement);
}
