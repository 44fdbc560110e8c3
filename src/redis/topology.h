/*
 * The servers that together are one store: where the keys of a slot live now, and what to do when they live elsewhere.
 *
 *   single      one server, as it is
 *   replicated  a master and replicas: the master is the one that says so (ROLE)
 *   sentinel    the same, with sentinels that know the master and choose another when it dies
 *   cluster     many masters, each with some of the 16384 slots
 *
 * A call goes to the server that serves its slot. It is sent again, perhaps elsewhere, only after an answer that proves
 * that it did not run (MOVED, ASK, TRYAGAIN, READONLY, …), or when no byte of it left; so whoever may not ask twice can
 * leave that to the topology. A call that was not answered is the caller's again: UNCERTAIN. What comes of calls that are
 * on their way to a server while another one takes its place is for each of them to say (snk_redis_late).
 *
 * Who serves what is found out by a thread of the topology's own (scout.c), one look at a time, when an answer or a cut
 * connection gives a reason, with pauses that grow and are jittered. Clients of servers are made when needed and closed
 * when nothing of the map is on them any more. Subscriptions follow the server that serves their slot.
 *
 * Any thread may call. Nothing of it is held during I/O or a callback.
 */
#ifndef SNK_REDIS_TOPOLOGY_H
#define SNK_REDIS_TOPOLOGY_H

#include "redis/address.h"
#include "redis/commit.h"
#include "redis/redis.h"
#include "redis/slot.h"

typedef struct snk_topology snk_topology;

typedef enum snk_topology_kind {
    SNK_TOPOLOGY_SINGLE,
    SNK_TOPOLOGY_REPLICATED,
    SNK_TOPOLOGY_SENTINEL,
    SNK_TOPOLOGY_CLUSTER
} snk_topology_kind;

/* Texts are copied. */
typedef struct snk_topology_config {
    snk_topology_kind kind;
    /* What every server is asked with. Its address counts for SINGLE alone. */
    snk_redis_config server;
    /* REPLICATED: the servers. CLUSTER: some of them. SENTINEL: some of the sentinels. */
    const snk_redis_address *hosts;
    size_t host_count;
    /*
     * Other servers than before serve these slots (a bit each, the lowest first), so what was written last may be
     * forgotten. On a thread of the topology; may send calls, but not drive any. May be NULL.
     */
    void (*displaced)(void *context, const uint8_t slots[SNK_REDIS_SLOTS / 8]);
    const char *service;           /* SENTINEL: what the sentinels call the master */
    const char *sentinel_user;     /* NULL or "": the default user */
    const char *sentinel_password; /* NULL or "": none */
} snk_topology_config;

/* Makes it; no network I/O. As snk_redis_open. */
sneck_status snk_topology_open(const snk_topology_config *config, snk_topology **topology_out, sneck_error *error);

/*
 * Sends calls, each to the server for its slot, and does the I/O or waits until all of them are done. While nobody
 * serves a slot it is tried again for the call's time limit, unless the call is hasty. At most SNK_REDIS_DRIVE_MAX
 * calls, all of one lane, without `done`; one with a commitment alone. Not from a callback.
 */
void snk_topology_drive(snk_topology *topology, snk_redis_call *const calls[], size_t count);

/*
 * The same for the calls of all threads, by submit: each has `done`, which is called when it is done. There
 * snk_topology_resend may be asked: it sends the call elsewhere if what came of it says so and elsewhere is known (then
 * true, and `done` will come again).
 */
void snk_topology_send(snk_topology *topology, snk_redis_call *call);
bool snk_topology_resend(snk_topology *topology, snk_redis_call *call);

/*
 * Whether it is known by now that other servers serve something than when the call, which is done, was sent: then what
 * it did may be undone.
 */
bool snk_topology_has_changed_since(snk_topology *topology, const snk_redis_call *call);

/* Names the server for a slot, for as long as it is; calls to one server may delay each other, others do not. */
uint32_t snk_topology_part(snk_topology *topology, uint16_t slot);

/* What is known of the connections to the servers with keys, taken together. */
typedef struct snk_topology_state {
    bool connected;    /* to all of them that were ever needed */
    uint64_t connects; /* to any of them */
    uint64_t servers;  /* that were ever connected */
    uint64_t failures;
    uint64_t in_flight;
} snk_topology_state;
void snk_topology_describe(snk_topology *topology, snk_topology_state *state_out);
/*
 * Gives the connection to the one master up (snk_redis_reconnect); in a cluster those to servers that did not answer when
 * they were last asked for a sign of life (pulse.h).
 */
void snk_topology_reconnect(snk_topology *topology);

/* The client of the one server, with SINGLE; else NULL. For sleeping on it (snk_redis_sleep). */
snk_redis *snk_topology_alone(const snk_topology *topology);

/* Whether the server for a slot knows SPUBLISH and SSUBSCRIBE: in a cluster, from Redis 7 on. */
bool snk_topology_is_sharded(snk_topology *topology, uint16_t slot);

/* A channel to listen on: on the server for `slot`, and after that on the one that takes its place. */
typedef struct snk_topology_channel {
    const char *name;
    size_t length;
    uint16_t slot;
    bool sharded; /* SSUBSCRIBE, where the server knows it (from Redis 7 on); cluster only */
} snk_topology_channel;

/* As the functions of these names in redis.h. The confirmation comes again whenever the channel has moved. */
sneck_status snk_topology_subscribe(snk_topology *topology, const snk_topology_channel *channel, sneck_error *error);
void snk_topology_unsubscribe(snk_topology *topology, const snk_topology_channel *channel);
bool snk_topology_is_subscribed(snk_topology *topology, const snk_topology_channel *channel);
bool snk_topology_await_subscribed(snk_topology *topology, const snk_topology_channel *channel, int64_t until_ns);

/*
 * Calls `visit` for each server that has keys now, until it returns something else than SNECK_OK, and returns that.
 * `*changed_out`: who serves what has changed meanwhile, so that keys may have been missed.
 */
sneck_status snk_topology_visit(snk_topology *topology, sneck_status (*visit)(void *context, snk_redis *redis),
                                void *context, bool *changed_out, sneck_error *error);

/* Closing in steps, as in redis.h. */
void snk_topology_begin_close(snk_topology *topology);
void snk_topology_close(snk_topology *topology);
void snk_topology_abandon(snk_topology *topology);

#endif
