/*
 * The inside of the connection for subscriptions.
 *
 * Its own thread connects, subscribes, and sees to it that a silent server is noticed. Receiving is a role, held by at
 * most one thread (`receiver`, taken and given back under the mutex): a thread that sleeps until it is told something
 * (snk_redis_pubsub_sleep) takes it if it is free, waits in poll instead of on its word, and hears for everybody; so the
 * message that it waits for reaches it without another thread between. Sleepers that find the role taken sleep on their
 * words (`deferred`); when the receiver leaves, the connection's thread is called to hear for them.
 *
 * While nobody sleeps nobody need receive. Once there has been a sleeper, the thread looks at the socket only if an answer
 * is due or somebody is deferred: in a row of waits it is not woken at all.
 *
 * Whoever changes the word of a sleeper calls snk_redis_pubsub_rouse. `sleeper` is the address of the receiver's word,
 * with its lowest bit set while it polls. It is set before the word is looked at, and looked at after the word was set,
 * in both cases by a read-modify-write; so one of the two sees the other.
 *
 * The wire is closed by the thread alone, and only while no sleeper receives: it asks for that (`hushed`) and waits. A
 * sleeper that finds the connection over leaves it to the thread (`failed`).
 *
 * Order of locks: `mutex`, then the wire's. Callbacks run with neither.
 */
#ifndef SNK_REDIS_PUBSUB_PARTS_H
#define SNK_REDIS_PUBSUB_PARTS_H

#include <pthread.h>
#include <stdatomic.h>

#include "redis/bytes.h"
#include "redis/channels.h"
#include "redis/parser.h"
#include "redis/pubsub.h"
#include "redis/wire.h"

#define SNK_REDIS_PUBSUB_RECEIVE_SIZE 16384

typedef enum snk_redis_receiver {
    SNK_REDIS_RECEIVER_NONE,
    SNK_REDIS_RECEIVER_THREAD,
    SNK_REDIS_RECEIVER_SLEEPER
} snk_redis_receiver;

struct snk_redis_pubsub {
    const snk_redis_settings *settings; /* borrowed; unchanging */
    int stop_fd;                        /* borrowed; readable from the moment of closing */
    int wake_fd;                        /* owned; wakes the thread */
    int rouse_fd;                       /* owned; wakes the sleeper that receives */
    _Atomic uintptr_t sleeper;          /* see above; 0: no sleeper receives */
    _Atomic bool hushed;                /* the sleeper that receives must leave */

    pthread_mutex_t mutex;  /* never held during I/O or a callback */
    pthread_cond_t changed; /* with mutex: a channel was confirmed or refused, the connection came or went, closing */
    /* Under mutex: */
    snk_redis_channels channels; /* others only count up and down; entries are freed by the thread and the receiver */
    bool closing;
    bool thread_started;
    bool thread_looks; /* at the socket, or will without being called */
    bool has_sleepers; /* somebody has slept here, so messages are for sleepers */
    bool connected;
    bool failed;      /* by a sleeper: the connection is over; last_error says why */
    unsigned waiters; /* threads inside await and sleep */
    unsigned deferred;
    snk_redis_receiver receiver;
    snk_redis_run run;
    unsigned version;
    sneck_error last_error;
    pthread_t thread;
    int64_t received_at_ns; /* when the server last said something */
    int64_t asked_at_ns;    /* since when an answer is due; 0: none is */
    unsigned attempts;      /* since the server last said something */

    /* The receiver's: */
    snk_redis_parser parser;
    char received[SNK_REDIS_PUBSUB_RECEIVE_SIZE];

    /* The thread's own, but for receiving: */
    snk_redis_wire wire;
    snk_redis_bytes out;
    size_t sent; /* bytes of `out` that the wire has taken */
    int64_t retry_at_ns;
    uint64_t random;
};

/* ---- pubsub.c ---- */

/* Receives what is there and tells it. For the holder of the role, without the mutex. False: the connection is over. */
bool snk_redis_pubsub_receive(snk_redis_pubsub *pubsub, sneck_error *error);

/* ---- hearing.c ---- */

/* The thread takes the role for a moment; false when a sleeper has it. */
bool snk_redis_hearing_begin(snk_redis_pubsub *pubsub);
void snk_redis_hearing_end(snk_redis_pubsub *pubsub);
/* Must the thread look at the socket? */
bool snk_redis_hearing_is_needed_locked(const snk_redis_pubsub *pubsub);
/* No sleeper receives when it returns, nor begins to. */
void snk_redis_hearing_hush_locked(snk_redis_pubsub *pubsub);

#endif
