/* Inside a link: its state, and the library below it, of which everything is done under link.mutex. */
#ifndef SNK_STORE_ZOOKEEPER_DRIVE_H
#define SNK_STORE_ZOOKEEPER_DRIVE_H

#include <pthread.h>

#include "store/zookeeper/flight.h"

struct snk_zk_link {
    /* Set when it is opened. */
    char *hosts; /* owned */
    char *login; /* owned; NULL: none */
    int session_ms;
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
    bool announce;           /* a connection is to be announced */
    snk_zk_flight *arrivals; /* answered, and whoever waits for them is to be woken */
    char **fired;            /* owned; paths whose watches have fired and were not announced */
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

/* Waits until there is something to receive or to send, and does it; the mutex is given back meanwhile. */
void snk_zk_drive_locked(snk_zk_link *link);

/* What the library says of sessions and watches. */
void snk_zk_on_event(zhandle_t *handle, int type, int state, const char *path, void *context);

#endif
