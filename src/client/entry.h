/*
 * One thing that this client wants in one way: its machine, and what hangs on it. Threads that want the same lock for
 * themselves alone share an entry, and pass it on among themselves; whoever shares a lock, or wants permits, has an
 * entry of its own, because each of them holds for itself.
 */
#ifndef SNK_CLIENT_ENTRY_H
#define SNK_CLIENT_ENTRY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "client/timers.h"
#include "engine/machine.h"
#include "store/grip.h"

typedef struct snk_ear snk_ear;
typedef struct snk_class snk_class;

/* What makes an entry another one. */
typedef struct snk_entry_key {
    snk_object object : 8;
    snk_mode mode : 8;
    uint32_t units;
    uint64_t owner; /* of its single user; 0: anybody's */
} snk_entry_key;

/*
 * Lives while a handle, a hold, a waiter or a pin needs it. A pin may be set under any one of registry.mutex,
 * entry.mutex and the mutex of a heap that the entry is in; an entry is freed with all of them in hand and no pin set.
 */
typedef struct snk_entry {
    pthread_mutex_t mutex;
    snk_machine machine;     /* under mutex */
    snk_hold first_hold;     /* memory for the usual case of one hold; under mutex */
    snk_timer renewal;       /* in renewer.timers: machine.timer_at_ns */
    snk_timer deadline;      /* in keeper.deadlines: machine.deadline */
    _Atomic int64_t *mirror; /* borrowed; NULL: none; under mutex */
    snk_class *kin;          /* of locks that are counted together with this one; borrowed from the client */
    snk_ear *ears;           /* of handles that want to hear of loss or events; under mutex */
    struct snk_entry *next;  /* in its bucket; under registry.mutex */
    snk_link link;           /* in registry.entries; under registry.mutex */
    _Atomic uint32_t pins;
    uint32_t handles; /* under registry.mutex */
    uint32_t hash;    /* of the name */
    snk_entry_key key;
    bool first_hold_is_used; /* by the machine, or promised to a waiter; under mutex */
    char name[];
} snk_entry;

static inline void snk_entry_pin(snk_entry *entry)
{
    (void)atomic_fetch_add_explicit(&entry->pins, 1, memory_order_relaxed);
}

/* How its claims hold, but for what they stand beside. */
static inline snk_grip snk_entry_grip(const snk_entry *entry)
{
    return (snk_grip){ .object = entry->key.object, .mode = entry->key.mode, .units = entry->key.units };
}

/* Memory for a hold; NULL when out of memory. */
snk_hold *snk_entry_new_hold_locked(snk_entry *entry);
void snk_entry_free_hold_locked(snk_entry *entry, snk_hold *hold);

#endif
