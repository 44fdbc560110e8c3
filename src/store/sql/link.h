/*
 * Whether the server of a SQL store can be reached, as far as its connections have shown, for the watchdog and for who
 * listens to events. All connections of a store are one link: it is down when one was lost or could not be made, and up
 * when one was made or a statement was answered.
 */
#ifndef SNK_STORE_SQL_LINK_H
#define SNK_STORE_SQL_LINK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/store.h"

typedef struct snk_sql_link {
    snk_link_fn tell; /* may be NULL; called with nothing locked */
    void *context;
    _Atomic bool is_up;
    _Atomic bool was_up; /* once: the first connection is no news */
    _Atomic uint64_t connects;
    _Atomic uint64_t failures;
    _Atomic uint64_t in_flight; /* connections that somebody uses now */
} snk_sql_link;

void snk_sql_link_init(snk_sql_link *link, const snk_store_config *config);

void snk_sql_link_up(snk_sql_link *link);
/* `why` is for people. */
void snk_sql_link_down(snk_sql_link *link, const char *why);

void snk_sql_link_describe(snk_sql_link *link, snk_store_state *state_out);

/*
 * Whoever waits for an answer on one of these sockets (-1: none) is told that it ended. Nothing more is sent by that. The
 * caller sees to it that none of them is closed meanwhile.
 */
void snk_sql_end_sockets(_Atomic int sockets[], size_t count);

/* What the server's clock says, in µs since 1970 as text, to a question that left at `sent_ns`. */
void snk_sql_read_clock(const char *text, int64_t sent_ns, snk_probe *probe_out);

#endif
