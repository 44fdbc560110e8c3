/*
 * The claims of this client: where their nodes are, until when each is good, and what is watched for those that wait.
 * ZooKeeper keeps a node as long as the session; that a claim ends with its lease is kept here (janitor.c).
 */
#ifndef SNK_STORE_ZOOKEEPER_TABLE_H
#define SNK_STORE_ZOOKEEPER_TABLE_H

#include <pthread.h>

#include "base/list.h"
#include "store/zookeeper/note.h"
#include "store/zookeeper/paths.h"

#define SNK_ZK_BUCKETS 256

typedef struct snk_zk_claim {
    snk_link link;           /* in its bucket; under table.mutex, as is everything below that is not said to be fixed */
    snk_link orphan;         /* in the janitor's list; under janitor_mutex */
    _Atomic uint32_t owners; /* the table, the janitor's list, and whoever found it */
    snk_id id;               /* fixed */
    snk_grip grip;           /* fixed */
    char *name;              /* fixed; owned */
    char *folder;            /* fixed; owned */

    /* Set once, when the node is there; then fixed. */
    char *path; /* owned; NULL: nobody knows whether there is a node */
    uint64_t session;
    int64_t czxid;

    snk_zk_note note; /* as it was last written */
    uint64_t token;
    int64_t expires_at_ns;
    bool held;
    bool waits;        /* for what it watches to go, or it did so and has not been let in since */
    bool gone;         /* taken out of the table */
    char *watched;     /* owned; the path whose watch it waits for, or NULL */
    char *watched_too; /* the same */
    bool is_next;      /* only what is watched stands before it */
    uint64_t next_on;  /* ... as the connection with that number has shown; 0: as any shows */
    uint64_t gone_on;  /* what was watched went away, as that connection told; 0: it did not */
    bool is_let_in;    /* nobody stands before it */
} snk_zk_claim;

typedef struct snk_zk_tombstone {
    snk_id id;
    int64_t until_ns;
} snk_zk_tombstone;

typedef struct snk_zk_table {
    pthread_mutex_t mutex; /* a leaf */
    size_t count;
    _Atomic size_t waiting; /* of these; written under mutex */
    snk_list buckets[SNK_ZK_BUCKETS];
    snk_zk_tombstone *tombstones; /* owned */
    size_t tombstone_count;
    size_t tombstone_room;
} snk_zk_table;

bool snk_zk_table_init(snk_zk_table *table);
void snk_zk_table_deinit(snk_zk_table *table);

/* A new claim, in the table; NULL: out of memory. */
snk_zk_claim *snk_zk_claim_new(snk_zk_table *table, const snk_claim *from, const char *folder);
/* NULL: none. Each claim that was found is given back with snk_zk_claim_unref. */
snk_zk_claim *snk_zk_claim_find(snk_zk_table *table, const snk_id *id);
void snk_zk_claim_unref(snk_zk_claim *claim);
/* Takes it out; false when it was out already. */
bool snk_zk_claim_remove(snk_zk_table *table, snk_zk_claim *claim);

/* It has the lock, and its token. */
uint64_t snk_zk_claim_hold(snk_zk_table *table, snk_zk_claim *claim);

/* Makes the claim last; false when its time was over. */
bool snk_zk_claim_prolong(snk_zk_table *table, snk_zk_claim *claim, int64_t lease_ns);

/* What it waits for (copied; NULL: nothing). `is_next`: when that has gone, it is let in. */
void snk_zk_claim_watch(snk_zk_table *table, snk_zk_claim *claim, const char *path, const char *too, bool is_next);

/* It was seen, over that connection, that only what is watched stands before it. True: that went away meanwhile. */
bool snk_zk_claim_is_next(snk_zk_table *table, snk_zk_claim *claim, uint64_t connection);
/* It stands first, and nobody else has heard of that: whoever waits with it must say so before an offer is over. */
void snk_zk_claim_let_in_locked(snk_zk_claim *claim);

/*
 * Up to `count` claims for which `chosen` says so under the mutex, each to be given back; `removes`: they are taken out
 * as well. Returns how many.
 */
size_t snk_zk_table_choose(snk_zk_table *table, bool (*chosen)(void *context, snk_zk_claim *claim), void *context,
                           bool removes, snk_zk_claim **claims_out, size_t count);

/* When the next claim ends; SNK_NEVER_NS: there is none. */
int64_t snk_zk_table_next_end(snk_zk_table *table);
bool snk_zk_table_is_empty(snk_zk_table *table);

/* Tombstones; without memory for one, false. */
bool snk_zk_bury(snk_zk_table *table, const snk_id *id, int64_t until_ns);
bool snk_zk_is_buried(snk_zk_table *table, const snk_id *id);

#endif
