/*
 * The quorum store: a lock is held by the claim that a majority of several independent Redis nodes voted for. The rules
 * are in engine/quorum.h and engine/ballot.h; here the nodes are asked.
 *
 * Each request about a claim is an operation (operation.h): one script on every node at the same time, decided as soon
 * as enough of them have answered. Those that answer later are heard all the same, on whatever thread gets the answer.
 * What must not stay on a node is taken back there until it answers (undo.h).
 *
 * Locks: operation.mutex, then one of the leaves: claims.mutex, store.mutex. Nothing is held while nodes are asked or
 * the client is told.
 */
#ifndef SNK_STORE_QUORUM_QUORUM_H
#define SNK_STORE_QUORUM_QUORUM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "engine/quorum.h"
#include "redis/redis.h"
#include "store/bell.h"
#include "store/quorum/claims.h"
#include "store/quorum/options.h"
#include "store/redis/keys.h"
#include "store/store.h"

typedef struct snk_quorum_store snk_quorum_store;

typedef struct snk_quorum_node {
    snk_quorum_store *store;
    uint32_t index;
    snk_redis *redis;                   /* owned */
    char where[96];                     /* host:port, for people */
    _Atomic bool is_down;               /* the last request to it could not be sent */
    _Atomic bool is_probed;             /* while it is down: somebody tries it */
    _Atomic uint32_t undoing;           /* votes that are being taken back there */
    _Atomic int64_t other_lease_max_ms; /* it is used with this longest lease, and refuses us; 0: with ours */
    /* Under store.mutex: */
    snk_redis_run run;       /* that the clock is of */
    int64_t run_heard_at_ns; /* when that run last told its time */
    bool is_twin;            /* another node is the same run of the same server */
    snk_node_clock clock;
    int64_t young_until_ns; /* it was emptied, and says that it does not vote before this; 0: it was not */
    sneck_error trouble;    /* why the last request failed; SNECK_OK: it did not */
} snk_quorum_node;

struct snk_quorum_store {
    snk_store base;

    /* Set when it is opened. */
    snk_identity identity;
    char host[SNK_HOST_LENGTH_MAX + 1]; /* of the identity, without spaces */
    char pid[24];
    char prefix[SNK_PREFIX_LENGTH_MAX + 1];
    char marker[SNK_PREFIX_LENGTH_MAX + 16]; /* the key that says since when a node is in use */
    char lease_max[24];                      /* in ms */
    snk_quorum_options options;
    int64_t retry_ns;
    snk_quorum quorum;
    snk_link_fn link;
    void *link_context;
    void (*log)(void *context, sneck_log_level level, const char *text);
    void *log_context;
    snk_quorum_node nodes[SNK_QUORUM_NODES_MAX];

    pthread_mutex_t mutex;       /* of the nodes' clocks; a leaf */
    uint32_t linked;             /* under mutex: nodes with a connection */
    bool was_linked;             /* under mutex: a majority had one before */
    _Atomic uint32_t mute;       /* nodes that were silent when the watchdog last asked */
    _Atomic uint64_t last_token; /* the highest that this client has proposed */
    _Atomic uint64_t random;
    _Atomic bool is_closing;
    _Atomic uint32_t at_work;   /* operations that are not over, and votes that are being taken back */
    _Atomic uint32_t confirmed; /* goes up with each subscription that a node confirms */
    snk_quorum_claims claims;
    snk_bell bell;
};

static inline snk_quorum_store *snk_quorum_store_of(snk_store *store)
{
    return SNK_CONTAINER(store, snk_quorum_store, base);
}

/* ---- quorum.c ---- */

/* From 0 to `limit` - 1, for pauses. */
int64_t snk_quorum_jitter(snk_quorum_store *store, int64_t limit);

/* Something that was counted in `at_work` is over. The store may be gone right after. */
void snk_quorum_work_ended(snk_quorum_store *store);

/* ---- node.c: one node ---- */

sneck_status snk_quorum_node_open(snk_quorum_node *node, const snk_redis_config *config, sneck_error *error);

/* May the node be asked now? One that could not be reached is tried by one request at a time. */
bool snk_quorum_node_is_askable(snk_quorum_node *node);
/* What came of a request to it. */
void snk_quorum_node_asked(snk_quorum_node *node, const snk_redis_call *call);
/* It has told its time. */
void snk_quorum_node_heard(snk_quorum_node *node, const snk_redis_call *call, int64_t time_us);
/* Whether ballots count that left at `sent_at_ns` and were answered by this run; if not, after how long they will. */
bool snk_quorum_node_counts(snk_quorum_node *node, const snk_redis_call *call, int64_t *wait_ns_out);
/* It was emptied, and votes again after so long. */
void snk_quorum_node_is_young(snk_quorum_node *node, int64_t for_ns);
/* It says what its longest lease is. True: the same as ours. */
bool snk_quorum_node_agrees(snk_quorum_node *node, int64_t lease_max_ms);

/* ---- claims: submit.c ---- */

void snk_quorum_submit(snk_store *base, snk_call *call);

/* ---- wake.c ---- */

/* What is said when a lock is released: the message goes as far as the holder, whom the node adds. */
typedef struct snk_quorum_news {
    char channel[SNK_NAME_LENGTH_MAX + 32];
    char message[2 * SNK_NAME_LENGTH_MAX + 96];
} snk_quorum_news;
/* Both "" when nothing is to be said: `name` is NULL, or nothing is announced. */
void snk_quorum_news_make(snk_quorum_store *store, const char *name, snk_quorum_news *news);

snk_redis_listener snk_quorum_listener(snk_quorum_node *node);
bool snk_quorum_wait(snk_store *base, uint64_t ticket, _Atomic uint32_t *word, uint32_t expected, int64_t until_ns);
/* Messages about the lock are to be heard, or no more. */
void snk_quorum_listen(snk_quorum_store *store, const char *name);
void snk_quorum_unlisten(snk_quorum_store *store, const char *name);
/* So many nodes have confirmed that they will tell that messages cannot be missed. */
bool snk_quorum_hears(snk_quorum_store *store, const char *name);
/* Waits for that, for a second at most. */
void snk_quorum_await_hearing(snk_quorum_store *store, const char *name);

/* ---- state.c: what is known without asking ---- */

/* Each node but for what it says about a lock, and why it is away. */
void snk_quorum_report(snk_quorum_store *store, sneck_node nodes_out[SNK_QUORUM_NODES_MAX]);
void snk_quorum_each_node(snk_store *base, snk_node_fn callback, void *context);
void snk_quorum_describe(snk_store *base, snk_store_state *state_out);

/* What the middle one of the nodes' clocks shows; 0: none is known. */
int64_t snk_quorum_time_us(snk_quorum_store *store);

/* ---- watch.c ---- */

/*
 * Has every node say what a client must know of it, and waits until a majority has, or all that can. `first`: until it is
 * known whether they are used with our longest lease; else a node that is not used yet is told it. To be looked at under
 * its mutex, and then set to over; the caller's reference. NULL without memory.
 */
struct snk_operation *snk_quorum_hello(snk_quorum_store *store, bool first, int64_t timeout_ns, sneck_error *error);
sneck_status snk_quorum_probe(snk_store *base, int64_t timeout_ns, snk_probe *probe_out, sneck_error *error);
/* Makes the connections anew of those that did not answer the last probe. */
void snk_quorum_reconnect(snk_store *base);
/* Has the client told when a majority is connected no more, or is again. */
void snk_quorum_watch_link(snk_redis_listener *listener);

/* ---- look.c ---- */

sneck_status snk_quorum_inspect(snk_store *base, const char *name, snk_view *view, sneck_error *error);
sneck_status snk_quorum_list(snk_store *base, const char *pattern, snk_view_fn callback, void *context,
                             sneck_error *error);
sneck_status snk_quorum_break(snk_store *base, const char *name, uint64_t token, const char *reason,
                              sneck_error *error);

#endif
