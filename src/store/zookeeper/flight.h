/* One trip on its way: the answers are written here by the link's thread, however long they take. */
#ifndef SNK_STORE_ZOOKEEPER_FLIGHT_H
#define SNK_STORE_ZOOKEEPER_FLIGHT_H

#include "store/zookeeper/link.h"

/* Room for the path of a node: the lock's root, its escaped name, and the node itself. */
#define SNK_ZK_PATH_SIZE 2816

typedef struct snk_zk_seat {
    snk_zk_flight *flight;
    snk_zk_reply *reply;
    zoo_op_t ops[2]; /* of a transaction of two */
    zoo_op_result_t results[2];
    struct Stat stat;
    char *path_buffer; /* owned; where the library writes the path of a node made in a transaction */
} snk_zk_seat;

/* All of one link; under link.mutex. */
typedef struct snk_zk_flights {
    snk_zk_flight *landed; /* answered, and whoever waits for them is to be woken */
    uint64_t under_way;    /* how many have left and are not answered yet */
} snk_zk_flights;

struct snk_zk_flight {
    _Atomic uint32_t landed;  /* 1: every answer is there */
    _Atomic uint32_t owners;  /* who asked, and the library while it owes an answer */
    _Atomic uint32_t pending; /* answers owed */
    size_t count;
    snk_zk_flight *next;     /* among those that have landed */
    snk_zk_flights *flights; /* among which it is */
    snk_zk_reply *replies;   /* owned */
    snk_zk_seat *seats;      /* owned */
};

/* NULL: out of memory. */
snk_zk_flight *snk_zk_flight_new(size_t count, snk_zk_flights *flights);
void snk_zk_flight_unref(snk_zk_flight *flight);

/* One answer less to wait for. With the last one it is put among those that have landed, and belongs to them. */
void snk_zk_flight_arrive(snk_zk_flight *flight);
/*
 * Wakes who waits for one of these, and lets go of them. Not under link.mutex: whoever is woken wants it next.
 */
void snk_zk_flights_wake(snk_zk_flight *landed);

/* Hands one request to the library; link.mutex is held. What cannot be sent is answered at once. */
void snk_zk_seat_send(snk_zk_seat *seat, zhandle_t *handle, const snk_zk_request *request, const struct ACL_vector *acl,
                      watcher_fn watcher, void *context);

#endif
