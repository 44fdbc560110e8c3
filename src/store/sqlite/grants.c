#include "store/sqlite/grants.h"

#include <string.h>

/*
 * Clients of one process have a mapping each. That these are the same memory is known to the processor, but neither to
 * the language nor to the thread sanitizer, for which words at two addresses order nothing. This word is at one address:
 * what was done under the lock before the grant comes before what is done under it after the note was read.
 */
static _Atomic uint32_t order;

static snk_grant_note *note_of(snk_slot *slot, const snk_id *claim)
{
    return &slot->grants[claim->bytes[0] % SNK_SIDECAR_GRANTS];
}

void snk_grant_write(snk_slot *slot, const snk_grant *grant)
{
    snk_grant_note *note = note_of(slot, &grant->claim);
    uint64_t halves[2];
    memcpy(halves, grant->claim.bytes, sizeof halves);
    /* One who died in the middle has left it odd. */
    uint64_t writing = atomic_load(&note->writes) | 1U;
    atomic_store(&note->writes, writing);
    atomic_store(&note->claim[0], halves[0]);
    atomic_store(&note->claim[1], halves[1]);
    atomic_store(&note->token_first, grant->token_first);
    atomic_store(&note->token_last, grant->token_last);
    (void)atomic_fetch_add(&order, 1);
    atomic_store(&note->writes, writing + 1);
}

bool snk_grant_read(snk_slot *slot, const snk_id *claim, snk_grant *grant_out)
{
    snk_grant_note *note = note_of(slot, claim);
    uint64_t halves[2];
    uint64_t before = atomic_load(&note->writes);
    halves[0] = atomic_load(&note->claim[0]);
    halves[1] = atomic_load(&note->claim[1]);
    grant_out->token_first = atomic_load(&note->token_first);
    grant_out->token_last = atomic_load(&note->token_last);
    bool is_whole = before % 2 == 0 && atomic_load(&note->writes) == before;
    (void)atomic_load(&order);
    return is_whole && memcmp(halves, claim->bytes, sizeof halves) == 0;
}
