/*
 * Several locks that are taken as one: in the order of their names, one after the other, all or none. Not for several
 * threads at once. A thread of its own does the waiting, so that the caller can go on with signals and the terminal: a
 * thread that waits in the library is woken at once when the holder dies.
 */
#ifndef SNK_CLI_LOCKSET_H
#define SNK_CLI_LOCKSET_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "page.h"
#include "sneck.h"

typedef struct snk_lockset {
    sneck_client *client; /* borrowed */
    struct snk_lockset_member {
        const char *name;         /* borrowed */
        sneck_lock *lock;         /* owned */
    } members[SNK_RUN_LOCKS_MAX]; /* in the order of names */
    size_t count;
    size_t first; /* the member that was named first */
    size_t held;  /* members[0 … held) are acquired */

    pthread_t asker;       /* waits for members[held] */
    bool is_asking;        /* the asker was started and not joined yet */
    int done_fd;           /* eventfd: the asker has its answer */
    sneck_error result;    /* the asker's, until it was joined */
    int64_t give_up_at_ns; /* SNK_NEVER_NS: wait for ever */
    bool tries_once;
    bool canceled;
    const char *failed; /* the name that could not be had */
} snk_lockset;

typedef enum snk_lockset_state {
    SNK_LOCKSET_WAITING,
    SNK_LOCKSET_ACQUIRED,
    SNK_LOCKSET_FAILED /* set->result says why; nothing is held */
} snk_lockset_state;

/* How each of them is taken. */
typedef struct snk_lockset_way {
    bool shared;   /* beside others that share it */
    int64_t slots; /* one of so many permits; 0: not a semaphore */
    sneck_lock_options options;
} snk_lockset_way;

/*
 * Makes the handles; with `slots`, says how many permits there are. `names[0]` is the one named first; names must differ (SNECK_INVALID). Close it in any case.
 */
sneck_status snk_lockset_open(snk_lockset *set, sneck_client *client, const char *const names[], size_t count,
                              const snk_lockset_way *way, sneck_error *error);

/* Releases what is held, and frees the handles. Nothing may be asked for any more. */
void snk_lockset_close(snk_lockset *set);

/* Starts to acquire. From now on poll done_fd and call snk_lockset_step when it is readable. */
snk_lockset_state snk_lockset_begin(snk_lockset *set, int64_t wait_ms);
snk_lockset_state snk_lockset_step(snk_lockset *set);

/*
 * Asks that the acquire end; go on with snk_lockset_step until it does, and ask again from time to time: it is only
 * heard by an asker that already waits.
 */
void snk_lockset_cancel(snk_lockset *set);

/* The name that is waited for. */
const char *snk_lockset_waits_for(const snk_lockset *set);

/* The name of a member that is not held (any more), or NULL. */
const char *snk_lockset_lost(const snk_lockset *set);

/* The token of the lock that was named first. */
uint64_t snk_lockset_token(const snk_lockset *set);

/* Time left until the first of them ends. */
int64_t snk_lockset_remaining_ms(const snk_lockset *set);

/*
 * Releases all, last one first. SNECK_OK, or what the worst of them said: SNECK_LOST beats an answer that never came.
 */
sneck_status snk_lockset_release(snk_lockset *set, sneck_error *error);

#endif
