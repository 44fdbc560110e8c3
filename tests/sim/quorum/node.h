/*
 * One node of a quorum, as its scripts make it (src/store/quorum/scripts): every question is executed at once and alone,
 * on the node's own clock. There is one lock in this world.
 */
#ifndef SIM_QUORUM_NODE_H
#define SIM_QUORUM_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include "clock.h"
#include "engine/ballot.h"

#define QS_TOMBSTONES_MAX 1024
#define QS_ALL_TRIES UINT32_MAX

typedef enum qs_ask {
    QS_VOTE,
    QS_RENEW,
    QS_RELEASE,
    QS_ADOPT /* a claim that a majority has, and this node has not */
} qs_ask;

typedef struct qs_question {
    qs_ask ask;
    snk_id claim;
    uint32_t attempt; /* which try of the claim; QS_ALL_TRIES: whichever (release) */
    bool renewed;     /* QS_ADOPT: a majority has renewed it just now */
    uint64_t token;
    int64_t lease_ns;
    int64_t bury_ns; /* release: for how long the claim is to be refused; 0: not */
} qs_question;

typedef struct qs_reply {
    snk_vote vote;      /* to a vote */
    snk_node_says says; /* to all else */
    bool forgotten;     /* it does not know the script: nothing was done */
    bool refused;       /* an error: nothing was done */
    int64_t time_us;
} qs_reply;

typedef struct qs_tombstone {
    snk_id claim;
    uint32_t attempt;
    int64_t ends_at_ns;
} qs_tombstone;

/* What a restart may forget. */
typedef struct qs_memory {
    bool taken;
    bool adopted;
    snk_id claim;
    uint32_t attempt;
    uint64_t token;
    int64_t ends_at_ns; /* the node's clock */
    uint64_t floor;     /* the highest token that it voted for */
    bool marked;        /* it knows since when it has been in use */
    int64_t marked_at_ns;
    uint32_t tombstone_count;
    qs_tombstone tombstones[QS_TOMBSTONES_MAX];
} qs_memory;

typedef struct qs_node {
    const snk_quorum *quorum;
    sim_clock clock;
    uint32_t run;             /* goes up with each restart */
    int64_t started_at_ns;    /* the node's clock */
    int64_t down_until_ns;    /* true time */
    int64_t paused_until_ns;  /* true time */
    int64_t refuses_until_ns; /* true time: all that it answers are errors */
    uint32_t scripts;         /* that it knows, as a set of qs_ask */
    int64_t forgot_at_ns;     /* true time of the last restart or flush; -1: never */
    qs_memory memory;
    qs_memory saved; /* what a restart finds again, if it is not an empty one */
} qs_node;

/* It has been in use for a while. */
void qs_node_init(qs_node *node, const snk_quorum *quorum, int64_t now_ns);

/* True when a vote was given back by it: the node says so on a channel. */
bool qs_node_execute(qs_node *node, const qs_question *question, int64_t now_ns, qs_reply *reply_out);

/* The process is gone and comes back: with nothing, or with what it saved some time ago. */
void qs_node_restart(qs_node *node, bool empty, int64_t now_ns);
void qs_node_save(qs_node *node);
/* Everything is deleted under it; it runs on. */
void qs_node_flush(qs_node *node);

/* It forgets some of the scripts: SCRIPT FLUSH, or those that were not used for long. */
void qs_node_forget_scripts(qs_node *node, uint32_t scripts);

/* Whole seconds, as INFO tells it. */
int64_t qs_node_uptime_ns(const qs_node *node, int64_t now_ns);

static inline bool qs_node_is_taken(const qs_node *node, int64_t now_ns)
{
    return node->memory.taken && node->memory.ends_at_ns > now_ns;
}

#endif
