/* Whether a client of the lock file is alive, and the hint that it may have died. See sidecar.h. */
#ifndef SNK_STORE_SQLITE_LIVENESS_H
#define SNK_STORE_SQLITE_LIVENESS_H

#include "store/sqlite/sidecar.h"

/* Where a client is, as a claim of it remembers. The database has it as it is in memory. */
typedef struct snk_stamp {
    snk_id client;
    uint64_t generation; /* of the sidecar in which the slot is */
    uint32_t slot;
    uint32_t reserved;
} snk_stamp;

/*
 * False only when the client is gone for good. A client of another generation of the file cannot be judged, and counts
 * as alive until its lease ends.
 */
bool snk_client_is_alive(const snk_sidecar *sidecar, const snk_stamp *stamp);

/* The same for whoever has the slot with this incarnation (as far as its low 16 bits tell). */
bool snk_slot_is_alive(const snk_sidecar *sidecar, uint32_t slot, uint16_t incarnation);

/* The word of the slot's life mutex: thread id of its owner, and the two bits below; 0 when nobody has it. */
_Atomic uint32_t *snk_slot_life_word(snk_slot *slot);

/* The calling thread keeps the life mutex of our slot until snk_slot_disown, which it must call. */
bool snk_slot_adopt(snk_sidecar *sidecar);
void snk_slot_disown(snk_sidecar *sidecar);

#endif
