/*
 * What contract tests of stores stand on: four clients of one store, without an engine. A suite runs once on each
 * store; what it needs that a store cannot do is skipped there, with its reason.
 */
#ifndef SNK_TEST_STORE_BED_H
#define SNK_TEST_STORE_BED_H

#include "claims.h"
#include "store/view.h"
#include "test.h"

typedef struct clients {
    snk_store *a; /* clients of one store */
    snk_store *b;
    snk_store *c;
    snk_store *d;
    char folder[64];
} clients;

/* Runs each of the tests, which take `clients` as their state, on each store. The result is for main to return. */
int store_bed_run(const char *group, const struct CMUnitTest tests[], size_t count);

/* The same, and once more on each store with claims that are fair: store_bed_is_fair says so. */
int store_bed_run_fair_too(const char *group, const struct CMUnitTest tests[], size_t count);
bool store_bed_is_fair(void);

/* Skips the running test on a store that cannot do this. */
void store_bed_needs(const clients *world, snk_mode mode);

/* The same where those who wait are served in any order. */
void store_bed_needs_order(const clients *world);

/*
 * Lets every client hold or wait once, so that it has its connections and listens: what a short lease must last for is then
 * what the test does, not the making of them.
 */
void store_bed_warm_up(const clients *world);

/* Insists on the kind of an answer. */
void expect(snk_answer answer, snk_answer_kind kind);

snk_view *inspect(snk_store *store, const char *name);
int64_t remaining_ms(snk_store *store, const char *name);
bool is_held(snk_store *store, const char *name);

/* Time passes until `name` is free again: leases end by the clock alone. */
void await_free(snk_store *store, const char *name);

/*
 * Time passes until the claim that was made with this `why` holds `name` no more. Who waited for it may have it by then, or
 * nobody: a store need not hand on a lock whose holder's lease ended before somebody asks.
 */
void await_end(snk_store *store, const char *name, const char *why);
/* Time passes until no more than `count` claims wait for `name`. */
void await_waiters(snk_store *store, const char *name, size_t count);

#endif
