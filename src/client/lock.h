/*
 * Handles on locks. Every handle has the same head; how it is served is in its operations:
 *
 *   single.c   one entry: a mutex, the write side, and whatever owns for itself (a permit, a read side with
 *              SNECK_OWNER_HANDLE)
 *   readers.c  the read side for threads: a single handle for each thread that reads
 *   multi.c    several handles as one
 */
#ifndef SNK_CLIENT_LOCK_H
#define SNK_CLIENT_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/ids.h"
#include "client/client.h"
#include "client/turn.h"
#include "client/why.h"
#include "engine/claim.h"
#include "sneck.h"

/* What an owner has at a moment; zeros when nothing is held. */
typedef struct snk_possession {
    unsigned levels;
    uint64_t token;
    uint32_t units;
    int64_t remaining_ns;
} snk_possession;

/* How somebody asks for a lock. */
typedef struct snk_asking {
    int64_t wait_ms;
    int64_t lease_ms;                   /* 0: as the handle was made; else the hold lasts so long and is not renewed */
    const _Atomic uint32_t *interrupts; /* NULL: none; when it is no longer `interrupts_seen`, the wait is over */
    uint32_t interrupts_seen;
} snk_asking;

/* Arguments were checked. */
typedef struct snk_lock_ops {
    /* As snk_lock_check, or snk_lock_check_release, for a handle without a client of its own. */
    sneck_status (*check)(const sneck_lock *lock, bool releases, sneck_error *error);
    sneck_status (*acquire)(sneck_lock *lock, const snk_asking *asking, sneck_error *error);
    /*
     * For whoever asks the store on its own, or with other locks (together.c): the handle on one entry by which the
     * calling thread acquires, or releases. With SNECK_OK `settle` must follow, when the answer was taken to the machine.
     * Not of several locks.
     */
    sneck_status (*single)(sneck_lock *lock, bool acquires, sneck_lock **single_out, sneck_error *error);
    void (*settle)(sneck_lock *lock);
    sneck_status (*release)(sneck_lock *lock, sneck_error *error);
    sneck_status (*extend)(sneck_lock *lock, int64_t lease_ms, sneck_error *error);
    void (*interrupt)(sneck_lock *lock);
    snk_possession (*look)(const sneck_lock *lock);
    int (*lost_fd)(sneck_lock *lock);
    /* The client's reference is given back by the caller. In a child of fork() it takes no mutex. */
    void (*free)(sneck_lock *lock);
} snk_lock_ops;

struct sneck_lock {
    const snk_lock_ops *ops;
    sneck_client *client; /* a reference; NULL: of several clients (multi.c) */
    snk_entry *entry;     /* one of its handles; NULL: this is no single handle */
    uint64_t owner;       /* the number that owns; 0: the calling thread's does */
    snk_terms terms;
    snk_why *why;    /* a reference; NULL: no reason given */
    snk_ear *ear;    /* owned; NULL: none; under entry.mutex */
    const void *tag; /* what an interrupt names; the handle itself, unless it is another one's */
    snk_id beside;   /* of the asker that comes next: what its claim may stand beside; zero: nothing */
    bool is_reentrant;
    bool is_write_side; /* whoever reads already is refused */
};

/* Numbers of handles are apart from those of threads. */
#define SNK_OWNER_IS_HANDLE (UINT64_C(1) << 63)

static inline uint64_t snk_lock_owner(const sneck_lock *lock)
{
    return lock->owner != 0 ? lock->owner : snk_thread_number();
}

/* A thread owns what is acquired by this handle. */
static inline bool snk_lock_is_of_thread(const sneck_lock *lock)
{
    return (lock->owner & SNK_OWNER_IS_HANDLE) == 0;
}

/* SNECK_INVALID when `lock` is NULL, belongs to the parent of a fork(), or its client is closed. */
sneck_status snk_lock_check(const sneck_lock *lock, sneck_error *error);

/* The same for who gives a lock back: SNECK_NOT_OWNER in a child of fork(). */
sneck_status snk_lock_check_release(const sneck_lock *lock, sneck_error *error);

/* The name of a lock that is one lock. */
const char *snk_lock_name(const sneck_lock *lock);

/* ---- single.c ---- */

/*
 * A handle on one entry. `options` were loaded. `key.owner` 0: the owner is as the options say; else it is that one, and
 * the entry is for it alone. Frees nothing of the caller's when it fails.
 */
sneck_status snk_single_new(sneck_client *client, const char *name, const snk_entry_key *key,
                            const sneck_lock_options *options, sneck_lock **lock_out, sneck_error *error);
/* A number for a handle that owns for itself. */
uint64_t snk_single_draw_owner(sneck_client *client);

/* What a hold is asked for with; `lease_ms` as in snk_asking. */
snk_terms snk_single_terms(const sneck_lock *lock, int64_t lease_ms);
/*
 * The turn in which one level is given back. True: something is to be sent, and the client's gate was entered for it;
 * otherwise turn.actions.release is the result.
 */
bool snk_single_begin_release(sneck_lock *lock, uint64_t owner, snk_turn *turn);
/*
 * For a store that shows how often the owner has the lock: tells it of a level that was acquired, or given back, by a
 * renewal. If the store cannot be asked, the level stands all the same, and the next one sets the count right.
 * SNECK_LOST: the store no longer has the claim; a level that was acquired is taken back.
 */
sneck_status snk_single_tell_acquired(sneck_lock *lock, sneck_error *error);
sneck_status snk_single_tell_released(sneck_lock *lock, sneck_error *error);

/* What the owner of the handle has. */
snk_possession snk_single_look(const sneck_lock *lock);
/* The same, and true as well while levels of a lost hold are left to be released. */
bool snk_single_is_in_use(const sneck_lock *lock);

/* SNECK_UNSUPPORTED when the client's store cannot do that, with a message that names it. */
sneck_status snk_mode_check(const sneck_client *client, snk_mode mode, sneck_error *error);

/* ---- readers.c ---- */

/* The read side for whichever thread calls. `options` were loaded. */
sneck_status snk_readers_new(sneck_client *client, const char *name, const sneck_lock_options *options,
                             sneck_lock **lock_out, sneck_error *error);
const char *snk_readers_name(const sneck_lock *lock);
/* How many levels of the read side of a name this owner has. */
unsigned snk_readers_levels(sneck_client *client, const char *name, uint64_t owner);

/* ---- multi.c ---- */

/* The members were checked; with `owns_members` they are freed with it. Takes nothing over when it fails. */
sneck_status snk_multi_new(sneck_lock *const members[], size_t count, bool owns_members, sneck_lock **lock_out,
                           sneck_error *error);

#endif
