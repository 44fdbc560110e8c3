/*
 * A lock on several independent nodes: it is held by the claim that a majority of them voted for. The rules, without I/O
 * and without a clock; ballot.h is one try to get those votes.
 *
 * Two majorities share a node, so no two claims can have one at a time, and each node votes for one claim at a time. The
 * token (S6): a client proposes one number T with the ballot, above the highest clock of any node that it has seen. A
 * node votes only if T is above everything that it has voted for, and above its clock; so of two grants the later one
 * has the higher token, by the node that voted for both. A grant is a majority of votes for the same T.
 *
 * A node that was restarted, or emptied, has forgotten its votes (S9). It may vote, but the vote counts only when every
 * lease that it may have forgotten is over. What it keeps from then on is as good as what others keep: renewals of a
 * claim that it has count at once.
 */
#ifndef SNK_ENGINE_QUORUM_H
#define SNK_ENGINE_QUORUM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/limits.h"
#include "engine/claim.h"

/* How far a token lies ahead of the highest clock, at least: above what a busy machine takes. A token is a microsecond. */
#define SNK_QUORUM_LEAD_US INT64_C(50000)
/* How much longer than the longest lease a node that has forgotten its votes does not count. */
#define SNK_QUORUM_YOUNG_NS (1 * SNK_NS_PER_S)

/* What all clients of the nodes must agree on. */
typedef struct snk_quorum {
    uint32_t nodes;
    int64_t lease_max_ns;
} snk_quorum;

static inline uint32_t snk_quorum_majority(const snk_quorum *quorum)
{
    return quorum->nodes / 2 + 1;
}

/* So many nodes without a claim leave no majority for it. */
static inline uint32_t snk_quorum_blocking(const snk_quorum *quorum)
{
    return quorum->nodes - snk_quorum_majority(quorum) + 1;
}

/* ---- What a client knows about a node ---- */

typedef struct snk_node_clock {
    bool known;
    int64_t time_us;        /* what its clock showed */
    int64_t heard_at_ns;    /* when we heard that */
    int64_t round_trip_ns;  /* smoothed */
    int64_t counts_from_ns; /* ballots that leave before this do not count (S9); SNK_NEVER_NS: not known yet */
} snk_node_clock;

void snk_node_clock_init(snk_node_clock *clock);

/* The node has told its time, in an answer to a request that left at `sent_at_ns`. */
void snk_node_clock_heard(snk_node_clock *clock, int64_t time_us, int64_t sent_at_ns, int64_t now_ns);

/*
 * The node, which answers on this connection, has told for how long it has been running. It says so by a clock that may
 * have been set meanwhile; but it did not run yet when another run of it was last heard, at `after_ns` (0: none was).
 */
void snk_node_clock_started(snk_node_clock *clock, const snk_quorum *quorum, int64_t uptime_ns, int64_t after_ns,
                            int64_t now_ns);

/* What its clock shows now, carried on by ours. Only when it is known. */
int64_t snk_node_clock_us(const snk_node_clock *clock, int64_t now_ns);

static inline bool snk_node_clock_counts(const snk_node_clock *clock, int64_t sent_at_ns)
{
    return clock->counts_from_ns <= sent_at_ns;
}

/*
 * The token to propose now: above the highest clock that a majority of the nodes can go along with, and above `above`
 * (tokens that are known to be taken) unless no majority could. 0 when no clock is known. `passed`: how often a clock had
 * passed the proposal already when it came.
 */
uint64_t snk_quorum_propose(const snk_quorum *quorum, const snk_node_clock clocks[], int64_t now_ns, uint64_t above,
                            uint32_t passed);

/* ---- Questions about a claim that has its votes ---- */

/* What one node said. */
typedef enum snk_node_says {
    SNK_NODE_OPEN,   /* nothing yet */
    SNK_NODE_YES,    /* it has the claim: it was renewed there, or released */
    SNK_NODE_NO,     /* it does not have it */
    SNK_NODE_FAILED, /* it was not asked, or refused: nothing was changed there */
    SNK_NODE_SILENT  /* it was asked and has not answered: nobody knows */
} snk_node_says;

typedef enum snk_quorum_says {
    SNK_QUORUM_OPEN, /* more answers are needed */
    SNK_QUORUM_YES,
    SNK_QUORUM_NO,
    SNK_QUORUM_FAILED,
    SNK_QUORUM_UNCERTAIN
} snk_quorum_says;

/* YES: a majority has the claim, and renewed it. NO: no majority can have it. */
snk_quorum_says snk_quorum_renewal(const snk_quorum *quorum, const snk_node_says says[]);

/*
 * YES: a majority does not have the claim any more, and it cannot be excluded that a majority had it. NO: no majority
 * had it. Else too few nodes have answered.
 */
snk_quorum_says snk_quorum_release(const snk_quorum *quorum, const snk_node_says says[]);

/*
 * A node that was told a release need not be told again. `refused`: it answered, with an error (its data is being read,
 * somebody's script runs, …), and changed nothing.
 */
bool snk_quorum_release_is_heard(snk_node_says says, bool refused);

/*
 * After a renewal that was counted as YES: the nodes that do not have the claim and may be given it, as a set. (Never
 * before: a claim that a majority has lost must stay lost.)
 */
uint32_t snk_quorum_adopters(const snk_quorum *quorum, const snk_node_says says[]);

#endif
