/*
 * What the command line needs beyond the public API to supervise a command that runs under a lock: the claim behind a
 * hold, its deadline as a word that another process can see, and the release of a claim by its id alone.
 */
#ifndef SNK_CLIENT_SUPERVISE_H
#define SNK_CLIENT_SUPERVISE_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/ids.h"
#include "sneck.h"

/* The claim behind the caller's hold; false when nothing is held. */
bool snk_lock_claim(sneck_lock *lock, snk_id *claim_out);

/*
 * From now on `*word` (in memory that outlives the handle, perhaps shared with another process) is kept equal to the
 * deadline of the present hold: CLOCK_BOOTTIME in ns, SNK_DEADLINE_NONE or SNK_DEADLINE_LOST, changed in the same step
 * that changes the hold. NULL ends it. One mirror per name and client. A hold that began a moment ago with the short life
 * of an offer gets its full lease first, because who looks at the word plans by it; if the store does not answer, the
 * short deadline is what there is.
 */
void snk_lock_mirror_deadline(sneck_lock *lock, _Atomic int64_t *word);

/* Releases a claim of whatever client by its id. SNECK_OK: it was there and is gone; SNECK_LOST: it was not there. */
sneck_status snk_client_forget(sneck_client *client, const char *name, const snk_id *claim, sneck_error *error);

/*
 * A file descriptor that keeps the claims of this client alive while any process has it open, or -1 when the store has
 * none. Borrowed, close-on-exec.
 */
int snk_client_liveness_fd(sneck_client *client);

#endif
