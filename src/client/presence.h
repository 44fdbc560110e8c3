/*
 * Which threads hold locks, and when one of them ends.
 *
 * Kept for each thread: how many levels of locks it has, in all clients together, and the kernel's id of it. When a
 * thread ends that has levels left, the watchdog of each open client is told at once.
 *
 * This is shared by all clients of the process, because the end of a thread is an affair of the process: a list of the
 * clients that want to hear of it, behind a mutex that is held for a few instructions (and by fork()).
 */
#ifndef SNK_CLIENT_PRESENCE_H
#define SNK_CLIENT_PRESENCE_H

#include <stdint.h>

#include "base/list.h"
#include "sneck.h"

/* A client's place in the list. */
typedef struct snk_presence {
    snk_link link;
    sneck_client *client; /* borrowed */
} snk_presence;

/* From now on the client is told of threads that end, by snk_watch_owner_ended; until snk_presence_close. */
void snk_presence_open(snk_presence *presence, sneck_client *client);
void snk_presence_close(snk_presence *presence);

/* The calling thread has a level more, or one less. */
void snk_presence_add_level(void);
void snk_presence_drop_level(void);

/* The kernel's id of the calling thread; it costs no system call but the first time. */
int32_t snk_presence_thread(void);

#endif
