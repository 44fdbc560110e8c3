/*
 * A claim is one try of one client to have one lock, named by 128 random bits. Everything that is asked of a store is
 * asked about a claim, and everything that a store answers is an answer about a claim. An acquire with one id leaves
 * the client at most once; every later question about it is a renew, which may find that the claim holds the lock by
 * now, but never registers a claim that the store does not know.
 */
#ifndef SNK_ENGINE_CLAIM_H
#define SNK_ENGINE_CLAIM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/ids.h"
#include "sneck.h"

/* How the watchdog looks after a hold. Without padding at its end, because each hold and each handle has its own. */
typedef struct __attribute__((packed)) snk_care {
    uint32_t watchdog_ms; /* it is looked at so often; 0: not at all */
    uint32_t stuck_ms;    /* its owner may be blocked or stopped for so long; 0: for ever */
    uint32_t max_hold_ms; /* it may last so long; 0: for ever */
    uint8_t threshold;    /* failed renewals in a row before it counts as at risk; 0: never */
    uint8_t recovery;     /* sneck_recovery */
} snk_care;

/* How somebody wants to hold a lock. The last three beside each other: each held lock has two of these. */
typedef struct snk_terms {
    int64_t lease_ns;
    int64_t renew_ns; /* pause between renewals; SNK_NEVER_NS: not renewed */
    snk_care care;
    bool fair : 1;
    bool forget_on_loss : 1; /* after loss the store is told to forget the claim */
    bool is_unused : 1;      /* what a TAKE took goes back with its release; cleared when it is used up */
} snk_terms;

typedef enum snk_ask {
    SNK_ASK_ACQUIRE,
    SNK_ASK_RENEW,
    SNK_ASK_RELEASE
} snk_ask;

/* One request about one claim, as the engine wants it sent. */
typedef struct snk_send {
    snk_ask ask;
    snk_id claim;
    int64_t lease_ns;   /* acquire, renew: what the store must set, at least; release: what the claim was sent with */
    int64_t sent_at_ns; /* before it leaves: leases count from here */
    int64_t
        not_before_ns;    /* a release that must wait (the claim may still be prolonged by a request in flight); or 0 */
    uint64_t token;       /* release: of the owner that gives the lock back; 0: nobody's hold */
    uint64_t token_first; /* release: of the block, as the store shows it */
    uint32_t tokens;      /* acquire: how many tokens would be useful */
    uint32_t levels;      /* renew: how often the owner has the lock, for a store that shows it; 0: not said */
    bool is_hold;         /* renew: of a claim that holds, not of one that waits */
    bool fair;            /* acquire */
    bool queue;           /* acquire: wait in the store's queue when somebody else has the lock */
    bool unanswered;      /* release: the acquire of this claim was never answered, so it may arrive after this */
    bool ends_hold;       /* release: of a claim that held the lock until now, and used up what it took */
    bool was_held;        /* release: of a claim that held the lock until now */
    bool is_watched;      /* release: the watchdog looks after this lock */
    bool chase;           /* release: nobody waits for the answer; it is repeated until the store answers */
    bool is_remedy;       /* release: the watchdog took the lock away, and wants to know what came of it */
    bool check;           /* renew: a look at a claim that holds, with no lease to speak of; a failure means nothing */
} snk_send;

typedef enum snk_answer_kind {
    SNK_ANSWER_HELD,     /* acquire, renew: the claim holds the lock, and the full lease was set in this execution */
    SNK_ANSWER_QUEUED,   /* acquire, renew: the claim waits in the store's queue, and was refreshed there */
    SNK_ANSWER_BUSY,     /* acquire: somebody else has the lock; the claim is not registered */
    SNK_ANSWER_GONE,     /* renew, release: no such claim; acquire: refused, because the claim has been given up */
    SNK_ANSWER_DONE,     /* release: the claim was there and is gone */
    SNK_ANSWER_FAILED,   /* it did not happen; `error` says why */
    SNK_ANSWER_UNCERTAIN /* no answer: it may have happened, or may happen yet */
} snk_answer_kind;

typedef struct snk_answer {
    snk_answer_kind kind;
    uint64_t token_first; /* held: the block of tokens that came with the grant, the same at each renewal */
    uint64_t token_last;
    int64_t look_after_ns; /* queued: look again after this time at the latest; 0: the caller's choice */
    uint32_t units;        /* held: of a permit, how many it is */
    uint64_t ticket;       /* queued: the store's own note for snk_store_wait */
    uint64_t run;      /* queued: which run of which server says so; 0: not known, or the store announces no grants */
    sneck_error error; /* failed, uncertain */
} snk_answer;

/*
 * What the store says on its own about a claim that waited: it was granted the lock, as an offer that lives
 * min(SNK_OFFER_NS, lease) from then on unless it is renewed.
 */
typedef struct snk_grant {
    snk_id claim;
    uint64_t token_first; /* the block of tokens */
    uint64_t token_last;
    uint64_t run; /* which run of which server says so; 0: not known, and then it is no more than a reason to ask */
} snk_grant;

#endif
