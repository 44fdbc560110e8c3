#include "store/sqlite/rows.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "store/tokens.h"

sqlite3_stmt *snk_prepare_bare(snk_sqlite *store, snk_statement which)
{
    sqlite3_stmt *statement = snk_database_statement(&store->database, which);
    if (statement == NULL)
        store->code = sqlite3_extended_errcode(store->database.connection);
    return statement;
}

sqlite3_stmt *snk_prepare(snk_sqlite *store, snk_statement which)
{
    sqlite3_stmt *statement = snk_prepare_bare(store, which);
    if (statement != NULL)
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

static void bind_id(sqlite3_stmt *statement, int parameter, const snk_id *id)
{
    (void)sqlite3_bind_blob(statement, parameter, id->bytes, SNK_ID_BYTES, SQLITE_STATIC);
}

static void bind_token(sqlite3_stmt *statement, int parameter, uint64_t token)
{
    (void)sqlite3_bind_int64(statement, parameter, (sqlite3_int64)token);
}

/* For statements that need the name and one number. */
static sqlite3_stmt *prepare_with(snk_sqlite *store, snk_statement which, int64_t number)
{
    sqlite3_stmt *statement = snk_prepare(store, which);
    if (statement != NULL)
        (void)sqlite3_bind_int64(statement, 2, number);
    return statement;
}

/* ---- Reading ---- */

bool snk_column_claim(snk_sqlite *store, sqlite3_stmt *statement, snk_claim_row *row)
{
    row->place = sqlite3_column_int64(statement, 0);
    row->token_last = (uint64_t)sqlite3_column_int64(statement, 1);
    row->token_first = (uint64_t)sqlite3_column_int64(statement, 2);
    row->state = (snk_claim_state)sqlite3_column_int(statement, 3);
    row->expires_ns = sqlite3_column_int64(statement, 4);
    const void *record = sqlite3_column_blob(statement, 5);
    row->found = record != NULL && sqlite3_column_bytes(statement, 5) == (int)sizeof row->record;
    if (row->found)
        memcpy(&row->record, record, sizeof row->record);
    else
        store->code = SQLITE_CORRUPT;
    return row->found;
}

/* Steps once, and reads the claim there if there is one. */
static bool step_to_claim(snk_sqlite *store, sqlite3_stmt *statement, snk_claim_row *row)
{
    bool found = false;
    *row = (snk_claim_row){ .found = false };
    return snk_step(store, statement, &found) && (!found || snk_column_claim(store, statement, row));
}

/* What it has not stepped over is not wanted. */
static bool end_reading(const snk_sqlite *store, sqlite3_stmt *statement)
{
    (void)sqlite3_reset(statement);
    return store->code == SQLITE_OK;
}

static bool read_claims(snk_sqlite *store, sqlite3_stmt *statement, snk_lock_row *row, int claims)
{
    bool sound = step_to_claim(store, statement, &row->first);
    if (sound && row->first.found && claims > 1)
        sound = step_to_claim(store, statement, &row->second);
    row->is_all = !row->first.found || (claims > 1 && !row->second.found);
    return end_reading(store, statement) && sound;
}

bool snk_lock_read(snk_sqlite *store, snk_lock_row *row)
{
    memset(row, 0, sizeof *row);
    sqlite3_stmt *statement = prepare_with(store, SNK_SQL_READ_FROM, 0);
    if (!snk_step(store, statement, &row->found))
        return false;
    if (!row->found)
        return true;
    if (sqlite3_column_int64(statement, 0) != 0)
        store->code = SQLITE_CORRUPT; /* claims without a lock */
    row->token = (uint64_t)sqlite3_column_int64(statement, 1);
    row->tombstones_until_ns = sqlite3_column_int64(statement, 6);
    row->count = sqlite3_column_int64(statement, 7);
    row->version = (uint64_t)sqlite3_column_int64(statement, 8);
    return read_claims(store, statement, row, 1);
}

bool snk_lock_read_claims(snk_sqlite *store, snk_lock_row *row, int claims)
{
    memset(row, 0, sizeof *row);
    bool read = read_claims(store, prepare_with(store, SNK_SQL_READ_FROM, 1), row, claims);
    /* A queue without holder, which no transaction leaves: the lock itself knows the highest token. */
    bool is_odd = read && row->first.found && row->first.state == SNK_CLAIM_QUEUED;
    return is_odd ? snk_lock_read(store, row) : read;
}

bool snk_claims_read(snk_sqlite *store, bool (*take)(void *context, const snk_claim_row *row), void *context)
{
    snk_claim_row row;
    sqlite3_stmt *statement = prepare_with(store, SNK_SQL_READ_FROM, 1);
    bool goes_on = true;
    while (goes_on && step_to_claim(store, statement, &row) && row.found)
        goes_on = take(context, &row);
    return end_reading(store, statement) && goes_on;
}

bool snk_claim_find(snk_sqlite *store, const snk_id *claim, snk_claim_row *row)
{
    sqlite3_stmt *statement = prepare_with(store, SNK_SQL_READ_FROM, 1);
    do {
        if (!step_to_claim(store, statement, row))
            break;
    } while (row->found && !snk_id_equal(&row->record.claim, claim));
    return end_reading(store, statement);
}

static bool read_one(snk_sqlite *store, sqlite3_stmt *statement, snk_claim_row *row)
{
    return step_to_claim(store, statement, row) && end_reading(store, statement);
}

bool snk_claim_before(snk_sqlite *store, int64_t place, snk_claim_row *row)
{
    return read_one(store, prepare_with(store, SNK_SQL_READ_BEFORE, place), row);
}

bool snk_claim_after(snk_sqlite *store, int64_t place, snk_claim_row *row)
{
    return read_one(store, prepare_with(store, SNK_SQL_READ_FROM, place + 1), row);
}

/* ---- Writing ---- */

bool snk_lock_add(snk_sqlite *store, snk_lock_row *row)
{
    sqlite3_stmt *floor = snk_prepare_bare(store, SNK_SQL_FLOOR_GET);
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
    row->count = snk_object_of_mark(store->resource[0]) == SNK_OBJECT_LOCK ? -1 : 0;
    bind_token(statement, 2, row->token);
    (void)sqlite3_bind_int64(statement, 3, store->now_ns);
    (void)sqlite3_bind_int64(statement, 4, row->count);
    row->found = snk_run(store, statement);
    return row->found;
}

/* Adds a claim of this client. The row says what is not in the request. */
static bool add_claim(snk_sqlite *store, const snk_claim *claim, snk_claim_row *row)
{
    sqlite3_stmt *statement = prepare_with(store, SNK_SQL_CLAIM_ADD, row->place);
    if (statement == NULL)
        return false;
    const snk_identity *identity = &store->identity;
    row->record = (snk_claim_record){
        .claim = claim->send.claim,
        .stamp = snk_own_stamp(store),
        .lease_ns = claim->send.lease_ns,
        .tokens = claim->send.tokens,
        .mode = claim->grip.mode,
        .units = row->record.units,
    };
    char owner[SNK_OWNER_LENGTH_MAX + 1];
    (void)snprintf(owner, sizeof owner, "%s:%lld", identity->uuid, (long long)claim->thread);
    bind_token(statement, 3, row->token_last);
    bind_token(statement, 4, row->token_first);
    (void)sqlite3_bind_int(statement, 5, (int)row->state);
    (void)sqlite3_bind_int64(statement, 6, row->expires_ns);
    (void)sqlite3_bind_blob(statement, 7, &row->record, sizeof row->record, SQLITE_STATIC);
    (void)sqlite3_bind_int64(statement, 8, store->now_ns);
    (void)sqlite3_bind_int(statement, 9, claim->send.fair);
    (void)sqlite3_bind_int64(statement, 10, identity->pid);
    (void)sqlite3_bind_text(statement, 11, owner, -1, SQLITE_STATIC);
    (void)sqlite3_bind_text(statement, 12, identity->host, -1, SQLITE_STATIC);
    (void)sqlite3_bind_text(statement, 13, claim->why == NULL ? "" : claim->why, -1, SQLITE_STATIC);
    row->found = snk_run(store, statement);
    return row->found;
}

bool snk_claim_queue(snk_sqlite *store, const snk_claim *claim, int64_t place)
{
    snk_claim_row row = {
        .place = place,
        .state = SNK_CLAIM_QUEUED,
        .expires_ns = snk_time_add(store->now_ns, claim->send.lease_ns),
        .record.units = claim->grip.units,
    };
    return add_claim(store, claim, &row);
}

/* The first claim has the lock from now on, with new tokens. */
static void hold(snk_sqlite *store, snk_lock_row *row, snk_claim_state state, uint32_t tokens_asked, int64_t life_ns)
{
    snk_token_block tokens = snk_tokens_next(row->token, store->wall_us, tokens_asked);
    row->token = tokens.last;
    row->token_left = false;
    row->first.token_first = tokens.first;
    row->first.token_last = tokens.last;
    row->first.state = state;
    row->first.expires_ns = snk_time_add(store->now_ns, life_ns);
}

bool snk_lock_grant(snk_sqlite *store, snk_lock_row *row, const snk_claim *claim)
{
    row->first.place = 1;
    hold(store, row, SNK_CLAIM_HELD, claim->send.tokens, claim->send.lease_ns);
    return add_claim(store, claim, &row->first);
}

bool snk_claim_offer(snk_sqlite *store, snk_claim_row *row)
{
    sqlite3_stmt *statement = prepare_with(store, SNK_SQL_CLAIM_OFFER, row->place);
    if (statement == NULL)
        return false;
    row->state = SNK_CLAIM_OFFERED;
    const snk_grant grant = {
        .claim = row->record.claim,
        .token_first = row->token_first,
        .token_last = row->token_last,
    };
    snk_add_grant(store, &row->record.stamp, &grant);
    bind_token(statement, 3, row->token_last);
    bind_token(statement, 4, row->token_first);
    (void)sqlite3_bind_int(statement, 5, (int)row->state);
    (void)sqlite3_bind_int64(statement, 6, row->expires_ns);
    (void)sqlite3_bind_int64(statement, 7, store->now_ns);
    return snk_run(store, statement);
}

bool snk_lock_offer(snk_sqlite *store, snk_lock_row *row)
{
    int64_t lease_ns = row->first.record.lease_ns;
    hold(store, row, SNK_CLAIM_OFFERED, row->first.record.tokens, lease_ns < SNK_OFFER_NS ? lease_ns : SNK_OFFER_NS);
    return snk_claim_offer(store, &row->first);
}

bool snk_claim_hold(snk_sqlite *store, const snk_claim *claim, snk_claim_row *row)
{
    row->state = SNK_CLAIM_HELD;
    return add_claim(store, claim, row);
}

static bool set_number(snk_sqlite *store, snk_statement which, int64_t number)
{
    sqlite3_stmt *statement = prepare_with(store, which, number);
    if (statement != NULL)
        (void)sqlite3_bind_int64(statement, 3, store->now_ns);
    return snk_run(store, statement);
}

bool snk_lock_set_count(snk_sqlite *store, snk_lock_row *row, int64_t count)
{
    row->count = count;
    return set_number(store, SNK_SQL_LOCK_COUNT, count);
}

bool snk_lock_set_version(snk_sqlite *store, snk_lock_row *row, uint64_t version)
{
    row->version = version;
    return set_number(store, SNK_SQL_LOCK_VERSION, (int64_t)version);
}

bool snk_lock_store(snk_sqlite *store, snk_lock_row *row)
{
    if (!row->token_left)
        return true;
    row->token_left = false;
    return set_number(store, SNK_SQL_LOCK_FREE, (int64_t)row->token);
}

bool snk_claim_renew(snk_sqlite *store, snk_claim_row *row, int64_t lease_ns)
{
    sqlite3_stmt *statement = prepare_with(store, SNK_SQL_CLAIM_RENEW, row->place);
    if (statement == NULL)
        return false;
    int64_t until_ns = snk_time_add(store->now_ns, lease_ns);
    row->expires_ns = until_ns > row->expires_ns ? until_ns : row->expires_ns;
    row->state = row->state == SNK_CLAIM_QUEUED ? SNK_CLAIM_QUEUED : SNK_CLAIM_HELD;
    (void)sqlite3_bind_int(statement, 3, (int)row->state);
    (void)sqlite3_bind_int64(statement, 4, row->expires_ns);
    return snk_run(store, statement);
}

bool snk_claim_remove(snk_sqlite *store, snk_lock_row *row, int64_t place)
{
    if (!snk_run(store, prepare_with(store, SNK_SQL_CLAIM_REMOVE, place)))
        return false;
    if (row->second.place == place)
        row->second.found = false;
    if (!row->first.found || row->first.place != place)
        return true;
    if (row->first.state != SNK_CLAIM_QUEUED && row->first.token_last >= row->token) {
        row->token = row->first.token_last;
        row->token_left = true;
    }
    row->first = row->second;
    row->second.found = false;
    return row->first.found || row->is_all || snk_claim_after(store, place, &row->first);
}

/* ---- Tombstones, incidents ---- */

bool snk_tombstone_add(snk_sqlite *store, snk_lock_row *row, const snk_id *claim, int64_t expires_ns)
{
    if (!snk_run(store, prepare_with(store, SNK_SQL_TOMBSTONE_TRIM, store->now_ns)))
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
    return snk_run(store, prepare_with(store, SNK_SQL_LOCK_TOMBSTONES, expires_ns));
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

bool snk_incident_add(snk_sqlite *store, const snk_claim_row *holder, const char *kind, const char *text)
{
    int64_t now_ms = store->wall_us / 1000;
    sqlite3_stmt *statement = prepare_with(store, SNK_SQL_INCIDENT_ADD, holder->place);
    if (statement == NULL)
        return false;
    (void)sqlite3_bind_int64(statement, 3, now_ms);
    (void)sqlite3_bind_text(statement, 4, kind, -1, SQLITE_STATIC);
    (void)sqlite3_bind_text(statement, 5, text, -1, SQLITE_STATIC);
    if (!snk_run(store, statement))
        return false;
    statement = prepare_with(store, SNK_SQL_INCIDENT_TRIM, now_ms - (int64_t)SNK_INCIDENT_AGE_S * 1000);
    if (statement != NULL)
        (void)sqlite3_bind_int(statement, 3, SNK_INCIDENTS_MAX);
    return snk_run(store, statement);
}
