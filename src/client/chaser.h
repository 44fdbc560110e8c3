/*
 * Claims that nobody wants any more, released by their id until the store answers, with growing pauses. Run by the
 * renewer, which does not wait for the answers of a store that gives them on threads of its own. A chase ends unanswered
 * when the claim's lease, and the time in which its acquire might still arrive, are over.
 */
#ifndef SNK_CLIENT_CHASER_H
#define SNK_CLIENT_CHASER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "client/entry.h"
#include "client/timers.h"
#include "engine/claim.h"
#include "sneck.h"

typedef struct snk_chaser {
    pthread_mutex_t mutex;          /* before timers.mutex; never with another one */
    snk_timers timers;              /* of chases */
    size_t count;                   /* of chases; under mutex */
    size_t in_flight;               /* chases that are being asked, and threads that may still call; under mutex */
    snk_list answered;              /* chases; under mutex */
    _Atomic int64_t pause_until_ns; /* the store does not answer: not before */
    _Atomic uint32_t failures;      /* in a row */
} snk_chaser;

void snk_chaser_init(snk_chaser *chaser);
/* Forgets what is left. */
void snk_chaser_deinit(snk_chaser *chaser);

/* False when out of memory. The renewer is told. */
bool snk_chaser_add(sneck_client *client, const snk_entry *entry, const snk_send *send);

/* When there is something to do; SNK_NEVER_NS: nothing. */
int64_t snk_chaser_next_ns(snk_chaser *chaser);
/* Does what is due, up to a number. */
void snk_chaser_run(sneck_client *client, int64_t now_ns);
/* Tries everything once more that is left, until `until_ns`. */
void snk_chaser_finish(sneck_client *client, int64_t until_ns);

#endif
