/*
 * A simulated world with a quorum: processes with threads around several nodes, on one true time, everything drawn from
 * a seed.
 *
 *   engine         the machines, ballots and tallies of src/engine, as the library runs them
 *   shell, ballots, questions, undo, wire   what src/client and src/store/quorum are to them
 *   people         the threads: they ask, wait, hold, write, release
 *   faults         what goes wrong, and when
 *   node           the nodes
 *   oracle         knows everything and checks the invariants at each step
 */
#ifndef SIM_QUORUM_WORLD_H
#define SIM_QUORUM_WORLD_H

#include "batch.h"
#include "engine/ballot.h"
#include "engine/machine.h"
#include "heap.h"
#include "node.h"
#include "random.h"
#include "trail.h"

#define QS_NODES_MAX 7
#define QS_PROCESSES_MAX 4
#define QS_THREADS_MAX 2
#define QS_CLAIMS_MAX 2048
#define QS_OPERATIONS_MAX 128
#define QS_REQUESTS_MAX 2048
#define QS_CHASES_MAX 64
#define QS_UNDOS_MAX 256
#define QS_HOLDINGS_MAX 16
#define QS_TOKENS_MAX 1024

#define QS_PROBES(X)                                                                                                   \
    X(GRANTED, "granted in the first round")                                                                           \
    X(GRANTED_LATER, "granted in a later round")                                                                       \
    X(GRANTED_WAITING, "granted to a claim that had waited")                                                           \
    X(GRANTED_MAJORITY, "granted while a node did not vote")                                                           \
    X(LOW, "token too low for a node")                                                                                 \
    X(HIGH, "token too far ahead of a node")                                                                           \
    X(SPLIT, "votes split among several claims, and one stayed")                                                       \
    X(BUSY, "another claim had the lock")                                                                              \
    X(YOUNG_START, "vote of a node that was restarted lately did not count")                                           \
    X(YOUNG_MARK, "node that was emptied lately did not vote")                                                         \
    X(YOUNG, "too few nodes counted")                                                                                  \
    X(LATE, "majority came too late")                                                                                  \
    X(FAILED, "too few nodes could be asked")                                                                          \
    X(UNCERTAIN, "too few nodes answered")                                                                             \
    X(BURIED, "late ballot refused because of a tombstone")                                                            \
    X(UNDONE, "vote taken back")                                                                                       \
    X(UNDO_REPEATED, "taking a vote back had to be repeated")                                                          \
    X(WITHDRAWN, "claim given up while its ballot was out")                                                            \
    X(RENEWED_WITHOUT, "renewed by a majority while a node did not have the claim")                                    \
    X(ADOPTED, "claim given to a node that did not have it")                                                           \
    X(RENEWAL_FAILED, "renewal without a majority")                                                                    \
    X(LOST, "hold lost by its deadline")                                                                               \
    X(GONE, "hold lost because a majority did not have it")                                                            \
    X(RELEASED_IN_PART, "release that not all nodes answered")                                                         \
    X(RESTARTED_EMPTY, "node restarted without data, with a vote")                                                     \
    X(RESTARTED_STALE, "node restarted with old data")                                                                 \
    X(FLUSHED, "node emptied while it ran, with a vote")                                                               \
    X(SENT_AGAIN, "question sent again because the node had forgotten the script")                                     \
    X(OVERTAKEN, "vote came behind what was to take it back")                                                          \
    X(REFUSED, "release answered with an error")                                                                       \
    X(PAUSED_NODE, "node paused")                                                                                      \
    X(PAUSED_PAST_LEASE, "process paused past its lease")                                                              \
    X(CRASHED_HOLDING, "process died with the lock")                                                                   \
    X(BROKEN, "hold broken by force")                                                                                  \
    X(WOKEN, "waiter woken by the messages of a majority")                                                             \
    X(WRITE_REFUSED, "write with an old token refused")                                                                \
    X(UNKNOWN, "acquire ended without knowing")                                                                        \
    X(UNAVAILABLE, "acquire ended because too few nodes were there")                                                   \
    X(TIMED_OUT, "wait ended by its limit")

#define QS_PROBE_NAME(name, text) QS_PROBE_##name,
typedef enum qs_probe {
    QS_PROBES(QS_PROBE_NAME) QS_PROBE_COUNT
} qs_probe;
#undef QS_PROBE_NAME

typedef enum qs_event_kind {
    QS_EVENT_ACT,             /* a thread does its next thing */
    QS_EVENT_WAKE,            /* a thread that waits was woken */
    QS_EVENT_LIMIT,           /* a thread that waits has waited long enough */
    QS_EVENT_REQUEST_ARRIVES, /* at its node */
    QS_EVENT_REPLY_ARRIVES,   /* at its process */
    QS_EVENT_REQUEST_OVER,    /* the process waits no longer for the answer */
    QS_EVENT_ANSWER,          /* an operation is answered without asking anybody */
    QS_EVENT_ROUND,           /* an operation asks again */
    QS_EVENT_MESSAGE,         /* of a node to a process: a vote was given back; index: the node */
    QS_EVENT_TIMER,           /* of a machine */
    QS_EVENT_CHASE,           /* a chase is due */
    QS_EVENT_UNDO,            /* a vote is to be taken back */
    QS_EVENT_RESTART,         /* a process that crashed begins anew */
    QS_EVENT_FAULT            /* index: qs_fault */
} qs_event_kind;

typedef enum qs_fault {
    QS_FAULT_PAUSE,  /* of a process */
    QS_FAULT_FREEZE, /* of a process, which does not notice */
    QS_FAULT_CRASH,  /* of a process */
    QS_FAULT_CUT,    /* between a process and a node, for a while */
    QS_FAULT_RESET,  /* of a connection */
    QS_FAULT_NODE_PAUSE,
    QS_FAULT_NODE_EMPTY, /* restart that forgets */
    QS_FAULT_NODE_STALE, /* restart that forgets the last */
    QS_FAULT_FLUSH,
    QS_FAULT_BREAK,
    QS_FAULT_SAVE,   /* not a fault: a node saves its data */
    QS_FAULT_FORGET, /* scripts, not data */
    QS_FAULT_REFUSE, /* a node answers with errors, for a while */
    QS_FAULT_COUNT
} qs_fault;

typedef struct qs_plan {
    int64_t lease_ns;
    int64_t latency_ns;
    int64_t timeout_ns; /* of a request to a node */
    int64_t retry_ns;
    int64_t horizon_ns;
    uint32_t late; /* chances in 1000 */
    uint32_t news_lost;
    uint32_t once;
    uint32_t unrenewed;
    int64_t every_ns[QS_FAULT_COUNT]; /* mean pause between faults of a class; 0: none of it */
    uint32_t process_count;
    uint32_t thread_count;
    uint32_t event_budget;
} qs_plan;

typedef struct qs_holding {
    snk_hold hold;
    bool used;
} qs_holding;

typedef enum qs_thread_state {
    QS_THREAD_IDLE,
    QS_THREAD_WAITING,
    QS_THREAD_HOLDING,
    QS_THREAD_PENDING, /* for the answer to its release */
    QS_THREAD_DONE
} qs_thread_state;

typedef struct qs_thread {
    snk_waiter waiter;
    uint64_t owner;
    qs_thread_state state;
    uint32_t generation;
    bool wake_pending;
    bool noticed;
    uint64_t token;
    uint64_t floor_token; /* highest token that was returned to anybody before it asked */
    bool saw_other;       /* somebody else had a vote at some instant since it asked */
    bool has_read;
    uint64_t read_version;
    uint32_t rounds_left; /* after healing */
} qs_thread;

/* What a client's store knows about its own claims. */
typedef enum qs_claim_state {
    QS_CLAIM_GONE,
    QS_CLAIM_ACQUIRING,
    QS_CLAIM_WAITING,
    QS_CLAIM_HELD
} qs_claim_state;

typedef struct qs_claim {
    snk_id id;
    uint8_t process;
    uint32_t epoch;
    qs_claim_state state;
    uint32_t attempts; /* made so far */
    uint32_t held_by;  /* the attempt that was granted */
    uint64_t token;
    uint64_t above;      /* tokens that are known to be taken */
    uint32_t unanswered; /* nodes that may get a vote of the held attempt yet */
    uint32_t heard;      /* nodes that said that a vote was given back, since the last attempt */
    bool broken;         /* by force */
    bool blind;          /* its process was frozen and does not know: exclusion is not promised, tokens are */
    int64_t asked_at_ns; /* true time */
} qs_claim;

/* One request of the engine, and what the nodes say to it. */
typedef struct qs_operation {
    bool used;
    bool answered; /* the engine has its answer */
    uint8_t process;
    uint8_t thread; /* QS_THREADS_MAX: nobody's */
    uint32_t epoch;
    uint32_t generation;
    uint32_t chase; /* QS_CHASES_MAX: none */
    uint32_t open;  /* requests that are not settled, and pauses */
    snk_send send;
    int64_t asked_at_ns; /* true time of the last round */
    bool votes;          /* it is a ballot; else a question about a claim that has its votes */
    uint32_t attempt;
    snk_ballot ballot;
    snk_node_says says[QS_NODES_MAX];
    snk_answer answer; /* of one that asks nobody */
} qs_operation;

typedef struct qs_undo {
    bool used;
    uint8_t process;
    uint8_t node;
    uint32_t epoch;
    qs_question question;
    uint32_t failures;
    int64_t give_up_at_ns; /* the process's clock */
} qs_undo;

typedef struct qs_request {
    bool used;
    bool waited_for;
    bool may_execute;
    bool left;       /* there was a connection */
    bool sent_again; /* the node had forgotten the script */
    uint8_t process;
    uint8_t node;
    uint32_t epoch;
    uint32_t connection;
    uint32_t run; /* of the node */
    uint32_t references;
    uint32_t operation; /* QS_OPERATIONS_MAX: none */
    uint32_t undo;      /* QS_UNDOS_MAX: none */
    uint32_t round;
    int64_t sent_at_ns; /* the process's clock */
    qs_question question;
    qs_reply reply;
} qs_request;

/* A process's connection to a node. */
typedef struct qs_link {
    snk_node_clock clock;
    bool connected;
    uint32_t connection;
    uint32_t run;            /* of the node that it was made to */
    int64_t run_heard_at_ns; /* the process's clock: when that run last said something */
    int64_t cut_until_ns;    /* true time */
    int64_t last_arrival_ns; /* true time: requests arrive in their order, */
    int64_t last_reply_ns;   /* and so do replies */
} qs_link;

typedef struct qs_chase {
    bool used;
    uint8_t process;
    uint32_t epoch;
    snk_send send;
    uint32_t failures;
} qs_chase;

typedef struct qs_process {
    struct qs_world *world;
    uint32_t epoch;
    bool up;
    sim_clock clock;
    int64_t paused_until_ns;
    uint64_t last_token; /* that it proposed */
    snk_engine engine;
    snk_machine machine;
    int64_t armed_at_ns;
    uint32_t timer_generation;
    qs_link links[QS_NODES_MAX];
    qs_thread threads[QS_THREADS_MAX];
    uint64_t owners_made;
    qs_holding holdings[QS_HOLDINGS_MAX];
} qs_process;

typedef enum qs_phase {
    QS_PHASE_FAULTS,
    QS_PHASE_HEALED,
    QS_PHASE_CLOSING
} qs_phase;

typedef struct qs_world {
    sim_random network;
    sim_random workload;
    sim_random faults;
    sim_random ids;
    qs_plan plan;
    qs_phase phase;
    int64_t now_ns; /* true time */
    uint32_t event_count;
    sim_heap heap;
    snk_quorum quorum;
    qs_node nodes[QS_NODES_MAX];
    qs_process processes[QS_PROCESSES_MAX];
    uint32_t claim_count;
    qs_claim claims[QS_CLAIMS_MAX];
    qs_operation operations[QS_OPERATIONS_MAX];
    qs_undo undos[QS_UNDOS_MAX];
    qs_chase chases[QS_CHASES_MAX];
    qs_request requests[QS_REQUESTS_MAX];
    uint32_t request_next;  /* where to look for a free one */
    uint64_t highest_token; /* that was returned to anybody */
    uint32_t token_count;
    uint64_t tokens[QS_TOKENS_MAX];
    uint64_t resource_token;
    uint64_t resource_version;
    uint64_t writer_token;
    sim_trail trail;
    uint64_t probes[QS_PROBE_COUNT];
} qs_world;

static inline int64_t qs_local(const qs_world *world, const qs_process *process)
{
    return sim_clock_local(&process->clock, world->now_ns);
}

static inline int64_t qs_node_now(const qs_world *world, const qs_node *node)
{
    return sim_clock_local(&node->clock, world->now_ns);
}

static inline void qs_saw(qs_world *world, qs_probe probe)
{
    world->probes[probe]++;
}

static inline uint8_t qs_number(const qs_world *world, const qs_process *process)
{
    return (uint8_t)(process - world->processes);
}

void qs_push(qs_world *world, int64_t at_ns, const sim_event *event);
void qs_record(qs_world *world, const char *what, uint32_t process, uint64_t a, uint64_t b);
void qs_violate(qs_world *world, const char *invariant, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* The claim's record, or NULL for an id that was never drawn. */
qs_claim *qs_find_claim(qs_world *world, const snk_id *id);
void qs_process_start(qs_world *world, qs_process *process);

extern const sim_subject qs_subject;

/* ---- faults.c ---- */

void qs_draw_plan(qs_world *world);
void qs_faults_begin(qs_world *world);
void qs_on_fault(qs_world *world, const sim_event *event);
void qs_heal(qs_world *world);

/* ---- shell.c: the engine's requests ---- */

void qs_step(qs_world *world, qs_process *process, qs_thread *thread, snk_event *event, snk_actions *actions);
void qs_on_answer(qs_world *world, const sim_event *event);
void qs_on_round(qs_world *world, const sim_event *event);
void qs_on_message(qs_world *world, const sim_event *event);
void qs_on_timer(qs_world *world, const sim_event *event);
void qs_on_chase(qs_world *world, const sim_event *event);
/* A node has answered, or will not: `outcome` says which, where there is no reply. */
void qs_settle(qs_world *world, qs_request *request, snk_node_says outcome);
bool qs_is_busy(const qs_world *world, const qs_process *process);

/* ---- wire.c: requests to nodes ---- */

typedef struct qs_sender {
    uint32_t operation; /* or QS_OPERATIONS_MAX */
    uint32_t undo;      /* or QS_UNDOS_MAX */
    uint32_t round;
} qs_sender;

void qs_send(qs_world *world, qs_process *process, uint32_t node, const qs_question *question, qs_sender sender);
void qs_on_request_arrives(qs_world *world, const sim_event *event);
void qs_on_reply_arrives(qs_world *world, const sim_event *event);
void qs_on_request_over(qs_world *world, const sim_event *event);
/* The connection falls. `late`: what is on its way may arrive all the same. */
void qs_reset(qs_world *world, qs_process *process, uint32_t node, bool late);
void qs_drop_requests(qs_world *world, const qs_process *process);
int64_t qs_draw_way(qs_world *world);

/* ---- undo.c: votes that are taken back, until the node answers ---- */

void qs_undo_start(qs_world *world, qs_process *process, uint32_t node, const qs_question *question);
void qs_undo_settled(qs_world *world, qs_undo *undo, snk_node_says says);
void qs_on_undo(qs_world *world, const sim_event *event);

/* ---- people.c ---- */

void qs_act(qs_world *world, qs_process *process, qs_thread *thread);
void qs_woken(qs_world *world, qs_process *process, qs_thread *thread);
void qs_limit(qs_world *world, qs_process *process, qs_thread *thread);
void qs_released(qs_world *world, qs_process *process, qs_thread *thread);
void qs_wake(qs_world *world, qs_process *process, qs_thread *thread);
void qs_schedule(qs_world *world, qs_process *process, qs_thread *thread, int64_t pause_ns);

/* ---- oracle.c ---- */

void qs_check_decision(qs_world *world, qs_process *process, qs_thread *thread);
/* What is true between events. */
void qs_check(qs_world *world);
void qs_check_end(qs_world *world);
void qs_read(qs_world *world, qs_thread *thread);
void qs_write(qs_world *world, qs_thread *thread);

#endif
