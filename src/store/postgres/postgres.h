/*
 * The PostgreSQL store: claims in tables of a database, changed by functions that live there (schema/), one call each.
 *
 * Threads do their own I/O, on connections of a pool (pool.h). Waiters are woken by messages on a connection of their own
 * (wake.c), or look each retry_ns where that cannot be had. With mode=row each hold has the row of its lock in sneck_lock
 * locked, in an open transaction on a connection that is its own (store/sql/rows.h).
 *
 * Locks, none of which is held while the server is asked or the client is told: the pools' mutexes, that of
 * waiters.claims, rows.mutex, ear.mutex; leaves all of them.
 */
#ifndef SNK_STORE_POSTGRES_POSTGRES_H
#define SNK_STORE_POSTGRES_POSTGRES_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/limits.h"
#include "base/list.h"
#include "store/postgres/options.h"
#include "store/postgres/pool.h"
#include "store/postgres/rows.h"
#include "store/sql/ear.h"
#include "store/sql/waiters.h"
#include "store/store.h"

#define SNK_PG_RESOURCE_SIZE SNK_SQL_RESOURCE_SIZE

typedef struct snk_pg_store {
    snk_store base;

    /* Set when it is opened. */
    snk_identity identity;
    char prefix[SNK_PREFIX_LENGTH_MAX + 1];
    char channel[SNK_UUID_TEXT_SIZE + 8]; /* on which this client is told */
    snk_pg_options options;
    snk_pg_target *target; /* owned reference */
    int64_t retry_ns;
    void (*log)(void *context, sneck_log_level level, const char *text);
    void *log_context;

    snk_sql_link link;
    snk_pg_pool pool;        /* for statements */
    snk_pg_pool row_pool;    /* mode=row: for transactions, one a hold */
    snk_sql_rows rows;       /* mode=row */
    snk_sql_ear ear;         /* the thread that listens */
    _Atomic uint32_t probes; /* messages to ourselves that came back */
    snk_sql_waiters waiters;
    _Atomic uint64_t requests;             /* so far */
    char reap_after[SNK_PG_RESOURCE_SIZE]; /* only the thread that brings `requests` to a round number uses it */
    _Atomic bool is_reaping;
} snk_pg_store;

static inline snk_pg_store *snk_pg_store_of(snk_store *store)
{
    return SNK_CONTAINER(store, snk_pg_store, base);
}

/* "<prefix><name>", with the mark of the object before it. */
void snk_pg_resource(const snk_pg_store *store, snk_object object, const char *name,
                     char resource[SNK_PG_RESOURCE_SIZE]);
void snk_pg_log(const snk_pg_store *store, sneck_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* run.c */

/*
 * Runs one statement as a transaction of its own and awaits its end; after a serialization failure or a deadlock again.
 * `reply` was initialised, and is cleared by the caller.
 */
void snk_pg_run(snk_pg_store *store, snk_pg_statement which, const char *const values[], snk_pg_reply *reply);

/* SNECK_OK when it was answered; SNECK_UNKNOWN when nobody knows. */
sneck_status snk_pg_change_result(const snk_pg_reply *reply, sneck_error *error);
/* SNECK_OK when it was answered; else its error, where what may have happened did not matter. */
sneck_status snk_pg_look_result(const snk_pg_reply *reply, sneck_error *error);

/* setup.c */

/*
 * The first words with the server: whether the session is ours, and whether the tables are there. If they are not, they
 * are made, if that is allowed; with `anew` they are brought up to date in any case.
 */
sneck_status snk_pg_greet(snk_pg_store *store, bool anew, sneck_error *error);

/* claims.c */
void snk_pg_submit(snk_store *base, snk_call *call);
/* One request, as the mode of the store has it. */
void snk_pg_ask_by_mode(snk_store *base, const snk_claim *claim, snk_answer *answer);
/* One request, without regard to rows. */
void snk_pg_ask(snk_pg_store *store, const snk_claim *claim, const char *row_xid, snk_answer *answer);

/* wake.c */
bool snk_pg_wait(snk_store *base, uint64_t ticket, _Atomic uint32_t *word, uint32_t expected, int64_t until_ns);
/* As snk_sql_ear_listen. */
bool snk_pg_listen(snk_store *base);

/* counts.c */
sneck_status snk_pg_tally(snk_store *base, const snk_tally *tally, snk_tallied *tallied_out, sneck_error *error);
/*
 * The version of a name: reads it (`expected` NULL; 0: never bumped), or raises it if it is `*expected` (SNECK_CONFLICT:
 * it is not, and `*version_out` says what it is). SNECK_UNKNOWN: it may have been raised.
 */
sneck_status snk_pg_version(snk_store *base, const char *name, const uint64_t *expected, uint64_t *version_out,
                            sneck_error *error);

/* look.c */
sneck_status snk_pg_inspect(snk_store *base, const char *name, snk_view *view, sneck_error *error);
sneck_status snk_pg_list(snk_store *base, const char *pattern, snk_view_fn callback, void *context, sneck_error *error);
sneck_status snk_pg_break(snk_store *base, const char *name, uint64_t token, const char *reason, sneck_error *error);

/* probe.c */
sneck_status snk_pg_probe(snk_store *base, int64_t timeout_ns, snk_probe *probe_out, sneck_error *error);
void snk_pg_describe(snk_store *base, snk_store_state *state_out);
void snk_pg_reconnect(snk_store *base);

#endif
