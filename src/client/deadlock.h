/*
 * Threads of one client that wait for each other's locks. Whoever begins to wait is entered here and looks whether its
 * wait closes a cycle; the one that came last is told, and gives up.
 */
#ifndef SNK_CLIENT_DEADLOCK_H
#define SNK_CLIENT_DEADLOCK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "client/entry.h"
#include "sneck.h"

/* A thread that waits; in its own memory. */
typedef struct snk_wait_record {
    snk_link link;    /* under waits.mutex, as is the rest */
    uint64_t owner;   /* the thread */
    uint64_t number;  /* higher than that of every wait that was entered before */
    uint64_t asked;   /* higher than that of every wait whose request left before */
    snk_entry *entry; /* what it waits for; in use while it waits */
} snk_wait_record;

typedef struct snk_waits {
    pthread_mutex_t mutex; /* a leaf */
    uint64_t count;        /* waits so far; under mutex */
    _Atomic uint64_t asks; /* requests of threads so far, each of which may become a wait */
    snk_list list;         /* of snk_wait_record; under mutex */
} snk_waits;

void snk_waits_init(snk_waits *waits);
void snk_waits_deinit(snk_waits *waits);

/* Before the request leaves: the number for snk_wait_record.asked. */
uint64_t snk_waits_ask(snk_waits *waits);
void snk_waits_begin(snk_waits *waits, snk_wait_record *record, uint64_t owner, snk_entry *entry, uint64_t asked);
void snk_waits_end(snk_waits *waits, snk_wait_record *record);

/* True when this wait closes a cycle and began last of all in it; then the error says how it goes round. */
bool snk_deadlock_find(sneck_client *client, const snk_wait_record *record, sneck_error *error);

#endif
