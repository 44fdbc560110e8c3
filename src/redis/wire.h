/*
 * The bytes of one connection: TCP, a unix socket, or TLS on TCP. Closing it always resets (SO_LINGER 0): the kernel
 * must not deliver, seconds later, what we have given up.
 *
 * One thread may send while another receives; no two may do the same.
 */
#ifndef SNK_REDIS_WIRE_H
#define SNK_REDIS_WIRE_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "redis/settings.h"

typedef struct snk_redis_wire {
    _Atomic int fd;            /* -1: closed. Atomic for abandon, which reads it in a forked child. */
    const char *where;         /* borrowed from the settings of the server; for messages */
    SSL *tls;                  /* owned; NULL without TLS */
    pthread_mutex_t tls_mutex; /* around each use of `tls`, which is not for two threads; nothing else is taken in it */
} snk_redis_wire;

sneck_status snk_redis_wire_init(snk_redis_wire *wire, sneck_error *error);
void snk_redis_wire_deinit(snk_redis_wire *wire);

/* Connects, by `until_ns` and unless `stop_fd` becomes readable. The wire must be closed. */
sneck_status snk_redis_wire_open(snk_redis_wire *wire, const snk_redis_settings *settings, int stop_fd,
                                 int64_t until_ns, sneck_error *error);
void snk_redis_wire_close(snk_redis_wire *wire);

/* Wakes a thread that waits in receive, for good. Any thread may call it while the wire is open. */
void snk_redis_wire_hang_up(snk_redis_wire *wire);

/* How many bytes were taken; 0: none now, wait until it is writable; -1: the connection is over. */
ssize_t snk_redis_wire_send(snk_redis_wire *wire, const char *data, size_t length, sneck_error *error);

/*
 * Waits for bytes until `until_ns`, roughly (the kernel's timeout is coarse). How many there were; 0: none yet, or a
 * signal came; -1: the connection is over.
 */
ssize_t snk_redis_wire_receive(snk_redis_wire *wire, char *data, size_t size, int64_t until_ns, sneck_error *error);

/* The same without waiting. */
ssize_t snk_redis_wire_receive_now(snk_redis_wire *wire, char *data, size_t size, sneck_error *error);

/* True when TLS has bytes that the socket no longer shows. */
bool snk_redis_wire_has_pending(snk_redis_wire *wire);

/* True when the server has already ended the connection. Only while nobody receives. */
bool snk_redis_wire_is_over(snk_redis_wire *wire);

/* Waits for `events` of `fd`. False when it is too late or `stop_fd` (may be -1) became readable. */
bool snk_redis_poll(int fd, short events, int stop_fd, int64_t until_ns);

/* Milliseconds from now until then for poll(2), rounded up, 0 to a minute. */
int snk_redis_poll_ms(int64_t until_ns);

#endif
