/*
 * The way of one request. snk_zk_submit (claims.c) takes each on the thread that asks:
 *
 *   acquire   makes a node and reads where it stands in one trip (enter.c). Who stands first holds; the others write that
 *             they wait, and watch the one before them (queue.c)
 *   renew     writes to the node (queue.c), for who holds and who waits alike
 *   release   deletes it (release.c)
 *
 * Those who wait for a latch have no node (pass.c). What comes of it is said by answer.c; what is done to a claim's own
 * node is in node.c.
 */
#ifndef SNK_STORE_ZOOKEEPER_CLAIMS_H
#define SNK_STORE_ZOOKEEPER_CLAIMS_H

#include "store/zookeeper/standing.h"

/* How often a queue that changes under a claim is looked at before it is left to the next look. */
#define SNK_ZK_LOOKS_MAX 8

/* What is asked of one claim. */
typedef struct snk_zk_asked {
    snk_zk_store *store;
    const snk_claim *asked;
    snk_answer *answer;
    int64_t until_ns;
    uint64_t ticket;
} snk_zk_asked;

/* answer.c */

/* `changes`: whether the trip could have changed something. */
void snk_zk_answer_failure(const snk_zk_asked *asked, snk_zk_outcome outcome, bool changes);
void snk_zk_answer_refusal(const snk_zk_asked *asked, int rc);
/* The claim, if there is one, is taken out of the table. */
void snk_zk_answer_gone(const snk_zk_asked *asked, snk_zk_claim *claim);
/* The claim holds, for a full lease from now on; unless its time was over before the answer came. */
void snk_zk_answer_held(const snk_zk_asked *asked, snk_zk_claim *claim);
/* It waits; unless its time was over. */
void snk_zk_answer_queued(const snk_zk_asked *asked, snk_zk_claim *claim, int64_t look_after_ns);

/* enter.c: makes the node of a claim, and sees where it stands. */
void snk_zk_enter(const snk_zk_asked *asked, snk_zk_claim *claim);

/* queue.c */

typedef enum snk_zk_progress {
    SNK_ZK_DECIDED,
    SNK_ZK_LOOK_AGAIN
} snk_zk_progress;

/*
 * What the claim's place means: it is let in, or waits, or gives up. `is_written`: its node was written to in this same
 * request, and that it stands first is all that it takes to hold.
 */
snk_zk_progress snk_zk_queue_act(const snk_zk_asked *asked, snk_zk_claim *claim, const snk_zk_standing *standing,
                                 bool is_written);
/* Lets the claim in, without waiting until its node says so: that is for those who look alone. */
void snk_zk_queue_held(const snk_zk_asked *asked, snk_zk_claim *claim);
/* Looks where the claim stands until something comes of it. */
void snk_zk_queue_look(const snk_zk_asked *asked, snk_zk_claim *claim);
/*
 * Lets the claim in: said by a write, so that a majority of servers knows of it. `must_check`: all that is known is that
 * the one before it has gone; who became a reader without a gap stands in its place. False: so it is.
 */
bool snk_zk_queue_hold(const snk_zk_asked *asked, snk_zk_claim *claim, uint32_t units, bool must_check);

/* pass.c: waits for a latch, without a node. */
void snk_zk_pass(const snk_zk_asked *asked, snk_zk_claim *claim);

/* release.c: deletes the node of a claim, of this client or of another. */
void snk_zk_release(const snk_zk_asked *asked);

#endif
