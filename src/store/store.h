/*
 * The one interface of every store.
 *
 * A store keeps claims (engine/claim.h) and does things to them atomically. It never sees who waits in this process:
 * it hears of claims, and says when there may be news about one.
 *
 * What each store must guarantee, and tests/store/contract shows:
 *
 *   - acquire registers a claim as the holder (HELD) if the lock is free, otherwise in the queue (QUEUED, if asked to)
 *     or not at all (BUSY). A claim with a tombstone is refused (GONE).
 *   - HELD, from acquire or renew, has set at least the full lease in that same execution; a renew never shortens.
 *   - renew refreshes held and queued claims; it never registers an unknown one (GONE).
 *   - release of a held claim frees the lock and hands it to the first live claim of the queue in the same execution,
 *     as an offer that lives min(SNK_OFFER_NS, that claim's lease) until its first renew. release of a queued claim
 *     leaves the queue. With `unanswered` it also leaves a tombstone for max(lease, SNK_TOMBSTONE_NS), whether or not
 *     the claim was there. It never touches another claim.
 *   - tokens: each grant comes with a block [first, last] that is higher than all tokens of earlier grants of that lock.
 *   - a claim is granted when nothing stands in its way (grip.h); where one release frees several, all of them are
 *     granted. A claim that shares gets no token of its own but the epoch: the last token that was given out.
 *   - a TAKE that ends without `ends_hold`, by a release or by its lease, gives its units back.
 *   - what a claim is owed after a message was lost is found by the next renew: no state hangs on a message.
 *   - a store that announces grants (snk_news_fn) says only what it has done, for a claim whose id nobody else can know,
 *     in the same run of the same server that its "queued" answers name; the offer lives no shorter than said above.
 */
#ifndef SNK_STORE_STORE_H
#define SNK_STORE_STORE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/url.h"
#include "engine/claim.h"
#include "store/grip.h"

typedef struct snk_store snk_store;

/* Who makes the claims of one client; copied by the store when it is opened. */
typedef struct snk_identity {
    snk_id client;
    char uuid[SNK_UUID_TEXT_SIZE];
    char host[64];
    int64_t pid;
} snk_identity;

/* A claim as the store needs to know it. Pointers are borrowed for the call. */
typedef struct snk_claim {
    const char *name; /* without prefix */
    const char *why;  /* "" when none; acquire only */
    int64_t thread;   /* thread id of the asker, for the owner text "<client uuid>:<thread id>"; acquire only */
    snk_grip grip;
    snk_send send;
} snk_claim;

/*
 * One call to the store: `count` requests of the same kind, with an answer each. `done` is called
 * exactly once, when all answers are there: perhaps before submit returns, perhaps on another thread.
 */
typedef struct snk_call {
    const snk_claim *claims; /* borrowed until done */
    snk_answer *answers;     /* borrowed until done; `count` of them */
    size_t count;
    bool background; /* nobody waits for it, and it is asked again anyway: better failed now than answered late */
    void (*done)(struct snk_call *call);
    void *context;
    snk_store *store; /* set by snk_store_submit */
} snk_call;

/* How much a token of this store is worth. */
typedef enum snk_token_strength {
    SNK_TOKEN_TIME_FLOORED, /* rises unless state is lost and the clock steps back in one event */
    SNK_TOKEN_DURABLE       /* rises always */
} snk_token_strength;

typedef struct snk_store_traits {
    snk_token_strength tokens;
    bool token_blocks;   /* grants may come with more than one token: local hand-off is possible */
    bool pushes_wakeups; /* waiters are woken; otherwise they look each retry_ms */
    bool keeps_no_order; /* those who wait are served in any order, so `fair` fails with SNECK_UNSUPPORTED */
    bool counts_levels;  /* re-entry and inner release are to be told to the store as well */
    unsigned modes;      /* what it can do: bits of snk_mode; a request for another one fails with SNECK_UNSUPPORTED */
    unsigned
        lanes; /* so many calls are answered at the same time, while one call of many requests is not; 0: no more than 1 */
    const char *modes_hint; /* what to do for the others; NULL: use another store */
    bool keeps_versions;    /* it has `version` */
    bool slow_looks; /* a renew of a claim that waits may take long: it is not sent together with those of holds */
} snk_store_traits;

/*
 * News about a claim, for the client: called on whatever thread drives the store, with nothing of the store locked.
 * `grant`: the claim was granted the lock, so much the store knows; NULL: look again. Only for stores that hear news on
 * their own; others return from `wait` instead.
 */
typedef void (*snk_news_fn)(void *context, const char *name, const snk_id *claim, const snk_grant *grant);

/* The connection was lost (`why` says how), or is there again. Called as the above. */
typedef void (*snk_link_fn)(void *context, bool is_up, const char *why);

/* What came of a probe. */
typedef struct snk_probe {
    int64_t round_trip_ns;
    bool has_clock;
    int64_t clock_offset_ns; /* of the server's wall clock to ours */
    bool is_half_open;       /* it failed: one of several connections is open, and no answer came over it */
} snk_probe;

/* A connection, or several of them taken together. */
typedef struct snk_store_state {
    bool connected;
    uint64_t connects;  /* so far */
    uint64_t servers;   /* that were connected at least once; 0: there is one */
    uint64_t failures;  /* attempts to connect that failed, and connections given up */
    uint64_t in_flight; /* requests that wait for their answer */
    unsigned nodes;     /* of a quorum; 0: it is none */
    unsigned nodes_up;
} snk_store_state;

/* Connections that were made anew: the first one to each server is not. */
static inline uint64_t snk_store_reconnects(const snk_store_state *state)
{
    uint64_t first = state->servers > 0 ? state->servers : 1;
    return state->connects > first ? state->connects - first : 0;
}

/* What a store says about one lock. The text fields point into `text`, which grows as needed (owned; see store/view.h). */
typedef struct snk_view snk_view;

typedef bool (*snk_view_fn)(void *context, const snk_view *view);

/* A node of a quorum; valid during the call. */
typedef void (*snk_node_fn)(void *context, const sneck_node *node);

typedef struct snk_store_ops {
    const char *scheme;
    void (*submit)(snk_store *store, snk_call *call);
    /*
     * Sleeps until there may be news about the claim that `ticket` came with, `*word` is no longer `expected`, or
     * `until_ns` has come; it may also return for no reason. NULL ticket pointer (0): for any claim of this client.
     * A cancellation point. Returns true when the store has news.
     */
    bool (*wait)(snk_store *store, uint64_t ticket, _Atomic uint32_t *word, uint32_t expected, int64_t until_ns);
    /*
     * A thread in `wait` may do the store's I/O instead of sleeping on its word. Called after the word was changed: true
     * when it does so, and will look at it; otherwise it must be woken. The thread is inside `wait`, or was a moment ago
     * and the store is still open. May be NULL.
     */
    bool (*rouse)(snk_store *store, const _Atomic uint32_t *word);
    /*
     * Which part of the store a name is in now: what is asked about names of one part may be held up together, but never
     * by another part. May be NULL: there is one part.
     */
    uint32_t (*part)(snk_store *store, const char *name);
    /*
     * For whoever was told so by `wait`: whether the news is that this claim was granted the lock. No I/O; false when
     * that is not known. NULL where grants are announced by snk_news_fn, or not at all.
     */
    bool (*find_grant)(snk_store *store, const snk_id *claim, snk_grant *grant_out);
    sneck_status (*inspect)(snk_store *store, const char *name, snk_view *view, sneck_error *error);
    sneck_status (*list)(snk_store *store, const char *pattern, snk_view_fn callback, void *context,
                         sneck_error *error);
    sneck_status (*break_hold)(snk_store *store, const char *name, uint64_t token, const char *reason,
                               sneck_error *error);
    /*
     * Reads or changes a count; a store without PERMIT, TAKE and PASS has NULL here. SNECK_UNKNOWN: it may have happened.
     */
    sneck_status (*tally)(snk_store *store, const snk_tally *tally, snk_tallied *tallied_out, sneck_error *error);
    /*
     * The version of a name: reads it (`expected` NULL; 0: never bumped), or raises it if it is `*expected`
     * (SNECK_CONFLICT: it is not, and `*version_out` says what it is). NULL where the store keeps none.
     */
    sneck_status (*version)(snk_store *store, const char *name, const uint64_t *expected, uint64_t *version_out,
                            sneck_error *error);
    /* Called once on a thread of the client that lives until just before close; may be NULL. */
    void (*adopt_thread)(snk_store *store);
    /* Called by that same thread as its last act; may be NULL. */
    void (*disown_thread)(snk_store *store);
    /*
     * A file descriptor that keeps the claims of this client alive while any process has it open (the embedded
     * store's liveness lock), or -1. Borrowed. May be NULL.
     */
    int (*liveness_fd)(snk_store *store);
    /*
     * As submit, for renewals that only look (snk_send.check): HELD, BUSY when another claim holds the lock, GONE when
     * none does. Changes nothing. May be NULL: then they are submitted as the renewals that they are.
     */
    void (*check)(snk_store *store, snk_call *call);
    /* Asks for a sign of life, and waits for it, for `timeout_ns` at most. NULL: there is no connection. */
    sneck_status (*probe)(snk_store *store, int64_t timeout_ns, snk_probe *probe_out, sneck_error *error);
    /* What is known of the connection without asking. Where there is `probe` there is this. */
    void (*describe)(snk_store *store, snk_store_state *state_out);
    /* What is known of each node of a quorum without asking, but for `trouble`. NULL: it is none. */
    void (*each_node)(snk_store *store, snk_node_fn callback, void *context);
    /* Gives the connection up, so that the next request makes another one. NULL with `probe`. */
    void (*reconnect)(snk_store *store);
    /* Frees everything; every call is done by then. */
    void (*close)(snk_store *store);
    /* In a child of fork(): gives back what can be given back without touching what the parent uses. */
    void (*abandon)(snk_store *store);
} snk_store_ops;

/* The head of each store's own struct. */
struct snk_store {
    const snk_store_ops *ops;
    snk_store_traits traits;
};

typedef struct snk_store_config {
    const snk_url *url; /* borrowed */
    const char *prefix; /* borrowed; copied by the store */
    snk_identity identity;
    int64_t retry_ns;
    int64_t lease_ns; /* of locks that do not say otherwise; 0: the usual */
    snk_news_fn news;
    void *news_context;
    snk_link_fn link; /* may be NULL */
    void *link_context;
    void (*log)(void *context, sneck_log_level level, const char *text);
    void *log_context;
} snk_store_config;

/* Opens the store that the URL names. */
sneck_status snk_store_open(const snk_store_config *config, snk_store **store_out, sneck_error *error);

/*
 * Prepares what the store that the URL names needs (tables, on an SQL server), or brings it up to date. `*needed_out` is
 * false when this kind of store needs nothing.
 */
sneck_status snk_store_setup(const snk_store_config *config, bool *needed_out, sneck_error *error);

/* The statements that this runs, or NULL: nothing is to be prepared, or not by statements. */
const char *snk_store_setup_text(const char *scheme);

/* Hands a call over; see snk_call. */
void snk_store_submit(snk_store *store, snk_call *call);

/* Does one request and returns with its answer. */
void snk_store_ask(snk_store *store, const snk_claim *claim, snk_answer *answer_out);

/*
 * The query keys that stores of this scheme know beside those that every store has (prefix, lease, watchdog, retry),
 * ending with NULL; NULL when there is no such scheme.
 */
const char *const *snk_store_keys(const char *scheme);

/* Each store's constructor; store.c chooses by scheme. */
sneck_status snk_memory_open(const snk_store_config *config, snk_store **store_out, sneck_error *error);
sneck_status snk_sqlite_open(const snk_store_config *config, snk_store **store_out, sneck_error *error);
sneck_status snk_redis_store_open(const snk_store_config *config, snk_store **store_out, sneck_error *error);
sneck_status snk_quorum_store_open(const snk_store_config *config, snk_store **store_out, sneck_error *error);
sneck_status snk_postgres_open(const snk_store_config *config, snk_store **store_out, sneck_error *error);
sneck_status snk_postgres_setup(const snk_store_config *config, sneck_error *error);
sneck_status snk_mysql_open(const snk_store_config *config, snk_store **store_out, sneck_error *error);
sneck_status snk_mysql_setup(const snk_store_config *config, sneck_error *error);
sneck_status snk_zk_store_open(const snk_store_config *config, snk_store **store_out, sneck_error *error);

#endif
