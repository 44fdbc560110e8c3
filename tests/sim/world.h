/*
 * One simulated world: processes with threads around one store, on one true time, everything drawn from a seed.
 *
 *   engine         the machines of src/engine, as the library runs them
 *   model_client   what src/client is to the machines: sends, replies, timers, chases, wake-ups
 *   agents         the threads: they ask, wait, hold, write, release
 *   faults         what goes wrong, and when
 *   model_store    the store
 *   oracle         knows everything and checks the invariants at each step
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "batch.h"
#include "clock.h"
#include "engine/machine.h"
#include "heap.h"
#include "model_store.h"
#include "probes.h"
#include "random.h"
#include "trail.h"

#define SIM_PROCESSES_MAX 4
#define SIM_THREADS_MAX 4
#define SIM_LOCKS_MAX MODEL_LOCKS_MAX
/* Behind the threads of a process stand the rescuers of its watchdog, one for each lock. */
#define SIM_AGENTS_MAX (SIM_THREADS_MAX + SIM_LOCKS_MAX)
#define SIM_CLAIMS_MAX 4096
#define SIM_REQUESTS_MAX 1024
#define SIM_CHASES_MAX 256
#define SIM_TOKENS_MAX 2048
#define SIM_HOLDINGS_MAX 64
#define SIM_GRANTS_MAX 4

typedef enum sim_event_kind {
    SIM_EVENT_ACT,             /* a thread does its next thing */
    SIM_EVENT_WAKE,            /* a thread that waits was woken */
    SIM_EVENT_LIMIT,           /* a thread that waits has waited long enough */
    SIM_EVENT_REQUEST_ARRIVES, /* at the store */
    SIM_EVENT_REPLY_ARRIVES,   /* at the client */
    SIM_EVENT_REQUEST_OVER,    /* the client waits no longer for the answer */
    SIM_EVENT_NEWS,            /* index: of the claim, SIM_CLAIMS_MAX: a forged one; generation: sim_news */
    SIM_EVENT_TIMER,           /* of a machine */
    SIM_EVENT_CHASE,           /* a chase is due */
    SIM_EVENT_RESTART,         /* a process that crashed or closed begins anew */
    SIM_EVENT_FAULT            /* index: sim_fault */
} sim_event_kind;

/* What a message says: that there may be news, or that the claim was granted the lock (a number of sim_claim.grants). */
enum {
    SIM_NEWS_LOOK,
    SIM_NEWS_GRANT,
    SIM_NEWS_FORGED = SIM_NEWS_GRANT + SIM_GRANTS_MAX
};

typedef enum sim_fault {
    SIM_FAULT_PAUSE,
    SIM_FAULT_CRASH,
    SIM_FAULT_CLOSE,
    SIM_FAULT_RESET,
    SIM_FAULT_OUTAGE,
    SIM_FAULT_WIPE,
    SIM_FAULT_SAVE, /* not a fault: the store writes down what it has */
    SIM_FAULT_RELOAD,
    SIM_FAULT_BREAK,
    SIM_FAULT_FORGE,
    SIM_FAULT_INTERRUPT,
    SIM_FAULT_SETTLE, /* not a fault: the store trims what is over by itself */
    SIM_FAULT_WATCH,  /* the watchdog of a process looks at a hold, ends it, or finds its owner dead */
    SIM_FAULT_CUT,    /* with a replica: it hears of nothing for a while */
    SIM_FAULT_TAKE_OVER,
    SIM_FAULT_COUNT
} sim_fault;

/* How this seed's world is: chances in 1000, times in ns. */
typedef struct sim_plan {
    int64_t lease_ns;   /* around which everything else is measured */
    int64_t latency_ns; /* usual way of a message */
    int64_t timeout_ns; /* how long a client waits for an answer */
    int64_t late_ns;    /* longest way of a late one */
    uint32_t late;      /* chances */
    uint32_t request_lost;
    uint32_t reply_lost;
    uint32_t news_lost;
    uint32_t news_repeated;
    uint32_t id_fails;
    uint32_t denied;
    uint32_t slow_wake;
    uint32_t follows;     /* that the replica has an execution at once; otherwise with the next one that it has */
    uint32_t clocks_skew; /* that the replica's clock shows another time */
    int64_t every_ns[SIM_FAULT_COUNT]; /* mean pause between faults of a class; 0: none of it */
    uint32_t process_count;
    uint32_t thread_count;
    uint32_t lock_count;
    uint32_t event_budget; /* of the phase with faults */
    uint32_t fair;         /* chances of the workload */
    uint32_t once;
    uint32_t unrenewed;
    uint32_t nested;
    uint32_t mixed_terms;
    uint32_t reacquires;
    bool deep;          /* somebody goes down to 255 levels */
    bool shared_owner;  /* the first two threads of each process are one owner */
    bool news_by_agent; /* news reach the waiting thread, not the machine */
} sim_plan;

/* Memory for a hold, and who has it. */
typedef enum sim_holding_state {
    SIM_HOLDING_FREE,
    SIM_HOLDING_BROUGHT, /* by a waiter that is not decided */
    SIM_HOLDING_TAKEN    /* by a machine */
} sim_holding_state;

typedef struct sim_holding {
    snk_hold hold;
    sim_holding_state state;
} sim_holding;

typedef enum sim_thread_state {
    SIM_THREAD_IDLE,
    SIM_THREAD_WAITING,
    SIM_THREAD_HOLDING,
    SIM_THREAD_PENDING, /* for the answer to a release or an extend */
    SIM_THREAD_DONE     /* has nothing more to do (after healing), or its process is down */
} sim_thread_state;

typedef struct sim_thread {
    snk_waiter waiter;
    uint64_t owner;
    sim_thread_state state;
    uint32_t generation; /* goes up with each thing it begins: events for earlier ones are stale */
    uint8_t lock;
    bool wake_pending;
    bool news_pending;
    snk_grant grant;      /* the last that it was told; run 0: none */
    bool extending;       /* PENDING: for an extend, otherwise for a release */
    bool noticed;         /* the oracle has seen the decision */
    uint32_t rounds_left; /* after healing: how often it asks yet */

    /* What the thread, and the oracle, believe about its hold of `lock`. */
    uint32_t levels; /* that this thread took and did not give back */
    uint64_t token;

    /* The acquire that it waits for. */
    int64_t asked_at_ns;  /* true time */
    uint64_t floor_token; /* highest token that was returned to anybody before it asked */
    bool owed;            /* levels of a lost hold, when it asked */
    bool saw_other;       /* somebody else had the lock at some instant since */
    bool was_behind;      /* another one of this process had it, gave it back, or sought it before, since */
    bool told_other;      /* and its process knew that */
    bool saw_failure;     /* a request of this process failed or was not answered, or no id was to be had, since */

    /* The resource that the lock protects. */
    bool has_read;
    uint64_t read_version;
} sim_thread;

typedef struct sim_chase {
    bool used;
    uint8_t process;
    uint8_t lock;
    uint32_t epoch;
    snk_send send;
    uint32_t failures;
    int64_t give_up_at_ns; /* the process's clock */
} sim_chase;

typedef struct sim_request {
    bool used;
    bool waited_for; /* the client has not had an answer yet */
    bool may_apply;  /* it is on its way to the store */
    bool applied;
    uint8_t process;
    uint8_t lock;
    uint8_t thread;     /* whose release or extend it is; SIM_AGENTS_MAX: nobody's */
    uint8_t references; /* events that name it */
    uint32_t epoch;
    uint32_t generation;
    uint32_t chase;        /* SIM_CHASES_MAX: it is none */
    int64_t applied_at_ns; /* true time */
    snk_send send;
    snk_answer answer;
} sim_request;

typedef struct sim_process {
    struct sim_world *world;
    uint32_t epoch;
    bool up;
    bool closing;
    int64_t closing_since_ns; /* true time */
    sim_clock clock;
    int64_t paused_until_ns; /* true time */
    snk_engine engine;
    snk_machine machines[SIM_LOCKS_MAX];
    int64_t armed_at_ns[SIM_LOCKS_MAX]; /* true time of the timer event that is on its way */
    uint32_t timer_generation[SIM_LOCKS_MAX];
    sim_thread threads[SIM_AGENTS_MAX];
    uint64_t owners_made;
    sim_holding holdings[SIM_HOLDINGS_MAX];
} sim_process;

/* What the oracle knows about one claim id. */
typedef struct sim_claim {
    snk_id id;
    uint8_t process;
    uint8_t lock;
    uint32_t epoch;
    bool acquire_sent;
    bool acquire_applied;
    bool acquire_answered;
    bool granted;
    bool buried;          /* a chase that leaves a tombstone was executed */
    bool released;        /* a release was executed */
    bool broken;          /* by force, or by loss of the store's state: exclusion is not promised */
    int64_t broken_at_ns; /* true time */
    bool forgotten;       /* its process died or closed without an answer, or does not want it forgotten after loss */
    bool lost_noted;
    uint16_t in_flight;   /* requests that a client waits for, and chases */
    uint16_t travelling;  /* requests that may yet be executed */
    uint32_t grant_count; /* how often the store granted it from the queue: more than once only with older data */
    snk_grant grants[SIM_GRANTS_MAX]; /* the last of them */
    int64_t sent_at_ns;               /* true time of the last request about it */
    int64_t offered_at_ns;            /* true time since when it is offered the lock, after healing; 0: it is not */
} sim_claim;

/* What a lock protects: it takes no token lower than the highest it has seen. */
typedef struct sim_resource {
    uint64_t highest_token;
    uint64_t version;
    uint64_t writer_token;
} sim_resource;

/* What the oracle keeps about one lock. */
typedef struct sim_ledger {
    uint64_t highest_token; /* that was returned to anybody */
    uint64_t granted_token; /* highest of a block that the store gave */
    uint32_t token_count;
    uint64_t tokens[SIM_TOKENS_MAX];
    int64_t free_since_ns; /* somebody waits and nobody has it since; -1: not so */
    sim_resource resource;
} sim_ledger;

typedef enum sim_phase {
    SIM_PHASE_FAULTS,
    SIM_PHASE_HEALED,
    SIM_PHASE_CLOSING
} sim_phase;

typedef struct sim_world {
    uint64_t seed;
    sim_random network;
    sim_random workload;
    sim_random faults;
    sim_random ids;
    sim_plan plan;
    sim_phase phase;
    int64_t healed_at_ns; /* true time */
    int64_t now_ns;       /* true time */
    uint32_t event_count;
    sim_heap heap;
    model_store store;
    sim_clock store_clock;
    int64_t outage_until_ns;
    bool has_replica;
    int64_t cut_until_ns;         /* until then the replica hears of nothing */
    int64_t taking_over_until_ns; /* until then the replica is not the master yet: nothing makes that faster */
    sim_process processes[SIM_PROCESSES_MAX];
    uint32_t request_count; /* used so far, free ones included */
    uint32_t free_request_count;
    uint32_t free_requests[SIM_REQUESTS_MAX];
    sim_request requests[SIM_REQUESTS_MAX];
    uint32_t chase_count; /* as above */
    sim_chase chases[SIM_CHASES_MAX];
    uint32_t claim_count;
    sim_claim claims[SIM_CLAIMS_MAX];
    sim_ledger ledgers[SIM_LOCKS_MAX];
    sim_trail trail;
    uint64_t probes[SIM_PROBE_COUNT]; /* over all seeds of this thread */
} sim_world;

/* ---- time ---- */

static inline int64_t sim_local_now(const sim_world *world, const sim_process *process)
{
    return sim_clock_local(&process->clock, world->now_ns);
}

/* ---- world.c ---- */

/* Begins a new life of a process, with fresh machines and threads. */
void sim_process_start(sim_world *world, sim_process *process);

void sim_push(sim_world *world, int64_t at_ns, const sim_event *event);
/* The claim's record, or NULL for an id that was never drawn. */
sim_claim *sim_find_claim(sim_world *world, const snk_id *id);
uint32_t sim_process_number(const sim_world *world, const sim_process *process);
/* Something happened: into the trace hash, and onto the terminal when tracing. */
void sim_record(sim_world *world, const char *what, uint32_t process, uint32_t lock, uint64_t a, uint64_t b);
/* Levels of the thread's owner on the thread's lock; threads may share an owner, as with SNECK_OWNER_HANDLE. */
uint32_t sim_owner_levels(const sim_process *process, const sim_thread *thread);
/* There were faults enough. */
bool sim_is_time_to_heal(const sim_world *world);
/* An invariant does not hold. The first one of a seed counts. */
void sim_violate(sim_world *world, const char *invariant, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static inline bool sim_is_rescuer(const sim_process *process, const sim_thread *thread)
{
    return thread >= process->threads + SIM_THREADS_MAX;
}

static inline void sim_saw(sim_world *world, sim_probe probe)
{
    world->probes[probe]++;
}

/* Runs one seed; false when an invariant was violated. The world need not be initialised but must be zeroed once. */
bool sim_run(sim_world *world, uint64_t seed);

extern const sim_subject sim_subject_one_store;
extern const sim_subject sim_subject_replica;

#endif
