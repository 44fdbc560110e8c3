/*
 * The client: the shell around the engine, and the only code that owns threads.
 *
 * Locks, in the order in which they may be taken:
 *
 *     watch.mutex            one round of the watchdog at a time
 *     client.start_mutex     starting threads
 *     registry.mutex         which names there are
 *     entry.mutex            the machine of one name; never two of them
 *     chaser.mutex           how many chases there are
 *     timers.mutex           each heap; never two of them
 *     callbacks.mutex, events.mutex, errands.mutex, idpool.mutex, waits.mutex, watch.inbox_mutex, watch.shown_mutex
 *                            leaves: nothing is taken under them
 *
 * None of them is held while a callback is called, and none but watch.mutex while the store is. entry.mutex is held
 * while the engine decides, which takes a microsecond at most.
 *
 * Life: a client lives from sneck_open until sneck_close has returned and the last handle and request were freed
 * (`references`). sneck_close has three steps: no new work is taken (is_closed, registry.closing, every machine gets
 * SNK_EVENT_CLOSE); everybody who is inside leaves (gate); then the threads end and the store is closed.
 */
#ifndef SNK_CLIENT_CLIENT_H
#define SNK_CLIENT_CLIENT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/forkmark.h"
#include "client/callbacks.h"
#include "client/errands.h"
#include "client/events.h"
#include "client/gate.h"
#include "client/idpool.h"
#include "client/keeper.h"
#include "client/log.h"
#include "client/metrics.h"
#include "client/options.h"
#include "client/registry.h"
#include "client/renewer.h"
#include "client/waits.h"
#include "client/watch.h"
#include "engine/machine.h"
#include "sneck.h"
#include "store/store.h"

struct sneck_client {
    snk_forkmark fork;
    _Atomic bool is_closed;         /* calls on handles are SNECK_INVALID from now on */
    _Atomic bool is_started;        /* renewer and keeper run */
    _Atomic uint32_t references;    /* one of the client itself, one of each handle and request */
    _Atomic uint64_t handle_count;  /* handles ever made, to number those that own for themselves */
    _Atomic uint32_t request_count; /* requests that live */
    snk_gate gate;                  /* of whoever uses the store, or waits */
    snk_settings settings;
    snk_store *store; /* owned; closed by sneck_close */
    snk_engine engine;
    /* Of the store, kept here because a handle may outlive it. */
    bool counts_levels;
    unsigned modes;
    const char *scheme;
    char store_text[256]; /* which store it is, in the same words in every process */
    snk_idpool ids;
    snk_registry registry;
    snk_renewer renewer;
    snk_errands errands;
    snk_keeper keeper;
    snk_callbacks callbacks;
    snk_events events;
    snk_watch watch;
    snk_metrics metrics;
    snk_log log;
    snk_neighbour neighbour;
    pthread_mutex_t start_mutex;
};

/* SNECK_INVALID when `client` is NULL, belongs to the parent of a fork(), or is closed. */
sneck_status snk_client_check(const sneck_client *client, sneck_error *error);

/* As above, and the store may be used until snk_gate_leave. */
sneck_status snk_client_enter(sneck_client *client, sneck_error *error);

/* Starts the renewer and the keeper, unless they run. */
sneck_status snk_client_start(sneck_client *client, sneck_error *error);

void snk_client_ref(sneck_client *client);
void snk_client_unref(sneck_client *client);

#endif
