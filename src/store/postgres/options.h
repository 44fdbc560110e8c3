/* What the URL of a PostgreSQL store says: our own keys, and what is passed on to libpq. */
#ifndef SNK_STORE_POSTGRES_OPTIONS_H
#define SNK_STORE_POSTGRES_OPTIONS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/ids.h"
#include "base/url.h"
#include "store/settings.h"

#define SNK_PG_PARAMETERS_MAX 64

/* One of several servers, as libpq's parameters name it; NULL: not given. */
typedef struct snk_pg_host {
    const char *name;
    const char *address;
    const char *port;
} snk_pg_host;

/*
 * Where and how to connect. Shared by the store and by the threads that connect, which may be left behind; whoever lets
 * go last frees it. Nothing in it changes but `is_pooled` and `favourite`.
 */
typedef struct snk_pg_target {
    _Atomic unsigned references;
    /*
     * A pooler stands between us and the server: it refused the settings of our session, or did not pass them on. Then no
     * session is ours: no prepared statements, no LISTEN, and time limits go with each transaction.
     */
    _Atomic bool is_pooled;
    const char *keywords[SNK_PG_PARAMETERS_MAX + 1]; /* ends with NULL; the texts are literals or in `memory` */
    const char *values[SNK_PG_PARAMETERS_MAX + 1];
    size_t count;
    size_t settings;                      /* the parameter that is left out where there is a pooler */
    snk_pg_host hosts[SNK_URL_HOSTS_MAX]; /* where there are several to be asked one by one */
    size_t host_count;                    /* 1: the parameters say it all */
    int64_t host_limit_ns;                /* connect_timeout=: for one of them; 0: its share of the time */
    _Atomic size_t favourite;             /* the one that served last, which is asked first */
    char *memory;                         /* owned */
    size_t memory_size;
} snk_pg_target;

typedef struct snk_pg_options {
    bool locks_rows;    /* mode=row */
    int64_t timeout_ns; /* to connect, and for an answer */
    int server_ms;      /* after this time the server gives a statement up, before we do: then its answer is clear */
    unsigned connections;
    char where[128]; /* the server, for messages */
} snk_pg_options;

/* The query keys of PostgreSQL, beside those of every store; ends with NULL. */
extern const char *const snk_pg_keys[];

/*
 * SNECK_INVALID, or SNECK_DENIED when the password file cannot be read. No network I/O. `client` goes into the settings
 * of each session, so that a session can be seen to be ours.
 */
sneck_status snk_pg_options_load(snk_pg_options *options, const snk_url *url, const char client[SNK_UUID_TEXT_SIZE],
                                 snk_pg_target **target_out, sneck_error *error);

void snk_pg_target_ref(snk_pg_target *target);
/* NULL is a no-op. */
void snk_pg_target_unref(snk_pg_target *target);

#endif
