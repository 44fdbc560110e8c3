/*
 * Claims that are not alone on their lock: readers, permits, those who wait for a latch or a condition. All claims of
 * the thing are read, and the rules of store/grip.h decide. A mutex never comes here unless somebody of these is first
 * in its row; holders always come before those who wait.
 */
#ifndef SNK_STORE_SQLITE_CROWD_H
#define SNK_STORE_SQLITE_CROWD_H

#include "store/sqlite/rows.h"

/* Ends what is over and grants what can be granted; then reads the first claims of the row anew. */
bool snk_crowd_settle(snk_sqlite *store, snk_lock_row *row);

/* Ends all holds with that token; the queue moves on. store.code says how it went. */
void snk_crowd_break(snk_sqlite *store, uint64_t token, const char *text, bool *broken_out);

/* Units of the permits that are out, once the thing is settled. */
bool snk_crowd_used(snk_sqlite *store, const snk_lock_row *row, int64_t *used_out);
/* How many wait. */
bool snk_crowd_waiting(snk_sqlite *store, int64_t *waiting_out);

/* For the first of those who wait, behind a holder that need not be alone: it hears when any of them dies. */
void snk_crowd_watch(snk_sqlite *store, const snk_claim_row *before, const snk_send *send, snk_answer *answer);

#endif
