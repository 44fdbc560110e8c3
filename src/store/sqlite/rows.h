/*
 * Rows of the tables as structs. Every function works on the lock of store.resource, inside a transaction, and returns
 * false when SQLite failed: store.code then says how, and the transaction will be rolled back.
 */
#ifndef SNK_STORE_SQLITE_ROWS_H
#define SNK_STORE_SQLITE_ROWS_H

#include "store/sqlite/sqlite.h"

/* A lock as it will be once snk_lock_store has been called. */
typedef struct snk_lock_row {
    bool found;
    bool held;
    bool held_stored; /* what the file says */
    int64_t waiters;
    int64_t waiters_stored;
    uint64_t token; /* highest given out */
    int64_t tombstones_until_ns;
    /* The holder, while held. */
    snk_id claim;
    uint64_t token_first;
    int64_t expires_ns;
    snk_stamp stamp;
    char owner[SNK_OWNER_LENGTH_MAX + 1];
} snk_lock_row;

typedef struct snk_queue_row {
    bool found;
    int64_t place;
    snk_id claim;
    int64_t expires_ns;
    snk_stamp stamp;
    uint32_t tokens; /* asked for */
    int64_t lease_ns;
} snk_queue_row;

bool snk_lock_find(snk_sqlite *store, snk_lock_row *row);

/* Adds a free lock, whose tokens go on where removed ones ended. */
bool snk_lock_add(snk_sqlite *store, snk_lock_row *row);

/* Makes the asker of an acquire the holder. */
bool snk_lock_grant(snk_sqlite *store, snk_lock_row *row, const snk_claim *claim);

/* Makes a claim of the queue the holder, for the life of an offer, and takes it out of the queue. */
bool snk_lock_offer(snk_sqlite *store, snk_lock_row *row, const snk_queue_row *next);

/* Sets the lease of the holder. */
bool snk_lock_renew(snk_sqlite *store, snk_lock_row *row, int64_t expires_ns);

/* Writes what was only noted in the row so far: that it is free, and how many wait. */
bool snk_lock_store(snk_sqlite *store, snk_lock_row *row);

bool snk_queue_add(snk_sqlite *store, snk_lock_row *row, const snk_claim *claim, int64_t *place_out);
bool snk_queue_first(snk_sqlite *store, snk_queue_row *row);
bool snk_queue_find(snk_sqlite *store, const snk_id *claim, snk_queue_row *row);
bool snk_queue_before(snk_sqlite *store, int64_t place, snk_queue_row *row);
bool snk_queue_after(snk_sqlite *store, int64_t place, snk_queue_row *row);
bool snk_queue_renew(snk_sqlite *store, const snk_queue_row *row, int64_t expires_ns);
/* Also counts one waiter less in `lock`. */
bool snk_queue_remove(snk_sqlite *store, snk_lock_row *lock, int64_t place);

/* The claim is given up until `expires_ns`. */
bool snk_tombstone_add(snk_sqlite *store, snk_lock_row *row, const snk_id *claim, int64_t expires_ns);
bool snk_tombstone_find(snk_sqlite *store, const snk_id *claim, bool *found_out);

/* Something happened to the holder. */
bool snk_incident_add(snk_sqlite *store, const snk_lock_row *row, const char *kind, const char *text);

/* For other files of this store: the statement with store.resource as ?1, or NULL with store.code set. */
sqlite3_stmt *snk_prepare(snk_sqlite *store, snk_statement which);
/* Steps to the next row; at the end or on an error the statement is reset. */
bool snk_step(snk_sqlite *store, sqlite3_stmt *statement, bool *row_out);
/* Runs it to its end and resets it. */
bool snk_run(snk_sqlite *store, sqlite3_stmt *statement);
/* A blob of 16 bytes in that column; false, with store.code set, when it is none. */
bool snk_column_id(snk_sqlite *store, sqlite3_stmt *statement, int column, snk_id *id_out);
/* The three columns client, slot, generation from there on. */
bool snk_column_stamp(snk_sqlite *store, sqlite3_stmt *statement, int column, snk_stamp *stamp_out);
/* The text in that column, "" for NULL; valid until the next step. */
const char *snk_column_text(sqlite3_stmt *statement, int column);

#endif
