/* Doing what a turn wants sent. */
#ifndef SNK_CLIENT_PERFORM_H
#define SNK_CLIENT_PERFORM_H

#include "base/error.h"
#include "client/turn.h"
#include "engine/claim.h"
#include "sneck.h"

/*
 * Sends, on the calling thread, what the turn wants sent, takes each answer back to the machine, and goes on until
 * nothing is left. Chases are left to the renewer. `result` (may be NULL) is filled with the result of a release or an
 * extend that was pending. The entry must not go away meanwhile.
 */
void snk_perform(snk_turn *turn, sneck_error *result);

/* An answer that says "failed" without saying why must never be taken for success further on. */
static inline void snk_answer_settle(snk_answer *answer)
{
    bool failed = answer->kind == SNK_ANSWER_FAILED || answer->kind == SNK_ANSWER_UNCERTAIN;
    if (failed && answer->error.status == SNECK_OK)
        (void)snk_fail(&answer->error, answer->kind == SNK_ANSWER_FAILED ? SNECK_UNAVAILABLE : SNECK_UNKNOWN, 0,
                       "the store failed and did not say why");
}

/* For a thread that must not wait for the store: only chases may be in the turn. */
void snk_perform_chases(snk_turn *turn);

#endif
