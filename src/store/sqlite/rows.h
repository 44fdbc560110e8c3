/*
 * Rows of the tables as structs. Every function works on the lock of store.resource, inside a transaction, and returns
 * false when SQLite failed: store.code then says how, and the transaction will be rolled back.
 */
#ifndef SNK_STORE_SQLITE_ROWS_H
#define SNK_STORE_SQLITE_ROWS_H

#include "store/sqlite/sqlite.h"

/* As the file has them. */
typedef enum snk_claim_state {
    SNK_CLAIM_QUEUED = 0,
    SNK_CLAIM_OFFERED = 1, /* holds the lock, for a short time unless it is renewed */
    SNK_CLAIM_HELD = 2
} snk_claim_state;

/* What a claim is as long as it is there. The file has it as it is in memory. */
typedef struct snk_claim_record {
    snk_id claim;
    snk_stamp stamp;
    int64_t lease_ns;
    uint32_t tokens; /* asked for */
    uint32_t mode;   /* snk_mode */
    uint32_t units;
    uint32_t reserved;
} snk_claim_record;

_Static_assert(sizeof(snk_claim_record) == 72, "the same for all programs that share a file");

/* Between the places of those who come one after the other: who stands beside a holder is put right behind it. */
#define SNK_PLACE_STEP 4

typedef struct snk_claim_row {
    bool found;
    int64_t place; /* claims are served in this order; 0 is the lock itself */
    uint64_t token_first;
    uint64_t token_last;
    snk_claim_state state;
    int64_t expires_ns;
    snk_claim_record record;
} snk_claim_row;

typedef struct snk_lock_row {
    bool found;
    uint64_t token;  /* highest given out, as far as is known here */
    bool token_left; /* its holder is gone: the row of the lock must get it, unless there is a new holder */
    int64_t tombstones_until_ns;
    int64_t count; /* see snk_tally */
    uint64_t version;
    snk_claim_row first; /* claim; it holds the lock if any does */
    snk_claim_row second;
    bool is_all; /* there are no other claims than these two */
} snk_lock_row;

/* Reads the row of the lock and its first claim. */
bool snk_lock_read(snk_sqlite *store, snk_lock_row *row);
/* Reads only the first claims, for a request that changes nothing else: `claims` of them, 1 or 2. */
bool snk_lock_read_claims(snk_sqlite *store, snk_lock_row *row, int claims);

/* Adds a free lock, whose tokens go on where removed ones ended. */
bool snk_lock_add(snk_sqlite *store, snk_lock_row *row);

/* Makes the asker of an acquire the holder. There are no other claims. */
bool snk_lock_grant(snk_sqlite *store, snk_lock_row *row, const snk_claim *claim);

/* Makes the first claim the holder, for the life of an offer, and lets it know. */
bool snk_lock_offer(snk_sqlite *store, snk_lock_row *row);

/* Writes what was only noted in the row so far. */
bool snk_lock_store(snk_sqlite *store, snk_lock_row *row);

/* Sets the count of a lock that is there. */
bool snk_lock_set_count(snk_sqlite *store, snk_lock_row *row, int64_t count);
bool snk_lock_set_version(snk_sqlite *store, snk_lock_row *row, uint64_t version);

/* Adds the asker of an acquire as one of several holders: `row` has its place, tokens and end. */
bool snk_claim_hold(snk_sqlite *store, const snk_claim *claim, snk_claim_row *row);
/* Makes a waiting claim a holder: `row` has its tokens and end. */
bool snk_claim_offer(snk_sqlite *store, snk_claim_row *row);

/* Adds the asker of an acquire to the queue. */
bool snk_claim_queue(snk_sqlite *store, const snk_claim *claim, int64_t place);

bool snk_claim_find(snk_sqlite *store, const snk_id *claim, snk_claim_row *row);
/* The nearest claim before or behind a place. */
bool snk_claim_before(snk_sqlite *store, int64_t place, snk_claim_row *row);
bool snk_claim_after(snk_sqlite *store, int64_t place, snk_claim_row *row);

/* Sets how long the claim lasts at least. */
bool snk_claim_renew(snk_sqlite *store, snk_claim_row *row, int64_t lease_ns);
/* Calls `take` with each claim, in their order. */
bool snk_claims_read(snk_sqlite *store, bool (*take)(void *context, const snk_claim_row *row), void *context);

/* Removes a claim, from the row too. */
bool snk_claim_remove(snk_sqlite *store, snk_lock_row *row, int64_t place);

/* The claim is given up until `expires_ns`. */
bool snk_tombstone_add(snk_sqlite *store, snk_lock_row *row, const snk_id *claim, int64_t expires_ns);
bool snk_tombstone_find(snk_sqlite *store, const snk_id *claim, bool *found_out);

/* Something happened to a holder, which is still there. */
bool snk_incident_add(snk_sqlite *store, const snk_claim_row *holder, const char *kind, const char *text);

/* For other files of this store: the statement with store.resource as ?1, or NULL with store.code set. */
sqlite3_stmt *snk_prepare(snk_sqlite *store, snk_statement which);
/* The same for a statement that is not about one lock. */
sqlite3_stmt *snk_prepare_bare(snk_sqlite *store, snk_statement which);
/* Steps to the next row; at the end or on an error the statement is reset. NULL is an error. */
bool snk_step(snk_sqlite *store, sqlite3_stmt *statement, bool *row_out);
/* Runs it to its end and resets it. */
bool snk_run(snk_sqlite *store, sqlite3_stmt *statement);
/* The first columns, as they are for a claim; false, with store.code set, when the row is none. */
bool snk_column_claim(snk_sqlite *store, sqlite3_stmt *statement, snk_claim_row *row_out);
/* The text in that column, "" for NULL; valid until the next step. */
const char *snk_column_text(sqlite3_stmt *statement, int column);

#endif
