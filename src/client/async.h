/*
 * Asynchronous requests. The thread of errands.h is their agent; the keeper ends their waits; a callback thread tells their results.
 *
 * A request has a reference of the callbacks until `done` was called, one of their agent until it has nothing left to
 * do for it, and perhaps the user's. It pins its entry and refers to its client, so that it can be cancelled at any time.
 */
#ifndef SNK_CLIENT_ASYNC_H
#define SNK_CLIENT_ASYNC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "client/agent.h"
#include "client/entry.h"
#include "client/timers.h"
#include "client/turn.h"
#include "sneck.h"

#define SNK_REQUEST_SENDS_MAX 4

struct sneck_request {
    _Atomic uint32_t references;
    bool is_release;
    bool is_asked;        /* the machine knows the waiter, or knew it; under entry.mutex */
    bool is_completed;    /* handed to the callbacks; under entry.mutex */
    bool is_rescue;       /* the watchdog's: nobody is told but that one */
    _Atomic bool is_over; /* a rescue: it has given back what it had */
    snk_agent agent;      /* the result is in agent.waiter.result */
    sneck_client *client; /* a reference */
    snk_entry *entry;     /* pinned */
    sneck_done_fn done;
    void *context;
    snk_timer timeout;     /* in keeper.timeouts */
    snk_link ready_link;   /* under errands.mutex */
    snk_link waiting_link; /* under errands.mutex */
    snk_link done_link;    /* under callbacks.mutex */
    uint32_t send_count;   /* what a thread that must not wait has left to the agent; under entry.mutex */
    snk_send sends[SNK_REQUEST_SENDS_MAX];
};

/* A turn woke the request's waiter, or decided it. */
void snk_request_woken_locked(snk_turn *turn, sneck_request *request);

/* The agent's work on a request. `news`: the store may have news. */
void snk_request_run(sneck_request *request, bool news);

/* The agent's, after each run: a rescue that is decided gives back its place in the gate and its first reference. */
void snk_request_end_rescue(sneck_request *request);

/*
 * Waits for the lock on behalf of an owner that lost it (`waiter`: owner and terms, reserves); `thread` is told to the
 * store. The end is told by snk_watch_recovery_ended. False when out of memory, or the client is being closed.
 */
bool snk_request_rescue(sneck_client *client, snk_entry *entry, const snk_waiter *waiter, int32_t thread);

/* The keeper's: its time is over. */
void snk_request_time_out(sneck_request *request);

/* On a callback thread: tells the result. */
void snk_request_tell(sneck_request *request);

void snk_request_ref(sneck_request *request);
void snk_request_unref(sneck_request *request);

#endif
