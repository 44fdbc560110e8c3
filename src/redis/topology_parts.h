/*
 * The inside of a topology.
 *
 * Order of locks: topology.mutex, then those of a server's client (pubsub.mutex; subscriptions are changed under it).
 * It is never held during network I/O or a callback.
 */
#ifndef SNK_REDIS_TOPOLOGY_PARTS_H
#define SNK_REDIS_TOPOLOGY_PARTS_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/limits.h"
#include "base/list.h"
#include "redis/follow.h"
#include "redis/plan.h"
#include "redis/topology.h"

/* ---- nodes.c: the servers ---- */

typedef enum snk_node_kind {
    SNK_NODE_SERVER,
    SNK_NODE_SENTINEL
} snk_node_kind;

typedef struct snk_node {
    snk_topology *topology; /* borrowed; unchanging, as are the next four */
    snk_node_kind kind;
    uint16_t index; /* in topology.nodes */
    snk_redis_address address;
    snk_redis *redis; /* owned */
    /* Under topology.mutex: */
    unsigned references;    /* who uses it now; it is closed without any */
    bool mapped;            /* something is known to live there: it stays */
    bool retired;           /* another one has taken its place: it ends when nobody uses it */
    int64_t given_up_at_ns; /* retired: when what it has not answered is given up; SNK_NEVER_NS: that is done */
    int64_t used_at_ns;     /* when the last reference went */
    unsigned replicas;      /* that it should have, as far as is known */
    bool is_cut;            /* its connection was cut, and is not there again */

    atomic_bool silent;       /* it is connected, and did not answer when it was last asked for a sign of life */
    _Atomic unsigned version; /* as snk_redis_server.version; 0: not known. For itself only */
    snk_commit commit;        /* those who commit there */
    atomic_bool probing;      /* `probe` is on its way */
    snk_redis_call probe;
} snk_node;

/* The server at that address, with a reference; its client is made if there is none. NULL with `error`. */
snk_node *snk_node_get(snk_topology *topology, snk_node_kind kind, const snk_redis_address *address,
                       sneck_error *error);
/* The same without a reference, and NULL where there is no client yet. */
snk_node *snk_node_find_locked(snk_topology *topology, snk_node_kind kind, const snk_redis_address *address);
static inline snk_node *snk_node_ref_locked(snk_node *node)
{
    if (node != NULL)
        node->references++;
    return node;
}
/* The server of that index with a reference, if something is known to live there; else NULL. */
snk_node *snk_node_of_map(snk_topology *topology, size_t index);
/* For SINGLE, before anybody else knows the topology; `address` NULL: the socket of the plan. */
snk_node *snk_node_make_only(snk_topology *topology, const snk_redis_address *address, sneck_error *error);
/* NULL is a no-op. */
void snk_node_unref(snk_node *node);
void snk_node_unref_locked(snk_node *node);
/*
 * Nothing more is sent to it. What is on its way is given up at once where there is no connection; otherwise it has a
 * moment to be answered, since a server that was replaced on purpose answers. On the scout's thread, without the mutex.
 */
void snk_node_retire(snk_node *node);
/*
 * True when there is no connection and the last attempt to make one failed, for the reason in `why`: whoever is in a
 * hurry need not wait for the next one, which is seen to.
 */
bool snk_node_is_down(snk_node *node, sneck_error *why);
/* The same for all servers of the topology, by their index; how many of those that something lives on are down. */
size_t snk_nodes_find_down(snk_topology *topology, bool down[SNK_REDIS_NODES_MAX]);
/*
 * Closes those that nobody needs, and gives up what retired ones have not answered in time; returns when to do so again.
 * Only on the scout's thread, or when it is gone.
 */
int64_t snk_nodes_sweep(snk_topology *topology);

/*
 * Has the listener told when a server that something lives on is cut off (`why`), and when none is any more: because it is
 * back, or because another one has taken its place. Without the mutex.
 */
void snk_nodes_tell_cuts(snk_topology *topology, const sneck_error *why);

/* ---- What differs between the kinds ---- */

typedef struct snk_topology_ops {
    /* The server for a slot, as far as is known, or NULL. */
    snk_node *(*route_locked)(snk_topology *topology, uint16_t slot);
    /* Finds out who serves what; `idly`: without a reason to doubt it. On the scout's thread, without the mutex. */
    sneck_status (*look)(snk_topology *topology, bool idly, sneck_error *error);
    /* A server has said that the slot is on `node` from now on. NULL where nothing moves so. */
    void (*moved_locked)(snk_topology *topology, uint16_t slot, snk_node *node);
    int64_t idle_ns; /* how often to look without a reason, for what nobody tells; SNK_NEVER_NS: not at all */
} snk_topology_ops;

extern const snk_topology_ops snk_topology_single;
extern const snk_topology_ops snk_topology_replicated;
extern const snk_topology_ops snk_topology_sentinel;
extern const snk_topology_ops snk_topology_cluster;

/* ---- The topology ---- */

struct snk_topology {
    const snk_topology_ops *ops; /* unchanging, as is the plan */
    snk_plan plan;

    /*
     * Changed under the mutex. Atomic for abandon, which reads them in a forked child: an entry is taken out before its
     * node is freed.
     */
    _Atomic(snk_node *) nodes[SNK_REDIS_NODES_MAX];

    pthread_mutex_t mutex;
    pthread_cond_t changed; /* with mutex, CLOCK_MONOTONIC: a look has ended, a subscription has moved, closing */
    /* Under mutex: */
    bool closing;
    bool is_told_cut;                       /* the listener knows that a server is cut off */
    snk_node *master;                       /* a reference; all but CLUSTER */
    struct snk_map *map;                    /* owned; CLUSTER */
    uint64_t version;                       /* of what is known about who serves what */
    bool is_displaced;                      /* a bit of the next is set */
    uint8_t displaced[SNK_REDIS_SLOTS / 8]; /* slots that another server serves than before; not told yet */
    sneck_error trouble;                    /* why the last look failed; SNECK_OK when it did not */
    snk_follows follows;                    /* subscriptions */
    unsigned guests;                        /* threads in drive and await: they must be gone before it is freed */
    uint64_t random;
    /* The scout's, under mutex: */
    pthread_t scout;
    bool scout_started;
    bool look_wanted;
    bool look_urgently;   /* somebody knows that there is something to see */
    int64_t wanted_at_ns; /* when somebody last had a reason to doubt what is known */
    uint64_t looks;       /* that have ended */
    unsigned looks_in_row;
    int64_t looked_at_ns; /* when the last one ended */
    int64_t look_after_ns;
};

/* Another server serves the slot than before: the scout tells. */
void snk_topology_displace_locked(snk_topology *topology, uint16_t slot);

/* A thread is inside, so that closing waits for it. */
void snk_topology_enter(snk_topology *topology);
void snk_topology_leave(snk_topology *topology);

static inline snk_node *snk_topology_route_locked(snk_topology *topology, uint16_t slot)
{
    return topology->ops->route_locked(topology, slot);
}

void snk_topology_log(const snk_topology *topology, sneck_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- scout.c: the thread that looks ---- */

/* Who serves what should be looked at anew: something does not work where it should. */
void snk_scout_want_locked(snk_topology *topology);
void snk_scout_want(snk_topology *topology);
/* The same without a pause: somebody said that it has changed. */
void snk_scout_urge(snk_topology *topology);
/* Has it looked at, and waits until a look has ended that was not yet over at `looks`, until `until_ns` at most. */
void snk_scout_await_locked(snk_topology *topology, uint64_t looks, int64_t until_ns);
/* Waits for topology.changed. The mutex is held. */
void snk_topology_sleep_locked(snk_topology *topology, int64_t until_ns);
void snk_scout_stop(snk_topology *topology);

#endif
