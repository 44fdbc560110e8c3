/*
 * Whoever acts for a waiter: the thread that waits (the agent is on its stack), or for an asynchronous request that of
 * errands.h (the agent is in the request).
 */
#ifndef SNK_CLIENT_AGENT_H
#define SNK_CLIENT_AGENT_H

#include <stdbool.h>
#include <stdint.h>

#include "client/lock.h"
#include "client/parking.h"
#include "client/turn.h"
#include "client/why.h"
#include "engine/machine.h"
#include "sneck.h"

typedef struct snk_agent {
    snk_waiter waiter;      /* under entry.mutex */
    snk_parking parking;    /* a thread sleeps on it; called under entry.mutex */
    bool news;              /* the store pushed news about the claim; under entry.mutex */
    bool is_granted;        /* namely that it was granted the lock: `grant`; under entry.mutex */
    int64_t thread;         /* of the asker, for the owner text; 0: not asked of the kernel yet */
    snk_why *why;           /* borrowed from the handle or the request */
    snk_id beside;          /* for the store; zero: none */
    sneck_request *request; /* NULL: a thread */
    snk_grant grant;        /* under entry.mutex */
} snk_agent;

static inline snk_agent *snk_agent_of(snk_waiter *waiter)
{
    return SNK_CONTAINER(waiter, snk_agent, waiter);
}

/* Fills in an agent that asks for the lock through this handle. */
void snk_agent_init(snk_agent *agent, const sneck_lock *lock, const snk_terms *terms, int64_t wait_ms);

/* The turn in which it asks. Without memory for a hold it is decided at once, and the machine never hears of it. */
void snk_agent_ask_locked(snk_agent *agent, snk_turn *turn);

/*
 * The turn in which it goes on: takes up what it was called for, or gives up if it was interrupted. `grant`: the store
 * said that it has granted the claim the lock, or NULL.
 */
void snk_agent_go_on_locked(snk_agent *agent, snk_turn *turn, bool news, const snk_grant *grant);

/* The turn in which it stops waiting. */
void snk_agent_give_up_locked(snk_agent *agent, snk_turn *turn, sneck_status status);

/* Decided: gives memory back that it did not need. */
void snk_agent_end_locked(snk_agent *agent, snk_entry *entry);

/* The calling thread, whose agent this is, has its result: that is counted. Once. */
void snk_agent_account(const snk_agent *agent, const sneck_lock *lock);

/* The end of a wait that begins now. */
int64_t snk_wait_until_ns(int64_t wait_ms);

#endif
