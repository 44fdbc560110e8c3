/*
 * A session with a ZooKeeper ensemble: requests go out together, and come back answered or not. It knows nothing of locks.
 *
 * The C client of the Apache project, in its form without threads, is driven by a thread of ours, or by whoever asks while
 * nobody else does (drive.h); everything that is done to it happens under link.mutex. Who asks writes to the socket on
 * its own thread in any case.
 *
 * What ZooKeeper promises and this builds on: requests of one session are executed in the order they were sent, and after
 * a reconnect nothing that was sent before it is executed any more (the old connection is closed, or answered with
 * "session moved").
 */
#ifndef SNK_STORE_ZOOKEEPER_LINK_H
#define SNK_STORE_ZOOKEEPER_LINK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zookeeper/zookeeper.h>

#include "sneck.h"
#include "store/store.h"

#define SNK_ZK_TRIP_MAX 64

typedef enum snk_zk_verb {
    SNK_ZK_MAKE,           /* a node that stays; ZNODEEXISTS is no error */
    SNK_ZK_MAKE_CONTAINER, /* one that the server takes away when its last child has gone */
    SNK_ZK_ENTER,          /* an ephemeral sequential node; the path is what it begins with */
    SNK_ZK_ENTER_MARKED,   /* the same, and its parent `other` is marked as changed in the same transaction */
    SNK_ZK_ENTER_BESIDE,   /* an ephemeral node of exactly that path, while the node `other` is set to `other_data` */
    SNK_ZK_GET,
    SNK_ZK_GET_WATCH, /* told when the node changes or goes */
    SNK_ZK_SET,
    SNK_ZK_STAT,
    SNK_ZK_LIST,
    SNK_ZK_LIST_WATCH, /* told when a child comes or goes; of a node that cannot have any: when it goes */
    SNK_ZK_DELETE,
    SNK_ZK_SETTLE, /* sets `path` and deletes `other`, both or neither */
    SNK_ZK_SYNC    /* what comes after it sees everything that was done before it anywhere */
} snk_zk_verb;

/* Texts are borrowed until the trip has left. */
typedef struct snk_zk_request {
    snk_zk_verb verb;
    const char *path;
    const char *other;
    const char *data;       /* ends in NUL; NULL: empty */
    const char *other_data; /* ends in NUL; ENTER_BESIDE */
    int version;            /* SET, SETTLE: what the data's version must be; -1: any */
} snk_zk_request;

typedef struct snk_zk_reply {
    int rc; /* of zookeeper.h */
    struct Stat
        stat; /* ENTER: of the new node (of ENTER_MARKED and ENTER_BESIDE czxid alone); SET, GET, STAT, LIST: of the node */
    char *text;   /* owned; ENTER: the path it got; GET: the data, with a NUL after it */
    char **names; /* owned; LIST */
    size_t count;
} snk_zk_reply;

typedef enum snk_zk_outcome {
    SNK_ZK_ANSWERED,      /* every request has an answer, good or bad */
    SNK_ZK_NOT_SENT,      /* nothing left: there was no connection in time */
    SNK_ZK_CUT,           /* some request was not answered: it may have been executed */
    SNK_ZK_OTHER_SESSION, /* nothing left: the session that it was meant for is over */
    SNK_ZK_NO_MEMORY      /* nothing left */
} snk_zk_outcome;

typedef struct snk_zk_flight snk_zk_flight;

typedef struct snk_zk_trip {
    snk_zk_request requests[SNK_ZK_TRIP_MAX];
    size_t count;
    uint64_t session; /* 0: whichever there is */
    int64_t until_ns;
} snk_zk_trip;

/* What came back. snk_zk_trip_end gives it back whatever the outcome. */
typedef struct snk_zk_back {
    snk_zk_flight *flight;
    snk_zk_reply *replies; /* as many as there were requests; NULL unless ANSWERED or CUT */
    uint64_t session;      /* under which it ran */
    uint64_t connection;   /* over which; counted from 1 */
} snk_zk_back;

/* A watch that has fired: the node has gone, or changed. What else happened to it is known only within one connection. */
typedef struct snk_zk_fired {
    char *path;
    bool has_gone;
    uint64_t connection;
} snk_zk_fired;

typedef struct snk_zk_listener {
    void (*watched)(void *context, const snk_zk_fired *fired);
    void (*lost)(void *context);      /* the connection; the session may go on */
    void (*connected)(void *context); /* again: what was said meanwhile may have been missed */
    void (*expired)(void *context, uint64_t session);
    bool (*is_waiting)(void *context); /* for a watch to fire; called on any thread, and locks nothing */
    void *context;
} snk_zk_listener;

typedef struct snk_zk_config {
    const char *hosts;        /* h1:p1,h2:p2 */
    const char *login;        /* "user:password", or NULL: nodes are open to all */
    int session_ms;           /* asked for */
    int64_t timeout_ns;       /* how long callers wait for a connection */
    snk_zk_listener listener; /* but for is_waiting called on the link's thread with nothing locked */
} snk_zk_config;

typedef struct snk_zk_link snk_zk_link;

sneck_status snk_zk_link_open(const snk_zk_config *config, snk_zk_link **link_out, sneck_error *error);
/* Ends the session and everything in it; no trip is under way. NULL is a no-op. */
void snk_zk_link_close(snk_zk_link *link);
/* In a child of fork(). */
void snk_zk_link_abandon(snk_zk_link *link);

/* Adds a request; there is room for SNK_ZK_TRIP_MAX. Returns its index. */
size_t snk_zk_ask(snk_zk_trip *trip, snk_zk_verb verb, const char *path);

/*
 * Sends all requests of a trip at once, and waits for the answers. A listener may do so too, on the link's thread: what
 * else is heard meanwhile is announced after it has returned, so its trip should have little time.
 */
snk_zk_outcome snk_zk_travel(snk_zk_link *link, const snk_zk_trip *trip, snk_zk_back *back);
void snk_zk_trip_end(snk_zk_back *back);

/* Sets the data of a node, if there is a connection; whether that is done is for nobody to know. */
void snk_zk_post(snk_zk_link *link, uint64_t session, const char *path, const char *data);
/* Sends something that keeps the session alive, if there is a connection. */
void snk_zk_touch(snk_zk_link *link);

/* The time limit that the server has set on the session; 0 before there was one. */
int64_t snk_zk_session_ns(snk_zk_link *link);
/* The server's number of a session of ours; 0 when it is not the present one. */
int64_t snk_zk_session_id(snk_zk_link *link, uint64_t session);
/* What is known of the connection. */
void snk_zk_link_describe(snk_zk_link *link, snk_store_state *state_out);
/* Gives the connection up; the session goes on with another one. */
void snk_zk_link_reconnect(snk_zk_link *link);
/* Why there is no connection, for messages. */
const char *snk_zk_trouble(snk_zk_link *link);

#endif
