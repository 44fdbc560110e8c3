/*
 * What a handle wants to hear of: events by callback, and loss by a file descriptor. Made only for handles that ask for
 * it. It hangs on the entry, so that each step of the machine can serve it.
 */
#ifndef SNK_CLIENT_EAR_H
#define SNK_CLIENT_EAR_H

#include <stdbool.h>
#include <stdint.h>

#include "client/entry.h"
#include "sneck.h"

/* Everything under entry.mutex. */
struct snk_ear {
    snk_ear *next;           /* in entry.ears */
    sneck_event_fn on_event; /* NULL: none */
    void *event_context;
    int lost_fd;      /* a timerfd; owned; -1: none */
    bool is_watching; /* lost_fd is armed for the hold with `token` */
    uint64_t token;
    int64_t armed_at_ns;
};

/* NULL when out of memory. */
snk_ear *snk_ear_new(void);
/* Closes the descriptor and frees the ear, which hangs on no entry any more. NULL is a no-op. */
void snk_ear_free(snk_ear *ear);

void snk_ear_attach_locked(snk_entry *entry, snk_ear *ear);
void snk_ear_detach_locked(snk_entry *entry, snk_ear *ear);

/* Arms the descriptor, made if need be, for the present hold. False when it cannot be had. */
bool snk_ear_watch_locked(snk_entry *entry, snk_ear *ear);

/* After a step: every descriptor follows the deadline, and fires if its hold was lost in this step. */
void snk_ears_follow_locked(snk_entry *entry, const snk_actions *actions);

#endif
