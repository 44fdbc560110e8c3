/*
 * What a claim is after, and in what way. A grip belongs to the client's entry of a name and goes with each of its
 * requests; the engine never sees it, because a claim that waits or holds is the same to it whatever it is for.
 *
 * What stands in the way of a claim, by its mode:
 *
 *   EXCLUSIVE  any holder
 *   SHARED     any holder that does not share
 *   PERMIT     any holder that is no permit, or so many permits that `units` more would be over the thing's count
 *   TAKE       a count lower than `units`; a grant lowers the count, and what is released unused goes back
 *   PASS       a count that is not zero
 *
 * and in every mode those who came before and wait. The claim `beside` never stands in the way of this one, and nor do
 * those who wait: a writer that becomes a reader has its hold to stand on.
 */
#ifndef SNK_STORE_GRIP_H
#define SNK_STORE_GRIP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/ids.h"

/* Names of different objects are apart. */
typedef enum snk_object {
    SNK_OBJECT_LOCK,     /* a mutex, a read-write lock, a semaphore: one name is one thing */
    SNK_OBJECT_LATCH,    /* PASS */
    SNK_OBJECT_CONDITION /* TAKE of signals; "<lock>/<condition>" */
} snk_object;

typedef enum snk_mode {
    SNK_MODE_EXCLUSIVE,
    SNK_MODE_SHARED,
    SNK_MODE_PERMIT,
    SNK_MODE_TAKE,
    SNK_MODE_PASS
} snk_mode;

typedef struct snk_grip {
    snk_object object;
    snk_mode mode;
    uint32_t units; /* PERMIT, TAKE: how many; PERMIT 0: all that are left, at least one */
    snk_id beside;  /* zero: none */
} snk_grip;

/* A mode as a bit of snk_store_traits.modes, and its word for people. */
#define SNK_MODE_BIT(mode) (1U << (mode))
#define SNK_MODES_ALL                                                                                                  \
    (SNK_MODE_BIT(SNK_MODE_EXCLUSIVE) | SNK_MODE_BIT(SNK_MODE_SHARED) | SNK_MODE_BIT(SNK_MODE_PERMIT) |                \
     SNK_MODE_BIT(SNK_MODE_TAKE) | SNK_MODE_BIT(SNK_MODE_PASS))
const char *snk_mode_word(snk_mode mode);

/*
 * Whether somebody who has so many levels of the read side and of the write side, and keeps them, would wait for itself with
 * this wish: a reader that wants to write. A writer may read.
 */
bool snk_grip_waits_for_itself(const snk_grip *grip, unsigned reads, unsigned writes);

/* Who holds a thing, as far as it matters to others; for stores that decide in C. */
typedef struct snk_crowd {
    uint32_t holders;
    uint32_t sharing; /* of them */
    uint32_t permits; /* of them */
    int64_t used;     /* units of those permits */
    int64_t count;    /* see snk_tally */
} snk_crowd;

void snk_crowd_add(snk_crowd *crowd, snk_mode mode, uint32_t units);
/* Whether a claim could be granted, those who wait left aside. `stands_beside`: one of the holders is its `beside`. */
bool snk_crowd_allows(const snk_crowd *crowd, const snk_grip *grip, bool stands_beside);

/* A byte that begins no name, for stores that keep all objects in one table; "" for locks. */
const char *snk_object_mark(snk_object object);
snk_object snk_object_of_mark(char first);

/*
 * The count of a thing: the permits of a semaphore (leased: in all; plain: those left), what a latch still waits for,
 * signals that wait for a taker.
 */
typedef enum snk_tally_verb {
    SNK_TALLY_READ,
    SNK_TALLY_SET,         /* count = value */
    SNK_TALLY_SET_IF_ZERO, /* the same, where the count is 0; else nothing (`done` is false) */
    SNK_TALLY_ADD,         /* count += value */
    SNK_TALLY_DOWN,        /* count -= 1, unless it is 0 or this `id` did so before */
    SNK_TALLY_SIGNAL       /* count += value, but not beyond the number of claims that wait */
} snk_tally_verb;

typedef struct snk_tally {
    snk_object object;
    snk_tally_verb verb;
    const char *name; /* without prefix; borrowed */
    int64_t value;
    snk_id id;
} snk_tally;

typedef struct snk_tallied {
    int64_t count; /* afterwards; -1: never set (a semaphore without permits) */
    int64_t used;  /* units of the permits that are out */
    bool done;     /* something was changed */
} snk_tallied;

#endif
