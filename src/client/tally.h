/* Counts in the store, and handles that are used for one claim only. */
#ifndef SNK_CLIENT_TALLY_H
#define SNK_CLIENT_TALLY_H

#include "client/lock.h"
#include "store/grip.h"

/* Asks the store once; see snk_store_ops.tally. */
sneck_status snk_client_tally(sneck_client *client, const snk_tally *tally, snk_tallied *tallied_out,
                              sneck_error *error);

/* A handle of its own for one claim: a permit, or a wait. `options` were loaded. */
sneck_status snk_claim_open(sneck_client *client, const char *name, snk_entry_key key,
                            const sneck_lock_options *options, sneck_lock **lock_out, sneck_error *error);

/*
 * Releases in the background what the handle holds, and frees it. What a TAKE took is used up by this alone: a handle that
 * is merely freed gives it back to the store, and so does whoever is cancelled or closed before this.
 */
void snk_claim_retire(sneck_lock *lock);

#endif
