/*
 * One turn of a lock: a step of its machine, with everything inside this process that follows from it. Waking, events,
 * timers and descriptors are done here, under entry.mutex or right after it; what is to be sent is left in
 * actions.sends for perform.h.
 */
#ifndef SNK_CLIENT_TURN_H
#define SNK_CLIENT_TURN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/entry.h"
#include "client/why.h"
#include "engine/machine.h"
#include "sneck.h"

/* Who asks, as the store is told. */
typedef struct snk_asker {
    int64_t thread;
    snk_why *why;  /* a reference */
    snk_id beside; /* the hold of the same owner that the claim may stand beside; zero: none */
} snk_asker;

#define SNK_TURN_WORDS_MAX 16

typedef struct snk_turn {
    sneck_client *client;
    snk_entry *entry;
    bool call_renewer;
    bool call_errands;
    bool call_keeper;
    bool call_watch;
    size_t word_count;
    size_t unpin_count;
    _Atomic uint32_t *words[SNK_TURN_WORDS_MAX]; /* sleepers to wake */
    snk_entry *unpin[2 * SNK_NOTES_MAX];
    snk_asker askers[SNK_SENDS_MAX]; /* of each acquire in actions.sends */
    snk_actions actions;
} snk_turn;

void snk_turn_init(snk_turn *turn, sneck_client *client, snk_entry *entry);

/* Reads the clock and takes the step; entry.mutex is held. Once per turn. */
void snk_turn_take_locked(snk_turn *turn, snk_event *event);

/* Instead of a step: sends that another turn left over, or none. */
void snk_turn_take_sends(snk_turn *turn, const snk_send sends[], uint32_t count);

/*
 * Instead of a step: calls the agent of the waiter with this claim, because the store has news about it; `grant`: that
 * it was granted the lock, or NULL. The agent takes it to the machine.
 */
void snk_turn_call_locked(snk_turn *turn, const snk_id *claim, const snk_grant *grant);

/* Somebody seeks the lock with this claim; entry.mutex is held. */
bool snk_turn_seeks_locked(const snk_entry *entry, const snk_id *claim);

/* Wakes whoever is to be woken; entry.mutex was given back. */
void snk_turn_end(snk_turn *turn);

/* Writes a note into the application's log; `entry` and `detail` as in snk_events_emit. */
void snk_turn_log(sneck_client *client, const snk_entry *entry, const snk_note *note, const char *detail);

/* All of it: a turn that nobody needs to look into. */
void snk_turn_run(snk_turn *turn, sneck_client *client, snk_entry *entry, snk_event *event);

#endif
