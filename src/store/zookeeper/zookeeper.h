/*
 * The ZooKeeper store: a claim is an ephemeral sequential node in the folder of its lock, and who comes first has it. A
 * claim that waits watches the node before it and no other, so a release wakes one. Its token is its node's czxid.
 *
 * A node lives as long as the session (link.h); the lease of a claim is kept by who made it (table.h, janitor.c), and is
 * never longer than the session surely lasts after the server was last heard of. That a claim holds is believed only
 * after a write that a majority of the servers agreed to: a server that was cut off answers reads for a while. A claim that
 * waited is announced to have the lock, as an offer that counts from its last write (zookeeper.c: is_granted).
 *
 * Locks: table.mutex, link.mutex and janitor_mutex, all leaves. Nothing is held while a server is asked.
 */
#ifndef SNK_STORE_ZOOKEEPER_ZOOKEEPER_H
#define SNK_STORE_ZOOKEEPER_ZOOKEEPER_H

#include "store/bell.h"
#include "store/view.h"
#include "store/zookeeper/link.h"
#include "store/zookeeper/table.h"

/* Locks that share a guess: few enough to cost nothing, enough that two busy ones seldom meet. */
#define SNK_ZK_EXPECTATIONS 256

typedef struct snk_zk_store {
    snk_store base;

    /* Set when it is opened. */
    snk_identity identity;
    char prefix[SNK_PREFIX_LENGTH_MAX + 1];
    char root[SNK_ZK_ROOT_LENGTH_MAX + 1];
    char where[128]; /* the servers, for messages */
    int64_t timeout_ns;
    void (*log)(void *context, sneck_log_level level, const char *text);
    void *log_context;
    snk_link_fn tell_link; /* may be NULL */
    void *tell_link_context;
    snk_zk_link *link; /* owned */

    bool is_lost; /* the connection, and it was told; the link's thread alone looks */

    snk_zk_table table;
    snk_bell bell;
    _Atomic bool expects_wait[SNK_ZK_EXPECTATIONS]; /* by a hash of the lock's folder; see node.h */

    pthread_t janitor;
    bool janitor_started;
    pthread_mutex_t janitor_mutex;
    pthread_cond_t janitor_called;
    _Atomic int64_t janitor_until_ns; /* how long it sleeps at most */
    bool janitor_wanted;              /* under janitor_mutex: there may be something earlier to do than it knows */
    bool closing;                     /* under janitor_mutex */
    snk_list orphans; /* of snk_zk_claim that are over and whose nodes are to be deleted; under janitor_mutex */
} snk_zk_store;

static inline snk_zk_store *snk_zk_store_of(snk_store *store)
{
    return SNK_CONTAINER(store, snk_zk_store, base);
}

/* zookeeper.c */

/* Why a trip was of no use, as a status: `changes` tells whether it could have changed something. */
sneck_status snk_zk_failure(snk_zk_store *store, snk_zk_outcome outcome, bool changes, sneck_error *error);
/* What an answer that is no success means. */
sneck_status snk_zk_refusal(snk_zk_store *store, int rc, sneck_error *error);
/* Until when a request that begins now may take. */
int64_t snk_zk_limit_ns(const snk_zk_store *store);
/* The same trip again and again until it is answered, or its time is over; for trips that may run twice. */
snk_zk_outcome snk_zk_insist(snk_zk_store *store, const snk_zk_trip *trip, snk_zk_back *back);
/* The longest lease that the session allows. */
int64_t snk_zk_lease_max_ns(snk_zk_store *store);
/* Makes the folder of a thing, and the root if it has gone; `stays`: no container. */
snk_zk_outcome snk_zk_make_folder(snk_zk_store *store, const char *folder, int64_t until_ns, int *rc_out);

/* claims.c */
void snk_zk_submit(snk_store *base, snk_call *call);

/* janitor.c */
bool snk_zk_janitor_start(snk_zk_store *store);
void snk_zk_janitor_stop(snk_zk_store *store);
/* There is something to do at that time; it is woken only if it would sleep over it. */
void snk_zk_janitor_expect(snk_zk_store *store, int64_t at_ns);
/* Deletes the node of a claim that is over, as soon as it can; what the caller owned of the claim is the janitor's. */
void snk_zk_janitor_adopt(snk_zk_store *store, snk_zk_claim *claim);

/* log.c */

/* Deletes a node and notes why, in one transaction. Not ANSWERED, or an rc other than ZOK: it did not happen. */
snk_zk_outcome snk_zk_remove_noted(snk_zk_store *store, const char *folder, const char *path,
                                   const sneck_incident *incident, int64_t until_ns, int *rc_out);
void snk_zk_log_show(const char *text, snk_view *view);

/* look.c */
sneck_status snk_zk_inspect(snk_store *base, const char *name, snk_view *view, sneck_error *error);
sneck_status snk_zk_list(snk_store *base, const char *pattern, snk_view_fn callback, void *context, sneck_error *error);
sneck_status snk_zk_break(snk_store *base, const char *name, uint64_t token, const char *reason, sneck_error *error);

/* probe.c */
sneck_status snk_zk_probe(snk_store *base, int64_t timeout_ns, snk_probe *probe_out, sneck_error *error);
void snk_zk_describe(snk_store *base, snk_store_state *state_out);
void snk_zk_reconnect(snk_store *base);

/* counts.c */
sneck_status snk_zk_tally(snk_store *base, const snk_tally *tally, snk_tallied *tallied_out, sneck_error *error);
sneck_status snk_zk_version(snk_store *base, const char *name, const uint64_t *expected, uint64_t *version_out,
                            sneck_error *error);

#endif
