/*
 * One try of a claim to get the votes of a majority of nodes (quorum.h), as a state machine without I/O and without a
 * clock. Whoever runs it asks all nodes with the token of the round, feeds it each answer, and does what it says.
 *
 * Usually one round is enough. A round is lost in three ways that another one may mend, in which all nodes are asked
 * again with a higher token; those that have voted raise theirs, so that the votes of a round are always for one token:
 *
 *   - the token was not above what a node had seen (LOW). If others were faster in each round, they have the lock in turn;
 *   - several claims came at once, and nobody got a majority. The one that is ahead (most votes, then the higher token,
 *     then the higher id) stays and asks again after a pause; the others take their votes back and make room. Each node
 *     shows whom it voted for, so mostly all of them see the same.
 *
 * However it ends, unless it is granted: the votes of the `touched` nodes are to be taken back, of the silent ones too.
 * A node that left something `unanswered` may vote yet, so the claim must be buried there (S4); also if that comes out
 * only after the verdict. A request behind one that is answered on the same connection needs no such care;
 * one that was sent again does (snk_ballot_afterword).
 */
#ifndef SNK_ENGINE_BALLOT_H
#define SNK_ENGINE_BALLOT_H

#include "engine/quorum.h"

#define SNK_BALLOT_ROUNDS_MAX 4

typedef enum snk_vote_kind {
    SNK_VOTE_OPEN,   /* no answer yet */
    SNK_VOTE_YES,    /* for the token of this round, with the full lease set */
    SNK_VOTE_LOW,    /* no: the token is not above the node's */
    SNK_VOTE_HIGH,   /* no: the token is too far ahead of the node's clock */
    SNK_VOTE_TAKEN,  /* no: the vote is another claim's */
    SNK_VOTE_BURIED, /* no: the claim was given up */
    SNK_VOTE_YOUNG,  /* no: the node was emptied lately (S9) */
    SNK_VOTE_FAILED, /* it was not asked, or refused: nothing was changed there */
    SNK_VOTE_SILENT  /* it was asked and has not answered: nobody knows */
} snk_vote_kind;

typedef struct snk_vote {
    snk_vote_kind kind;
    bool counts;    /* YES: the node has not been restarted lately (S9) */
    uint64_t floor; /* LOW, TAKEN: the token must be above this */
    bool beaten;    /* LOW: by the token of another claim that was here meanwhile; otherwise by the node's clock */
    snk_id holder;  /* TAKEN: whose vote it is; none for a client of another kind */
    uint64_t token; /* TAKEN: of that vote */
    int64_t
        remaining_ns; /* TAKEN: until its lease ends there; YOUNG: until the node counts; YES that does not: the same */
} snk_vote;

typedef enum snk_verdict {
    SNK_VERDICT_OPEN,     /* more answers are needed */
    SNK_VERDICT_GRANTED,  /* by a majority, and the lease still lasts */
    SNK_VERDICT_AGAIN,    /* another round, after pause_ns */
    SNK_VERDICT_BUSY,     /* somebody else has it, or is about to; look after pause_ns */
    SNK_VERDICT_YOUNG,    /* too many nodes were restarted or emptied lately; look after pause_ns */
    SNK_VERDICT_SKEWED,   /* no token suits a majority: the clocks are too far apart, or answers too slow */
    SNK_VERDICT_LATE,     /* a majority voted, too late to use the lease */
    SNK_VERDICT_BURIED,   /* the claim has been given up */
    SNK_VERDICT_FAILED,   /* too few nodes could be asked; it did not happen */
    SNK_VERDICT_UNCERTAIN /* too few nodes answered; a majority may have voted */
} snk_verdict;

typedef struct snk_ballot {
    const snk_quorum *quorum; /* borrowed */
    snk_id claim;
    int64_t sent_at_ns; /* when the request left the engine: its lease counts from here */
    int64_t lease_ns;
    uint64_t token;  /* of this round */
    uint64_t above;  /* the next token must be */
    uint64_t known;  /* tokens up to this were known to be taken when the round began */
    uint32_t round;  /* from 1 */
    uint32_t passed; /* rounds in which the clock of a node had passed the token when it came */
    uint32_t voted;  /* nodes that voted in some round */
    uint32_t silent; /* nodes that did not answer in some round */
    snk_verdict verdict;
    int64_t pause_ns;                     /* see the verdict */
    uint8_t open[SNK_QUORUM_NODES_MAX];   /* requests to each node that are not settled */
    snk_vote votes[SNK_QUORUM_NODES_MAX]; /* of this round */
} snk_ballot;

/* `send` is the request that is to be decided by it. */
void snk_ballot_init(snk_ballot *ballot, const snk_quorum *quorum, const snk_send *send);

/* Begins a round: all nodes are asked with this token now. */
void snk_ballot_ask(snk_ballot *ballot, uint64_t token);

/*
 * A node has answered the request of a round, or will not; each request is settled once. Returns the verdict, which
 * stays once it is not OPEN; only snk_ballot_ask takes it back after AGAIN.
 */
snk_verdict snk_ballot_answer(snk_ballot *ballot, uint32_t round, uint32_t node, const snk_vote *vote, int64_t now_ns);

/* What is to be done about an answer that comes when the try is over. */
typedef enum snk_afterword {
    SNK_AFTER_NOTHING, /* what was sent at the end has seen to it */
    SNK_AFTER_ADOPT,   /* it may be given the claim, if that was granted */
    SNK_AFTER_VOTED,   /* it has a vote: taken back, unless the claim holds by this try */
    SNK_AFTER_UNKNOWN  /* it may vote at any time: the same, and buried */
} snk_afterword;

/*
 * `sent_again`: the node had forgotten the script (which proves that it did not run), so the vote came behind whatever was
 * sent meanwhile, what takes it back included.
 */
snk_afterword snk_ballot_afterword(snk_vote_kind kind, bool sent_again);

/* Nodes that may have a vote of this try, or get one yet. */
uint32_t snk_ballot_touched(const snk_ballot *ballot);

/* Nodes that were nobody's in the last round: they voted for this claim, or would have with a higher token. */
uint32_t snk_ballot_free(const snk_ballot *ballot);

/* When it was granted: nodes that would have voted if the token had come earlier. They may be given the claim. */
uint32_t snk_ballot_missed(const snk_ballot *ballot);

/* Those among the touched that were asked, and where it is certain that no answer will come. */
uint32_t snk_ballot_unanswered(const snk_ballot *ballot);

#endif
