/*
 * The MariaDB store: claims in tables of a database, changed by functions that live there (schema/), one call each, which
 * under autocommit is one transaction. Threads do their own I/O, on connections of a pool. Those who wait are told by a
 * session that sleeps on the server (wake.c), or look again and again where that cannot be had, with pauses that grow with
 * the time they have waited, up to retry_ns. With mode=row each hold has the row of its lock in sneck_lock locked, in an
 * open transaction on a connection that is its own (store/sql/rows.h).
 *
 * Locks, none of which is held while the server is asked or the client is told: the pools' mutexes, that of
 * waiters.claims, rows.mutex, ear.mutex; leaves all of them.
 */
#ifndef SNK_STORE_MYSQL_MYSQL_STORE_H
#define SNK_STORE_MYSQL_MYSQL_STORE_H

#include <stdatomic.h>

#include "base/limits.h"
#include "store/mysql/options.h"
#include "store/mysql/pool.h"
#include "store/sql/ear.h"
#include "store/sql/rows.h"
#include "store/sql/text.h"
#include "store/sql/waiters.h"
#include "store/store.h"

#define SNK_MY_RESOURCE_SIZE SNK_SQL_RESOURCE_SIZE
#define SNK_MY_SCHEMA 1

/* SNK_SQL_ROW_WAIT_MS; innodb_lock_wait_timeout counts in whole seconds. */
#define SNK_MY_ROW_PATIENCE "max_statement_time = 0.02"

/* Of schema/: statements parted by lines with // alone. */
extern const char snk_my_schema_text[];

typedef struct snk_my_store {
    snk_store base;

    /* Set when it is opened. */
    snk_identity identity;
    char prefix[SNK_PREFIX_LENGTH_MAX + 1];
    snk_my_options options;
    int64_t retry_ns;

    void (*log)(void *context, sneck_log_level level, const char *text);
    void *log_context;

    snk_sql_link link;
    snk_my_pool pool;     /* for statements */
    snk_my_pool row_pool; /* mode=row: for transactions, one a hold */
    snk_sql_rows rows;    /* mode=row */
    snk_sql_ear ear;      /* the thread whose session waits to be told */
    snk_sql_waiters waiters;
    _Atomic uint64_t requests;
    _Atomic bool is_reaping;
    char reap_after[2 * SNK_MY_RESOURCE_SIZE]; /* in hex; of the thread that set is_reaping */
} snk_my_store;

static inline snk_my_store *snk_my_store_of(snk_store *store)
{
    return SNK_CONTAINER(store, snk_my_store, base);
}

/* run.c */

/* Adds "<prefix><name>", with the mark of the object before it. */
void snk_my_add_resource(const snk_my_store *store, snk_object object, const char *name, snk_sql_text *to);
/* Adds an id in quotes. */
void snk_my_add_id(snk_sql_text *to, const snk_id *id);

/*
 * Runs one statement as a transaction of its own and awaits its end; after a deadlock again. Ends the text. Clear the
 * reply.
 */
void snk_my_run(snk_my_store *store, snk_sql_text *text, snk_my_reply *reply);
/* SNECK_OK when it was answered; SNECK_UNKNOWN when nobody knows. */
sneck_status snk_my_change_result(const snk_my_reply *reply, sneck_error *error);
/* The same where what may have happened did not matter. */
sneck_status snk_my_look_result(const snk_my_reply *reply, sneck_error *error);

/* setup.c: the first words with the server; the tables are made if they are not there, or in any case with `anew`. */
sneck_status snk_my_greet(snk_my_store *store, bool anew, sneck_error *error);

/* claims.c */
void snk_my_submit(snk_store *base, snk_call *call);
/* One request, as the mode of the store has it. */
void snk_my_ask_by_mode(snk_store *base, const snk_claim *claim, snk_answer *answer);
/* One request, in the tables. `in_row`: the claim has the row of its lock. */
void snk_my_ask(snk_my_store *store, const snk_claim *claim, bool in_row, snk_answer *answer);
void snk_my_write_claim(const snk_my_store *store, const snk_claim *claim, bool in_row, snk_sql_text *text);

/* rows.c */
extern const snk_sql_row_ops snk_my_row_ops;

/* wake.c */
/* As snk_sql_ear_listen. */
bool snk_my_listen(snk_store *base);
bool snk_my_wait(snk_store *base, uint64_t ticket, _Atomic uint32_t *word, uint32_t expected, int64_t until_ns);

/* counts.c */
sneck_status snk_my_tally(snk_store *base, const snk_tally *tally, snk_tallied *tallied_out, sneck_error *error);
sneck_status snk_my_version(snk_store *base, const char *name, const uint64_t *expected, uint64_t *version_out,
                            sneck_error *error);

/* look.c */
sneck_status snk_my_inspect(snk_store *base, const char *name, snk_view *view, sneck_error *error);
sneck_status snk_my_list(snk_store *base, const char *pattern, snk_view_fn callback, void *context, sneck_error *error);
sneck_status snk_my_break(snk_store *base, const char *name, uint64_t token, const char *reason, sneck_error *error);

/* probe.c */
sneck_status snk_my_probe(snk_store *base, int64_t timeout_ns, snk_probe *probe_out, sneck_error *error);
void snk_my_describe(snk_store *base, snk_store_state *state_out);
void snk_my_reconnect(snk_store *base);

#endif
