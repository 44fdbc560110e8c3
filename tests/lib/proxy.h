/*
 * A TCP proxy that does harm on request, in threads of its own.
 */
#ifndef SNK_TEST_PROXY_H
#define SNK_TEST_PROXY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

typedef enum proxy_mode {
    PROXY_PASS,
    PROXY_CUT_BEFORE,     /* a matching request is not forwarded, and the client is cut off */
    PROXY_CUT_AFTER,      /* a matching request is forwarded, its reply is awaited and dropped, the client is cut off */
    PROXY_STALL_REQUESTS, /* requests stay here */
    PROXY_STALL_REPLIES,  /* replies stay here */
    PROXY_TRICKLE         /* one byte a time, both ways */
} proxy_mode;

#define PROXY_CONNECTIONS_MAX 256 /* at a time */

/* A thread for a connection. */
typedef struct proxy_slot {
    pthread_t thread;
    bool taken;          /* there is a thread to be joined; only the accepting thread looks, and proxy_stop after it */
    atomic_bool is_over; /* the thread has nothing left to do */
} proxy_slot;

typedef struct fault_proxy {
    int port; /* listens here, on 127.0.0.1 */
    int target_port;
    int listen_fd;
    pthread_t thread;
    proxy_slot slots[PROXY_CONNECTIONS_MAX];
    _Atomic int mode;
    _Atomic(const char *) match; /* what a request must contain to be cut; "" matches all; borrowed */
    _Atomic int request_delay_ms;
    _Atomic int reply_delay_ms;
    _Atomic int connections; /* accepted so far */
    _Atomic int resets;      /* connections that the client ended by a reset */
    _Atomic int ends;        /* connections that the client ended in order */
    _Atomic int cuts;        /* done so far */
    _Atomic int round_trips; /* so far: requests that came when all before them on their connection were answered */
    _Atomic long bytes;      /* so far, both ways */
    _Atomic int dead_before; /* connections with a lower number carry nothing any more, and stay open */
    atomic_bool stopping;
} fault_proxy;

bool proxy_start(fault_proxy *proxy, int target_port);
void proxy_stop(fault_proxy *proxy);

/* Sets the mode, with the text that requests must contain, which stays where it is. In force when it returns. */
void proxy_harm(fault_proxy *proxy, proxy_mode mode, const char *match);

/* The connections that are there now carry nothing any more, though both ends stay open; later ones work. */
void proxy_kill_silently(fault_proxy *proxy);

#endif
