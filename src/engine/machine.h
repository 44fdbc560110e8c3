/*
 * One lock in one client, as a state machine without I/O, clock, threads or allocation: events go in, actions come out.
 * The same object code runs in the library and in the simulator.
 *
 * Who is who:
 *
 *   asker    a thread, or a handle, named by a number (`owner`)
 *   waiter   one acquire that is not decided yet. Its memory belongs to its agent: the thread that waits, or for an
 *            asynchronous request the client's own thread. The agent feeds the machine with SNK_EVENT_ASK, then after
 *            each wake-up with SNK_EVENT_RESUME, and with SNK_EVENT_GIVE_UP when its time is over. The machine forgets
 *            a waiter in the same step that decides it.
 *   seek     a waiter's claim in the store that does not hold the lock yet
 *   hold     the claim that has the lock, with its owner and tokens. Its memory is brought by the waiter that got it,
 *            and comes back in snk_actions.freed.
 *
 * In barging mode only the first waiter of the queue seeks; the others wait for it to be passed on inside the process.
 * A waiter that leaves passes its place in the store on to the next one. In fair mode each waiter has a claim of its
 * own in the store's queue.
 *
 * Local hand-off, in barging mode: a release with somebody waiting keeps the claim, wakes the first waiter, and lets
 * whoever comes first take the lock (a thread that runs is faster than one that wakes up), until the woken one has
 * waited SNK_BARGE_TIME_NS: then it is served directly. The budget: tokens of the block, SNK_HANDOFF_TIME_NS since the
 * grant, and a third of the lease left.
 *
 * A store may announce that it has granted the lock to a claim that waited (snk_grant). Then the waiter starts without
 * another question where that is safe (offer.c), and the hold is confirmed by a renewal soon after.
 *
 * The caller serializes all steps of one machine (client: entry.mutex).
 */
#ifndef SNK_ENGINE_MACHINE_H
#define SNK_ENGINE_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "engine/claim.h"
#include "engine/deadline.h"
#include "engine/renewal.h"

/* What the machines of one client share. */
typedef struct snk_engine {
    /* Draws a claim id; false when there is none to be had. Must not block. */
    bool (*draw_id)(void *context, snk_id *id_out);
    void *context;
    int64_t retry_ns;  /* pause between looks where the store cannot wake waiters */
    bool token_blocks; /* the store can hand out more than one token: local hand-off is possible */
    bool pushes_wakeups;
} snk_engine;

typedef enum snk_seek_state {
    SNK_SEEK_NONE,          /* no claim */
    SNK_SEEK_ACQUIRING,     /* its acquire is in flight */
    SNK_SEEK_QUEUED,        /* the store answered that it waits */
    SNK_SEEK_ASKING,        /* it waits, and a renew is in flight */
    SNK_SEEK_UNSURE,        /* its acquire was not answered: a renew at look_at_ns will tell */
    SNK_SEEK_UNSURE_ASKING, /* as before, and that renew is in flight */
    SNK_SEEK_BACKING_OFF    /* no claim; a new one at look_at_ns */
} snk_seek_state;

typedef struct snk_seek {
    snk_id claim;
    snk_seek_state state;
    uint32_t failures;  /* in a row */
    bool contacted;     /* the store has answered this wait at least once: an outage is waited out */
    bool news;          /* something was said about it while a request was in flight: ask again */
    int64_t look_at_ns; /* when to ask (again); SNK_NEVER_NS: not on a timer */
    uint64_t ticket;    /* of the last "queued", for snk_store_wait; 0 before */
    int64_t lease_ns;   /* with which the claim was sent */
    int64_t
        waits_since_ns; /* when the last request left that was answered with "queued"; before: when the acquire did */
    uint64_t run;       /* of the server that answered it; 0: not known */
} snk_seek;

typedef struct snk_hold {
    snk_id claim;
    snk_terms terms;
    uint64_t owner;       /* 0: kept for local hand-off, nobody's at the moment */
    uint64_t token;       /* of the present owner */
    uint64_t token_first; /* of the block, as the store shows it */
    uint64_t token_last;
    int64_t granted_at_ns; /* when the store's grant was asked for: the hand-off budget counts from here */
    int64_t since_ns;      /* since when its owner has it; idle: nobody has it; reserved: until when it is kept */
    uint64_t reserved_for; /* acquired again in the background, for this owner (owner is 0): see reserve.c; 0: not */
    snk_renewal renewal;
    uint32_t units;        /* of a permit, as the store granted it */
    int32_t thread;        /* the kernel's id of the thread that owns it; 0: a handle does */
    uint16_t levels;       /* of the owner, once the hold is lost (while it lasts they are in the state word) */
    uint16_t shown_levels; /* what a store that counts levels was told last; the client's */
    uint8_t reported;      /* what the watchdog has said about its owner; the client's */
    union {
        snk_link link;               /* in machine.lost */
        struct snk_hold *next_freed; /* in snk_actions.freed: it is in no list then */
    };
} snk_hold;

typedef struct snk_waiter {
    /* Set by the agent before SNK_EVENT_ASK. */
    uint64_t owner;
    const void *tag; /* whatever SNK_EVENT_INTERRUPT is to be able to name */
    snk_terms terms;
    bool once; /* try, do not wait */
    bool reentrant;
    bool reserves;  /* asks on behalf of the owner, which lost the lock: see reserve.c */
    int32_t thread; /* the kernel's id of the thread that will own it; 0: a handle will */
    snk_hold *hold; /* memory for the hold; NULL again once the machine has taken it */

    /* The machine's. */
    snk_link link; /* in machine.waiters */
    snk_seek seek;
    int64_t asked_at_ns;
    int64_t passed_over_since_ns; /* first woken for an idle hold that another one took; 0: never */
    bool interrupted;             /* the agent should give up with SNECK_CANCELED */
    bool woken;                   /* in the wake chain of this step already */
    struct snk_waiter *next_woken;

    /* The result. */
    bool decided;
    sneck_error result; /* valid when decided */
    uint64_t token;     /* when the result is SNECK_OK */
} snk_waiter;

typedef struct snk_machine {
    const snk_engine *engine; /* borrowed from the client */
    snk_hold *hold;           /* the claim that has the lock; NULL: none */
    snk_deadline deadline;    /* of `hold`; LOST once it is lost, NONE without one */
    snk_list waiters;         /* in the order they came */
    snk_list lost;            /* holds that were lost and whose owners have levels left to release */
    int64_t timer_at_ns;      /* next SNK_EVENT_TIMER; SNK_NEVER_NS: none. Set by each step */
    uint32_t state;           /* bits 24-31 held, 16-23 levels of the owner, 0-15 hand-offs under this grant */
    uint16_t releasing;       /* releases in flight that somebody waits for */
    bool contended;           /* somebody waited during the last hold: ask for a block of tokens next time */
    bool closing;
} snk_machine;

#define SNK_STATE_HELD_SHIFT 24
#define SNK_STATE_LEVELS_SHIFT 16
#define SNK_STATE_HANDOFFS_MASK UINT32_C(0xFFFF)

typedef enum snk_event_kind {
    SNK_EVENT_ASK,       /* waiter: somebody asks for the lock */
    SNK_EVENT_RESUME,    /* waiter: its agent was woken; `news`: the store may have news about its claim; `grant` */
    SNK_EVENT_GIVE_UP,   /* waiter, status: its agent stops waiting (SNECK_TIMEOUT or SNECK_CANCELED) */
    SNK_EVENT_RELEASE,   /* owner: gives a level back; the result is in snk_actions.release */
    SNK_EVENT_EXTEND,    /* owner, lease_ns: wants a longer lease; the result is in snk_actions.release */
    SNK_EVENT_REPLY,     /* send, answer: the store answered, or will not */
    SNK_EVENT_NEWS,      /* claim: the store says that it may have news; `grant` */
    SNK_EVENT_TIMER,     /* timer_at_ns, or the deadline, has come */
    SNK_EVENT_INTERRUPT, /* tag (NULL: all): wakes waiters so that they give up */
    SNK_EVENT_ABANDONED, /* who sends renewals and looks is gone: what it has not brought back counts as not answered */
    SNK_EVENT_REVOKE,    /* owner, token, cause: the watchdog ends this hold, if it still is there */
    SNK_EVENT_OWNER_GONE, /* owner: it will never come again; what it has is given back, its debts are forgotten */
    SNK_EVENT_CLOSE       /* as INTERRUPT of all; the hold is released; nothing is granted any more */
} snk_event_kind;

typedef struct snk_event {
    snk_event_kind kind;
    int64_t now_ns; /* read after the event, before the step */
    snk_waiter *waiter;
    sneck_status status;
    uint64_t owner;
    uint64_t token;
    sneck_cause cause;
    int64_t lease_ns;
    bool news;
    const void *tag;
    snk_id claim;
    const snk_grant
        *grant;           /* NEWS, RESUME: the store says that it has granted this claim the lock; NULL: no such news */
    const snk_send *send; /* REPLY: what was sent */
    const snk_answer *answer; /* REPLY */
} snk_event;

/* Something to tell the application. */
typedef struct snk_note {
    sneck_event_kind kind;
    sneck_status status;
    sneck_cause cause;
    uint64_t token;
    uint64_t token_first; /* lost: of the block, as the store shows it */
    uint64_t owner;       /* lost: whose hold it was; 0: of one that was released, as far as it knew */
    int64_t remaining_ns;
    int64_t took_ns;      /* acquired: the wait; released, lost: the hold; renewed: what was left of the lease */
    int64_t delay_ns;     /* acquired from another owner of this process: since that one released it; renewed: after
                            it was due; else -1 */
    bool of_offer;        /* renewed: what was left was left of an offer, and says nothing about the lease */
    bool is_watched;      /* lost: the watchdog looks after this lock */
    const snk_hold *hold; /* lost: what was lost; valid until its memory is given back. NULL: its release found out */
    const char *message;  /* static text */
} snk_note;

#define SNK_SENDS_MAX 8
#define SNK_NOTES_MAX 6

typedef struct snk_actions {
    snk_waiter *woken; /* chain by next_woken: wake each one's agent. After the step a decided waiter may be gone */
    snk_hold *freed;   /* chain by next_freed: memory that the machine needs no more */
    sneck_error
        release;  /* RELEASE, EXTEND, OWNER_GONE, and the REPLY to what they sent: the result, unless `pending` */
    bool pending; /* RELEASE, EXTEND, OWNER_GONE: the REPLY to the send of this step will have the result */
    bool more;    /* TIMER: not all fitted; step again */
    uint32_t send_count;
    uint32_t note_count;
    snk_send sends[SNK_SENDS_MAX];
    snk_note notes[SNK_NOTES_MAX];
} snk_actions;

void snk_machine_init(snk_machine *machine, const snk_engine *engine);

/* Nothing left: no hold, no waiter, no lost levels, no release in flight. */
bool snk_machine_is_idle(const snk_machine *machine);

/* Takes the event and says what to do. `actions` needs no initialisation. */
void snk_machine_step(snk_machine *machine, const snk_event *event, snk_actions *actions);

/* The levels of `owner` at `now_ns`, 0 when it does not hold the lock (any more). */
unsigned snk_machine_levels(snk_machine *machine, uint64_t owner, int64_t now_ns);

/* What must be true of a machine between steps; false names a bug of ours. The simulator asks after each step. */
bool snk_machine_is_sound(const snk_machine *machine);

#endif
