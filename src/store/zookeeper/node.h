/* The node of a claim: found by the claim's id, written to, deleted. */
#ifndef SNK_STORE_ZOOKEEPER_NODE_H
#define SNK_STORE_ZOOKEEPER_NODE_H

#include "store/zookeeper/claims.h"

typedef struct snk_zk_found {
    char *path; /* to be freed; NULL: there is none */
    struct Stat stat;
    snk_zk_note note;
} snk_zk_found;

/* The node of a claim, found by its id among all of its folder (of session `owner`; 0: of any). */
snk_zk_outcome snk_zk_locate(snk_zk_store *store, const char *folder, const snk_id *id, int64_t owner, int64_t until_ns,
                             snk_zk_found *found_out);

/* The claim's node is there. False when the claim is over already: then its node is the caller's to delete. */
bool snk_zk_node_set(snk_zk_table *table, snk_zk_claim *claim, char *path, uint64_t session, int64_t czxid);
/* Finds the node of a claim whose acquire was never answered. False, and answered: there is none, or it is not known. */
bool snk_zk_node_find(const snk_zk_asked *asked, snk_zk_claim *claim);

/*
 * Whether who comes to this lock will have to wait, judged by the last time. It decides what the node says at first, and is
 * a guess: who is wrong writes to the node once more.
 */
void snk_zk_expect_wait(snk_zk_store *store, const char *folder, bool waits);
bool snk_zk_expects_wait(snk_zk_store *store, const char *folder);
/* What the node says at first. */
void snk_zk_node_describe(snk_zk_store *store, const snk_claim *asked, const char *folder, snk_zk_note *note);
/* What it is to say from now on; the lease that others are shown never shrinks, either. `units` 0: as many as it said. */
void snk_zk_node_holds(const snk_zk_asked *asked, snk_zk_claim *claim, uint32_t units);
void snk_zk_node_waits(const snk_zk_asked *asked, snk_zk_claim *claim);
/* Adds a request that writes the claim's note, and its index is returned. */
size_t snk_zk_node_ask(snk_zk_trip *trip, const snk_zk_claim *claim, char text[SNK_ZK_NOTE_SIZE]);

/* Where a node is, and which one of all that may have been there. */
typedef struct snk_zk_spot {
    const char *path;
    uint64_t session; /* 0: of any */
    int64_t czxid;    /* 0: not known */
} snk_zk_spot;

/* Whether another node is at the path now; if nobody says so, it is not. */
bool snk_zk_node_is_another(snk_zk_store *store, const snk_zk_spot *at, int64_t until_ns);
/*
 * Deletes a node, and asks again after a cut: then the first try may have done it, and another may be at its path by now,
 * which stays. `*rc_out` is ZOK also when it was a try that was not answered.
 */
snk_zk_outcome snk_zk_node_delete(snk_zk_store *store, const snk_zk_spot *at, int64_t until_ns, int *rc_out);

/* A claim that is of no use is deleted; if that fails, the janitor does it. */
void snk_zk_node_withdraw(const snk_zk_asked *asked, snk_zk_claim *claim);

#endif
