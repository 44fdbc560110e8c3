/* Acquiring a lost lock again, in the background, on behalf of the owner that lost it. */
#ifndef SNK_CLIENT_RECOVER_H
#define SNK_CLIENT_RECOVER_H

#include "client/letter.h"
#include "sneck.h"

/* Not when the owner has no levels of a lost hold left: it knows, and helps itself. */
bool snk_recover_is_needed(const snk_letter *lost);

/* Starts an attempt, whose end comes by snk_watch_recovery_ended. False when out of memory, or closing. */
bool snk_recover_start(sneck_client *client, const snk_letter *lost);

#endif
