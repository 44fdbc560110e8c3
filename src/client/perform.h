/* Doing what a turn wants sent. */
#ifndef SNK_CLIENT_PERFORM_H
#define SNK_CLIENT_PERFORM_H

#include "client/turn.h"
#include "sneck.h"

/*
 * Sends, on the calling thread, what the turn wants sent, takes each answer back to the machine, and goes on until
 * nothing is left. Chases are left to the renewer. `result` (may be NULL) is filled with the result of a release or an
 * extend that was pending. The entry must not go away meanwhile.
 */
void snk_perform(snk_turn *turn, sneck_error *result);

/* For a thread that must not wait for the store: only chases may be in the turn. */
void snk_perform_chases(snk_turn *turn);

#endif
