#include "store/sqlite/liveness.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* glibc keeps the futex word of a mutex first; the kernel's robust list knows it by the same offset. */
_Static_assert(offsetof(pthread_mutex_t, __data.__lock) == 0, "the life word is the first word of the mutex");

_Atomic uint32_t *snk_slot_life_word(snk_slot *slot)
{
    return (_Atomic uint32_t *)(void *)&slot->life;
}

/* Whether somebody has the liveness lock of a slot that is not ours. */
static bool is_locked(const snk_sidecar *sidecar, uint32_t slot)
{
    struct flock range = {
        .l_type = F_WRLCK,
        .l_whence = SEEK_SET,
        .l_start = SNK_SIDECAR_LIVENESS + (off_t)slot,
        .l_len = 1,
    };
    /* What cannot be asked counts as alive: then the lease decides. */
    return fcntl(sidecar->fd, F_OFD_GETLK, &range) != 0 || range.l_type != F_UNLCK;
}

bool snk_client_is_alive(const snk_sidecar *sidecar, const snk_stamp *stamp)
{
    if (stamp->generation != sidecar->generation || stamp->slot >= SNK_SIDECAR_SLOTS)
        return true;
    uint64_t halves[2];
    memcpy(halves, stamp->client.bytes, sizeof halves);
    snk_slot *slot = &sidecar->file->slots[stamp->slot];
    /* Another id in the slot: it was taken since, which needs the lock that the former client has lost. */
    if (atomic_load(&slot->client[0]) != halves[0] || atomic_load(&slot->client[1]) != halves[1])
        return false;
    /* Our own lock is no conflict to ask about: the kernel would say that the byte is free. */
    return stamp->slot == sidecar->slot || is_locked(sidecar, stamp->slot);
}

bool snk_slot_is_alive(const snk_sidecar *sidecar, uint32_t slot, uint16_t incarnation)
{
    snk_slot *other = &sidecar->file->slots[slot];
    if ((uint16_t)atomic_load(&other->incarnation) != incarnation)
        return false;
    return slot == sidecar->slot || is_locked(sidecar, slot);
}

bool snk_slot_adopt(snk_sidecar *sidecar)
{
    return pthread_mutex_trylock(&snk_sidecar_slot(sidecar)->life) == 0;
}

void snk_slot_disown(snk_sidecar *sidecar)
{
    (void)pthread_mutex_unlock(&snk_sidecar_slot(sidecar)->life);
}
