/*
 * Who waits for what in this process: its clients, and their threads that wait. Shared by all clients, because threads
 * that wait for each other need not do so through one of them.
 *
 * Clients on one store contend for the same locks. That is known of those that were opened with the same words; of
 * others it is not, and a circle through them is left to the limits of the waits.
 */
#ifndef SNK_CLIENT_WAITS_H
#define SNK_CLIENT_WAITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "client/entry.h"
#include "sneck.h"

/* A client's place in the list of them. */
typedef struct snk_neighbour {
    snk_link link;        /* under the mutex of the list */
    sneck_client *client; /* borrowed */
    uint64_t place;       /* the same for all clients on one store, and for no others; unchanging */
} snk_neighbour;

/* `words`: of the store, or NULL: nobody else has this one. */
void snk_waits_join(snk_neighbour *neighbour, sneck_client *client, const char *words, const char *prefix);
void snk_waits_leave(snk_neighbour *neighbour);

/* Up to `room` clients at a place, each with a reference that the caller gives back. */
size_t snk_waits_clients(uint64_t place, sneck_client *clients_out[], size_t room);

/* A thread that waits; in its own memory. */
typedef struct snk_wait_record {
    snk_link link;    /* under the mutex of the list, as is the rest */
    uint64_t owner;   /* the thread */
    uint64_t number;  /* higher than that of every wait that was entered before */
    uint64_t asked;   /* higher than that of every wait whose request left before */
    uint64_t place;   /* of its client */
    snk_entry *entry; /* what it waits for; in use while it waits */
} snk_wait_record;

/* Before the request leaves: the number for snk_wait_record.asked. */
uint64_t snk_waits_ask(void);
/* `record` has owner, asked, place and entry. */
void snk_waits_begin(snk_wait_record *record);
void snk_waits_end(snk_wait_record *record);

/* Calls `visit` for each wait until it returns true, which is returned then. It must not take any lock. */
bool snk_waits_visit(bool (*visit)(void *context, const snk_wait_record *record), void *context);

#endif
