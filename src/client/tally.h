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

#endif
