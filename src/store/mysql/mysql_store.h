/*
 * The MariaDB store: claims in tables of a database, changed by functions that live there (schema/), one call each, which
 * under autocommit is one transaction. Threads do their own I/O, on connections of a pool. Nobody is told anything: those
 * who wait look again and again, with pauses that grow with the time they have waited, up to retry_ns, and at the end of
 * a hold.
 */
#ifndef SNK_STORE_MYSQL_MYSQL_STORE_H
#define SNK_STORE_MYSQL_MYSQL_STORE_H

#include <stdatomic.h>

#include "base/limits.h"
#include "store/bell.h"
#include "store/mysql/options.h"
#include "store/mysql/pool.h"
#include "store/sql/text.h"
#include "store/store.h"

#define SNK_MY_RESOURCE_SIZE (1 + SNK_PREFIX_LENGTH_MAX + SNK_NAME_LENGTH_MAX + 1)
#define SNK_MY_SCHEMA 1

/* Of schema/: statements parted by lines with // alone. */
extern const char snk_my_schema_text[];

typedef struct snk_my_store {
    snk_store base;

    /* Set when it is opened. */
    snk_identity identity;
    char prefix[SNK_PREFIX_LENGTH_MAX + 1];
    snk_my_options options;
    int64_t retry_ns;

    snk_sql_link link;
    snk_my_pool pool;
    snk_bell bell;                /* never rung: those who wait sleep on it until they look */
    _Atomic int64_t queued_at_ns; /* when a claim was last found to wait */
    _Atomic uint64_t requests;
    _Atomic bool is_reaping;
    char reap_after[2 * SNK_MY_RESOURCE_SIZE]; /* in hex; of the thread that set is_reaping */
} snk_my_store;

static inline snk_my_store *snk_my_store_of(snk_store *store)
{
    return SNK_CONTAINER(store, snk_my_store, base);
}

/* A ticket here says how long a claim may sleep until it looks. */
static inline uint64_t snk_my_ticket(int64_t look_ns)
{
    return UINT64_C(1) << 63 | (uint64_t)look_ns;
}

static inline int64_t snk_my_look_of(uint64_t ticket)
{
    return (int64_t)(ticket & ~(UINT64_C(1) << 63));
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
