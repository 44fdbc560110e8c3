/*
 * What stores on SQL servers share of those who wait: which claims of this client a message may be for, and how often a
 * claim looks that nobody would tell.
 */
#ifndef SNK_STORE_SQL_WAITERS_H
#define SNK_STORE_SQL_WAITERS_H

#include "store/bell.h"
#include "store/store.h"
#include "store/waiting.h"

typedef struct snk_sql_waiters {
    snk_store *store; /* borrowed */
    int64_t retry_ns;
    snk_waiting claims; /* that wait, or may come to */
    snk_bell bell;
    /* Does one request. */
    void (*ask)(snk_store *store, const snk_claim *claim, snk_answer *answer);
    /* As snk_sql_ear_listen. */
    bool (*listen)(snk_store *store);
} snk_sql_waiters;

/* Does one request, of whatever kind. */
void snk_sql_waiters_do(snk_sql_waiters *waiters, const snk_claim *claim, snk_answer *answer);

/* Keeps step with what the store said to a request that was done otherwise; `ticket` is from before it left. */
void snk_sql_waiters_follow(snk_sql_waiters *waiters, const snk_send *send, uint64_t ticket, snk_answer *answer);

/* Something was said about this claim, if it is one of ours. */
void snk_sql_waiters_tell(snk_sql_waiters *waiters, const snk_id *claim);
/* Whatever was said was missed: all of them must look. */
void snk_sql_waiters_tell_all(snk_sql_waiters *waiters);

#endif
