/*
 * A simulated world in which clients share: readers and writers, permits, a latch, a condition. Each agent is a process
 * with one thread and a clock of its own; each of its claims has a machine of src/engine, as each has in src/client.
 *
 *   store    the store, one thing of each kind
 *   client   requests, answers, time limits, timers, chases, news; crashes
 *   agents   what the threads do
 *   oracle   knows everything and checks the invariants at each step
 *   world    time, phases, faults
 */
#ifndef SIM_KINDS_WORLD_H
#define SIM_KINDS_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "batch.h"
#include "clock.h"
#include "engine/machine.h"
#include "heap.h"
#include "kinds/store.h"
#include "random.h"

#define KINDS_AGENTS_MAX 8
#define KINDS_MACHINES 2 /* of an agent */
#define KINDS_HOLDS 8    /* of a machine: memory for them */
#define KINDS_REQUESTS_MAX 1024
#define KINDS_CLAIMS_MAX 4096
#define KINDS_PERMITS_MAX 6
#define KINDS_UNITS_MAX 3
#define KINDS_COUNT_MAX 4

#define KINDS_PROBES(X)                                                                                                \
    X(READERS_TOGETHER, "several readers together")                                                                    \
    X(WRITER_WAITED, "a writer waited for readers")                                                                    \
    X(READER_BEHIND_WRITER, "a reader waited behind a writer that waits")                                              \
    X(SEVERAL_AT_ONCE, "one execution served several")                                                                 \
    X(DOWNGRADED, "a writer became a reader")                                                                          \
    X(DOWNGRADE_WAITED_FOR, "a writer became a reader before others who wait")                                         \
    X(PERMITS_OUT, "all permits out")                                                                                  \
    X(PERMITS_OVER, "more permits out than there are, after fewer were set")                                           \
    X(PERMITS_DRAINED, "permits drained")                                                                              \
    X(PERMIT_DIED, "a permit came back by its lease")                                                                  \
    X(LATCH_SET, "a latch set")                                                                                        \
    X(LATCH_REFUSED, "a latch that is set not set again")                                                              \
    X(LATCH_REPEATED, "a count-down came twice")                                                                       \
    X(LATCH_OPENED, "a latch opened to those who wait")                                                                \
    X(SIGNALLED, "a signal given to who waits")                                                                        \
    X(SIGNAL_ALONE, "a signal that nobody waited for")                                                                 \
    X(SIGNAL_USED, "a signal used up")                                                                                 \
    X(SIGNAL_UNUSED, "a signal received by one who could not have the lock again")                                     \
    X(SIGNAL_PASSED_ON, "a signal passed on, not used")                                                                \
    X(LOST, "a hold lost")                                                                                             \
    X(CRASHED, "a process died with a claim")                                                                          \
    X(CHASED, "a claim chased")                                                                                        \
    X(REFUSED, "an acquire refused because of a tombstone")                                                            \
    X(STARTED, "begun by the message that it was granted")                                                             \
    X(TIMED_OUT, "a wait ended by its limit")                                                                          \
    X(UPGRADE_REFUSED, "a reader that wanted to write was refused")                                                    \
    X(WIPED, "the store was emptied")                                                                                  \
    X(WIPED_HOLD, "a hold was in a store that was emptied")                                                            \
    X(WIPED_WAIT, "somebody waited in a store that was emptied")

#define KINDS_PROBE_NAME(name, text) KINDS_PROBE_##name,
typedef enum kinds_probe {
    KINDS_PROBES(KINDS_PROBE_NAME) KINDS_PROBE_COUNT
} kinds_probe;
#undef KINDS_PROBE_NAME

typedef enum kinds_event_kind {
    KINDS_EVENT_ACT,     /* an agent does its next thing */
    KINDS_EVENT_WAKE,    /* an agent that waits was woken; lock: of which machine */
    KINDS_EVENT_LIMIT,   /* an agent has waited long enough */
    KINDS_EVENT_ARRIVES, /* a request at the store */
    KINDS_EVENT_REPLY,   /* its answer at the client */
    KINDS_EVENT_OVER,    /* the client waits no longer for the answer */
    KINDS_EVENT_AGAIN,   /* a chase, or a count-down, is sent again */
    KINDS_EVENT_NEWS,    /* index: of the claim; generation: 1, it was granted */
    KINDS_EVENT_TIMER,   /* of a machine */
    KINDS_EVENT_RESTART, /* of a process that crashed */
    KINDS_EVENT_FAULT    /* index: kinds_fault */
} kinds_event_kind;

typedef enum kinds_fault {
    KINDS_FAULT_PAUSE,
    KINDS_FAULT_CRASH,
    KINDS_FAULT_OUTAGE,
    KINDS_FAULT_WIPE,
    KINDS_FAULT_SETTLE, /* not a fault: the store trims what is over by itself */
    KINDS_FAULT_COUNT
} kinds_fault;

/* How this seed's world is: chances in 1000, times in ns. */
typedef struct kinds_plan {
    int64_t lease_ns;
    int64_t latency_ns;
    int64_t timeout_ns;
    uint32_t late;
    uint32_t request_lost;
    uint32_t request_repeated;
    uint32_t reply_lost;
    uint32_t news_lost;
    uint32_t news_repeated;
    uint32_t unrenewed;
    uint32_t weights[KINDS_THINGS]; /* how often which thing is used */
    int64_t every_ns[KINDS_FAULT_COUNT];
    uint32_t agent_count;
    uint32_t event_budget;
} kinds_plan;

/* What an agent is doing; each step of it ends with an event. */
typedef enum kinds_doing {
    KINDS_IDLE,
    KINDS_ACQUIRING,   /* what it is after, with machine 0 */
    KINDS_HOLDING,     /* that */
    KINDS_DOWNGRADING, /* the read side, with machine 1, beside machine 0 */
    KINDS_SLEEPING,    /* for a signal, with machine 1; it holds the lock, or has given it up */
    KINDS_RETURNING,   /* acquiring the lock again, with machine 0 */
    KINDS_COUNTING,    /* waits for the answer to a count */
    KINDS_DONE
} kinds_doing;

typedef struct kinds_unit {
    snk_machine machine;
    snk_waiter waiter;
    kinds_thing thing;
    snk_grip grip;
    snk_hold holds[KINDS_HOLDS];
    bool hold_used[KINDS_HOLDS];
    bool has; /* granted, and not given back: the machine may know that it is lost */
    bool wake_pending;
    bool news_pending;
    snk_grant grant; /* run 0: none */
    int64_t armed_at_ns;
    uint32_t timer_generation;
    bool waits;    /* asked, and not decided as far as the agent knows */
    bool saw_zero; /* PASS: the latch was at 0 since it asked */
} kinds_unit;

typedef struct kinds_agent {
    struct kinds_world *world;
    uint32_t epoch;
    bool up;
    sim_clock clock;
    int64_t paused_until_ns; /* true time */
    snk_engine engine;
    kinds_doing doing;
    bool wants_signal; /* HOLDING: it will sleep on the condition */
    bool gave_up_lock; /* SLEEPING */
    uint32_t generation;
    uint32_t rounds_left;
    kinds_unit units[KINDS_MACHINES];
} kinds_agent;

typedef struct kinds_request {
    bool used;
    bool waited_for;
    bool is_tally;
    bool repeats; /* a chase, or a count-down: sent again until it is answered */
    uint8_t agent;
    uint8_t unit;
    uint8_t references; /* events that name it */
    uint32_t epoch;
    uint32_t generation; /* of the agent, for a tally */
    uint32_t failures;
    kinds_thing thing;
    snk_grip grip;
    snk_send send;
    snk_answer answer;
    snk_tally tally;
    snk_tallied tallied;
} kinds_request;

/* What the oracle knows about one id: of a claim, or of a count-down. */
typedef struct kinds_claim {
    snk_id id;
    uint8_t agent;
    uint8_t unit;
    uint32_t epoch;
    kinds_thing thing;
    snk_grip grip;
    bool buried;
    bool counted;       /* a count-down: it did */
    bool forgotten;     /* it was in a store that was emptied, or was given up before that */
    uint16_t in_flight; /* requests that somebody waits for, or repeats */
    snk_grant grant;    /* the last */
} kinds_claim;

typedef struct kinds_world {
    uint64_t seed;
    sim_random network;
    sim_random workload;
    sim_random faults;
    sim_random ids;
    kinds_plan plan;
    bool healed;
    int64_t now_ns;
    int64_t outage_until_ns;
    uint32_t event_count;
    sim_heap heap;
    kinds_store store;
    uint64_t highest[KINDS_THINGS]; /* token of each thing, whatever the store has forgotten */
    sim_clock store_clock;
    kinds_agent agents[KINDS_AGENTS_MAX];
    kinds_request requests[KINDS_REQUESTS_MAX];
    uint32_t claim_count;
    kinds_claim claims[KINDS_CLAIMS_MAX];
    uint64_t hash;
    uint64_t probes[KINDS_PROBE_COUNT];
    bool tracing;
    bool failed;
    const char *broken_invariant;
    char failure[256];
} kinds_world;

/* ---- world.c ---- */

void kinds_push(kinds_world *world, int64_t at_ns, const sim_event *event);
void kinds_record(kinds_world *world, const char *what, uint32_t agent, uint32_t thing, uint64_t a, uint64_t b);
void kinds_violate(kinds_world *world, const char *invariant, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
kinds_claim *kinds_find_claim(kinds_world *world, const snk_id *id);
/* An id for a claim or a count-down. */
bool kinds_draw_id(void *agent, snk_id *id_out);

static inline void kinds_saw(kinds_world *world, kinds_probe probe)
{
    world->probes[probe]++;
}

static inline uint32_t kinds_agent_number(const kinds_agent *agent)
{
    return (uint32_t)(agent - agent->world->agents);
}

static inline int64_t kinds_local_now(const kinds_agent *agent)
{
    return sim_clock_local(&agent->clock, agent->world->now_ns);
}

static inline int64_t kinds_store_now(const kinds_world *world)
{
    return sim_clock_local(&world->store_clock, world->now_ns);
}

/* Whether the agent may believe that it has what this machine was to get. */
static inline bool kinds_believes(const kinds_agent *agent, const kinds_unit *unit)
{
    return agent->up && unit->machine.hold != NULL && unit->machine.hold->owner != 0 &&
           snk_deadline_peek(&unit->machine.deadline) > kinds_local_now(agent);
}

/* ---- client.c ---- */

void kinds_step(kinds_agent *agent, kinds_unit *unit, snk_event *event, snk_actions *actions);
void kinds_tally(kinds_agent *agent, kinds_thing thing, snk_tally_verb verb, int64_t value);
void kinds_on_arrives(kinds_world *world, const sim_event *event);
void kinds_on_reply(kinds_world *world, const sim_event *event);
void kinds_on_over(kinds_world *world, const sim_event *event);
void kinds_on_again(kinds_world *world, const sim_event *event);
void kinds_on_news(kinds_world *world, const sim_event *event);
void kinds_on_timer(kinds_world *world, const sim_event *event);
void kinds_settle_store(kinds_world *world);
/* The agent's process dies. */
void kinds_drop_all(kinds_agent *agent);

/* ---- agents.c ---- */

void kinds_agent_start(kinds_agent *agent);
void kinds_agent_act(kinds_agent *agent);
void kinds_agent_woken(kinds_agent *agent, kinds_unit *unit);
void kinds_agent_limit(kinds_agent *agent);
void kinds_agent_wake(kinds_agent *agent, kinds_unit *unit, bool news);
/* A machine of it has taken a step. */
void kinds_agent_stepped(kinds_agent *agent, const kinds_unit *unit);
/* Its count was answered, or will not be. */
void kinds_agent_counted(kinds_agent *agent);

/* ---- oracle.c ---- */

/* A thing before an execution. */
typedef struct kinds_before {
    kinds_state state;
} kinds_before;

void kinds_before_execution(const kinds_world *world, kinds_thing thing, kinds_before *before_out);
/* `request` NULL: the store trimmed what was over. `applied_before`: a count-down that counted already. */
void kinds_after_execution(kinds_world *world, kinds_thing thing, const kinds_request *request, bool applied_before,
                           const kinds_before *before);
void kinds_check_beliefs(kinds_world *world);
/* A machine has decided that its waiter has what it wanted. */
void kinds_check_granted(kinds_agent *agent, kinds_unit *unit);
/* What is true between events. */
void kinds_check_orphans(kinds_world *world);
/* The store is about to forget everything. */
void kinds_before_wipe(kinds_world *world);
void kinds_check_end(kinds_world *world);

extern const sim_subject sim_subject_kinds;

#endif
