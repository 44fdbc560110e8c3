/* Ends what is over: holds and waiting claims whose lease has ended or whose client has died. */
#ifndef SNK_STORE_SQLITE_SETTLE_H
#define SNK_STORE_SQLITE_SETTLE_H

#include "store/sqlite/rows.h"

typedef enum snk_fate {
    SNK_FATE_ALIVE,
    SNK_FATE_EXPIRED,
    SNK_FATE_DIED
} snk_fate;

snk_fate snk_fate_of(const snk_sqlite *store, const snk_stamp *stamp, int64_t expires_ns);

/*
 * Ends the hold if it is over, noting the incident, and offers a free lock to the first live claim of the queue; those
 * before it are removed. Then the first claim, if there is one, has the lock.
 */
bool snk_settle(snk_sqlite *store, snk_lock_row *row);

/* Removes what is over right before `place`, and finds the claim that is then there: a waiter, or the holder. */
bool snk_settle_before(snk_sqlite *store, snk_lock_row *row, int64_t place, snk_claim_row *before);

#endif
