/*
 * One question to all nodes at the same time, and what they say to it. It lives until the last of them has answered,
 * or it is certain that it will not; whoever waits for its result leaves as soon as that is decided.
 */
#ifndef SNK_STORE_QUORUM_OPERATION_H
#define SNK_STORE_QUORUM_OPERATION_H

#include "engine/ballot.h"
#include "store/quorum/errand.h"
#include "store/quorum/quorum.h"
#include "store/quorum/run.h"

typedef struct snk_operation snk_operation;

/* Whoever waits until so many operations are decided; on the stack of a thread. */
typedef struct snk_awaiter {
    _Atomic uint32_t left;
} snk_awaiter;

/* One question to one node. */
typedef struct snk_request {
    snk_errand errand;
    snk_operation *operation; /* a reference */
    uint32_t round;
    snk_vote_kind vote; /* BALLOT: what it was settled with */
    snk_node_says says; /* the others */
} snk_request;

typedef enum snk_operation_kind {
    SNK_OPERATION_BALLOT,
    SNK_OPERATION_RENEWAL,
    SNK_OPERATION_RELEASE,
    SNK_OPERATION_HELLO, /* decided when a majority has answered */
    SNK_OPERATION_MEET,  /* a first HELLO: decided when a majority agrees with us, or cannot, or all have answered */
    SNK_OPERATION_LOOK   /* decided when all have, as far as they do */
} snk_operation_kind;

struct snk_operation {
    snk_quorum_store *store;     /* borrowed */
    _Atomic uint32_t references; /* of whoever waits, and of each request on its way */
    snk_operation_kind kind;
    snk_node_script script;
    uint32_t attempt;         /* BALLOT, RENEWAL: which try of the claim */
    snk_send send;            /* the engine's request */
    int64_t timeout_ns;       /* of each request */
    uint32_t touched;         /* RELEASE: nodes that may have the claim */
    uint32_t unanswered;      /* RELEASE: those of them that may get it yet */
    _Atomic uint32_t settled; /* MEET: requests so far */

    pthread_mutex_t mutex;
    /* Under mutex: */
    snk_ballot ballot;                          /* BALLOT */
    snk_node_says says[SNK_QUORUM_NODES_MAX];   /* the others */
    bool is_decided;                            /* whoever waits has been told */
    bool is_over;                               /* nobody waits any more: what comes now is dealt with by itself */
    uint32_t open;                              /* requests that are not settled */
    sneck_error trouble;                        /* the worst that a node said; SNECK_OK: nothing */
    int64_t other_lease_max_ms;                 /* that a node insists on; 0: none does */
    uint32_t agree;                             /* HELLO: nodes that are used with our longest lease */
    uint32_t differ;                            /* HELLO: those that are used with another one */
    snk_awaiter *awaiter;                       /* borrowed until it is told */
    snk_request *rounds[SNK_BALLOT_ROUNDS_MAX]; /* owned; an array of all nodes each */
    uint32_t round_count;
    char name[]; /* the lock; "" when it is about none */
};

/* NULL when out of memory. With one reference, the caller's. */
snk_operation *snk_operation_new(snk_quorum_store *store, snk_operation_kind kind, const char *name,
                                 const snk_send *send);
void snk_operation_unref(snk_operation *operation);

/* The next round of an operation: a request to each node with these words. Nothing is sent yet. */
sneck_status snk_operation_prepare(snk_operation *operation, const snk_node_words *words, sneck_error *error);
/* Other words for one node. */
sneck_status snk_operation_prepare_node(snk_operation *operation, uint32_t node, const snk_node_words *words,
                                        sneck_error *error);

/* Sends the last round of each of them to all nodes, and waits until each is decided. */
void snk_operations_ask(snk_quorum_store *store, snk_operation *const operations[], size_t count);

/* Waits, after a MEET was decided, until its other nodes have answered too, or that time has come. */
void snk_operation_await_rest(snk_operation *operation, int64_t until_ns);

/* The call of a node in the last round. Only once that is settled: of a LOOK that was decided. */
static inline const snk_redis_call *snk_operation_call(const snk_operation *operation, uint32_t node)
{
    return &operation->rounds[operation->round_count - 1][node].errand.call;
}

/* Notes what a node had to complain of; the first of the worst kind stays. Under operation.mutex. */
void snk_operation_trouble_locked(snk_operation *operation, const sneck_error *trouble);

/*
 * What each kind does with an answer. The first takes it down under operation.mutex, and is true when the operation is
 * decided by it; the second follows with nothing locked. `was_over`: nobody waited for it any more.
 */
bool snk_try_settle_locked(snk_operation *operation, snk_request *request);
void snk_try_settled(snk_operation *operation, const snk_request *request, bool was_over);
bool snk_question_settle_locked(snk_operation *operation, snk_request *request);
void snk_question_settled(snk_operation *operation, const snk_request *request, bool is_last);

#endif
