/*
 * Inside a link: its state, and the library below it, of which everything is done under link.mutex.
 *
 * Who waits for the socket: the link's thread, as a rule. While one trip follows the other, each alone, that would cost
 * every one of them a wake-up of that thread and one of the caller; then it stands by instead, away from the socket, and
 * the caller of a trip sends and receives for itself. It stands by for STANDBY_MS and looks then whether there were trips
 * meanwhile; whoever leaves something for it (other trips in flight, news to announce, claims that wait for news) calls
 * it at once. Two threads at the socket harm nobody: the second one finds nothing there.
 */
#ifndef SNK_STORE_ZOOKEEPER_DRIVE_H
#define SNK_STORE_ZOOKEEPER_DRIVE_H

#include <pthread.h>

#include "store/zookeeper/flight.h"

struct snk_zk_link {
    /* Set when it is opened. */
    char *hosts; /* owned */
    char *login; /* owned; NULL: none */
    int session_ms;
    int64_t greeting_ns; /* how long a server may take to accept a connection and to greet, at first */
    snk_zk_listener listener;
    pthread_t thread;
    int wake_fd;

    pthread_mutex_t mutex;  /* guards the rest, and every call to the library; nothing else is locked under it */
    pthread_cond_t changed; /* of `connected` and `denied` */
    zhandle_t *handle;      /* NULL: none yet */
    uint64_t session;       /* counts sessions, from 1; 0: none yet */
    int64_t session_id;     /* the server's */
    int64_t session_ns;
    bool connected;
    bool expired; /* the handle is of no use any more */
    bool denied;
    bool closing;
    int pause_ms;          /* before the next attempt to connect; grows with each */
    int64_t dialed_at_ns;  /* since when a server is being connected to; 0: none is */
    int64_t dial_limit_ns; /* how long that may take; grows with each that took too long */
    uint64_t connects;     /* so far */
    uint64_t failures;     /* connections that were lost, and attempts that failed */
    bool announce;         /* a connection is to be announced */
    bool announce_loss;    /* ... and before it, that the one before was lost */
    bool stands_by;        /* the link's thread is away from the socket */
    bool caller_drives;    /* ... and the caller of a trip is there instead */
    bool was_alone;        /* the last trip that left found no other under way */
    uint64_t trips;        /* so far */
    uint64_t trips_served; /* of these, before the link's thread last went to the socket */
    snk_zk_flights flights;
    snk_zk_fired *fired; /* owned, and so are the paths; watches that have fired and were not announced */
    size_t fired_count;
    size_t fired_room;
    _Atomic int socket; /* for a child of fork() to close */
};

/* Once a process, before anything else. */
void snk_zk_drive_prepare(void);

void snk_zk_session_start_locked(snk_zk_link *link);
void snk_zk_session_end_locked(snk_zk_link *link);

/* Gives the mutex back, and wakes those whose answers came meanwhile. */
void snk_zk_unlock_and_wake(snk_zk_link *link);

/* Gives up the connection that there is; every trip under way is cut. */
void snk_zk_hang_up_locked(snk_zk_link *link);

/* Waits until there is something to receive or to send, so long at most, and does it; the mutex is given back meanwhile. */
void snk_zk_drive_locked(snk_zk_link *link, int longest_ms);
/* The same for the caller of a trip, until that is answered; one that takes long is left to the link's thread. */
void snk_zk_drive_for_locked(snk_zk_link *link, const snk_zk_flight *flight);
/* The link's thread stays away from the socket as long as callers do its work. */
void snk_zk_stand_by_locked(snk_zk_link *link);

/* What the library says of sessions and watches. */
void snk_zk_on_event(zhandle_t *handle, int type, int state, const char *path, void *context);

#endif
