/*
 * The embedded store: claims in an SQLite file, waiters on futexes in a mapped file beside it.
 *
 * Locks, in the order in which they are taken:
 *
 *   1. snk_sqlite.mutex      threads of this process that use this store's connection
 *   2. the fork gate         keeps fork() out while SQLite works; see forkgate.h
 *   3. the writer mutex      processes (and other stores of this process) that use the file; see sidecar.h
 *   4. SQLite's file lock    programs that know nothing of us
 *      snk_sqlite.gate       taken last, for a few instructions; nothing is called under it
 *
 * Each has a time limit: a process that is stopped in the middle of a transaction costs others SNECK_UNAVAILABLE,
 * never a hang.
 */
#ifndef SNK_STORE_SQLITE_SQLITE_H
#define SNK_STORE_SQLITE_SQLITE_H

#include <pthread.h>

#include "base/limits.h"
#include "base/list.h"
#include "store/sqlite/database.h"
#include "store/sqlite/liveness.h"
#include "store/sqlite/path.h"
#include "store/sqlite/sidecar.h"
#include "store/store.h"

/* How long a thread waits for the store's mutex and the writer mutex together. SQLite's busy timeout comes behind it. */
#define SNK_TURN_WAIT_NS (2 * SNK_NS_PER_S)
/* Clients whose death a wait for more than one of them hears of. */
#define SNK_WATCHED_MAX 20
#define SNK_RESOURCE_SIZE (1 + SNK_PREFIX_LENGTH_MAX + SNK_NAME_LENGTH_MAX + 1)
/* Beside a crowd, a request grants at most one claim and tells one successor. When more do not fit, all are told. */
#define SNK_WAKES_MAX ((size_t)2 * SNK_RENEW_BATCH_MAX)

/* What to tell once the transaction is committed. */
typedef struct snk_wake {
    uint32_t slot;
    bool is_grant;
    snk_grant grant; /* otherwise only its claim is set */
} snk_wake;

typedef struct snk_sqlite {
    snk_store base;

    /* Set when it is opened. */
    snk_identity identity;
    char prefix[SNK_PREFIX_LENGTH_MAX + 1];
    int64_t retry_ns;
    void (*log)(void *context, sneck_log_level level, const char *text);
    void *log_context;

    pthread_mutex_t mutex; /* guards what follows, up to the gate */
    snk_place place;
    snk_database database;     /* connection NULL: not open */
    bool forget_own;           /* the database was replaced: claims of ours in the new one are no more */
    bool stamp_own;            /* the sidecar was replaced: claims of ours get the new slot */
    int64_t distrust_until_ns; /* somebody keeps the writer mutex: until then, only try it */
    int64_t sidecar_look_ns;   /* when to look next whether the sidecar was replaced */
    uint32_t reap_countdown;
    char reap_after[SNK_RESOURCE_SIZE]; /* rows up to here were looked at */

    /* Of the transaction that runs; under mutex. */
    bool has_writer;
    bool writes;
    int code;       /* first SQLite error, or SQLITE_OK */
    int64_t now_ns; /* read after the transaction began */
    int64_t wall_us;
    char resource[SNK_RESOURCE_SIZE];         /* the lock that is being dealt with: prefix and name */
    uint32_t words_before[SNK_SIDECAR_WORDS]; /* our words before the transaction began */
    uint32_t deaths_before;                   /* the same of `deaths` */
    bool tells_strangers;                     /* to whom our death would be no reason to look */
    bool tells_all;                           /* not all wakes fitted */
    size_t wake_count;
    snk_wake wakes[SNK_WAKES_MAX];

    pthread_mutex_t gate;
    snk_sidecar *sidecar; /* changed under mutex and gate, read under either; holders of a reference need neither */
    snk_sidecar *adopted; /* under gate: whose life mutex a thread of the client has; NULL: none */

    /* Whom claims of this client watch (see wait.c), and how many of them have died. */
    _Atomic uint32_t watched[SNK_WATCHED_MAX];
    _Atomic bool watches_too_many; /* somebody did not fit into it: look each retry_ns */
    _Atomic uint32_t deaths;
    /* What waits without a ticket have reported. */
    _Atomic uint32_t words_seen[SNK_SIDECAR_WORDS];
    _Atomic uint32_t deaths_seen;
} snk_sqlite;

static inline snk_sqlite *snk_sqlite_of(snk_store *store)
{
    return SNK_CONTAINER(store, snk_sqlite, base);
}

/* The futex word of a claim, in its client's slot. */
static inline uint32_t snk_word_of(const snk_id *claim)
{
    return claim->bytes[0] % SNK_SIDECAR_WORDS;
}

/* Where claims of this client say that it is. */
static inline snk_stamp snk_own_stamp(const snk_sqlite *store)
{
    return (snk_stamp){ .client = store->identity.client,
                        .generation = store->sidecar->generation,
                        .slot = store->sidecar->slot };
}

/* attach.c: the files behind the store, and what to do when they were replaced. */

/* Opens what is not open. */
sneck_status snk_attach_locked(snk_sqlite *store, sneck_error *error);

/* Closes what is at its path no more. */
void snk_detach_replaced_locked(snk_sqlite *store);

/* Inside a write transaction after a replacement: brings the claims of this client in line. */
void snk_settle_own_locked(snk_sqlite *store);

/* A reference to the sidecar that is used now; NULL: none. Give it back with snk_sidecar_unref. */
snk_sidecar *snk_sidecar_ref(snk_sqlite *store);
void snk_sidecar_unref(snk_sqlite *store, snk_sidecar *sidecar, bool abandon);

/* transaction.c */

/*
 * Locks the store, waits for its turn and begins a transaction. On anything but SNECK_OK nothing is locked.
 */
sneck_status snk_begin(snk_sqlite *store, bool writes, sneck_error *error);

/*
 * Ends the transaction, unlocks, and wakes whom it has news for. If store.code is an error, it is rolled back.
 * `*uncertain_out` (may be NULL) is set when nobody knows whether it was committed.
 */
sneck_status snk_end(snk_sqlite *store, bool *uncertain_out, sneck_error *error);

/* Notes the lock that the following steps deal with. */
void snk_set_resource(snk_sqlite *store, snk_object object, const char *name);

/* After the commit, wakes whoever waits with that claim. */
void snk_add_wake(snk_sqlite *store, const snk_stamp *stamp, const snk_id *claim);
/* The same, and says that it was granted the lock. */
void snk_add_grant(snk_sqlite *store, const snk_stamp *stamp, const snk_grant *grant);

/* claims.c: one request, inside a transaction. The answer counts unless store.code is an error then. */
void snk_do_claim(snk_sqlite *store, const snk_claim *claim, snk_answer *answer);

/* crowd.c: the same for a claim that is not alone on its lock; see crowd.h. */
void snk_do_crowd_claim(snk_sqlite *store, const snk_claim *claim, snk_answer *answer);

/* counts.c */
sneck_status snk_sqlite_tally(snk_store *base, const snk_tally *tally, snk_tallied *tallied_out, sneck_error *error);
sneck_status snk_sqlite_version(snk_store *base, const char *name, const uint64_t *expected, uint64_t *version_out,
                                sneck_error *error);

/* wait.c */
uint64_t snk_ticket_make(snk_sqlite *store, const snk_id *claim, const snk_stamp *watched);
/* A ticket to watch everybody who was ever watched, and is told that by snk_watch; false: one did not fit. */
uint64_t snk_ticket_make_many(const snk_sqlite *store, const snk_id *claim);
bool snk_watch(snk_sqlite *store, const snk_stamp *stamp);
bool snk_sqlite_wait(snk_store *base, uint64_t ticket, _Atomic uint32_t *word, uint32_t expected, int64_t until_ns);
bool snk_sqlite_find_grant(snk_store *base, const snk_id *claim, snk_grant *grant_out);

/* reap.c: now and then removes rows of locks that nobody uses. */
void snk_reap(snk_sqlite *store);

/* look.c */
sneck_status snk_sqlite_inspect(snk_store *base, const char *name, snk_view *view, sneck_error *error);
sneck_status snk_sqlite_list(snk_store *base, const char *pattern, snk_view_fn callback, void *context,
                             sneck_error *error);
sneck_status snk_sqlite_break(snk_store *base, const char *name, uint64_t token, const char *reason,
                              sneck_error *error);

#endif
