/*
 * TLS by OpenSSL: version 1.2 or later, chain and host name checked unless the configuration says otherwise. Its
 * sockets never raise SIGPIPE. One session is not for two threads at once: the wire has a lock for it.
 */
#ifndef SNK_REDIS_TLS_H
#define SNK_REDIS_TLS_H

#include <sys/types.h>

#include <openssl/types.h>

#include "redis/redis.h"

sneck_status snk_redis_tls_context(const snk_redis_tls *tls, SSL_CTX **context_out, sneck_error *error);
void snk_redis_tls_context_free(SSL_CTX *context);

typedef struct snk_redis_tls_peer {
    SSL_CTX *context;
    const char *host;  /* whose certificate it must be, and what SNI says */
    const char *where; /* for messages; stays as long as the session */
    bool verify;
    int fd;      /* borrowed */
    int stop_fd; /* readable: give up */
    int64_t until_ns;
} snk_redis_tls_peer;

/* Greets the server. The session is freed by snk_redis_tls_free, which sends nothing. */
sneck_status snk_redis_tls_connect(const snk_redis_tls_peer *peer, SSL **session_out, sneck_error *error);
void snk_redis_tls_free(SSL *session);

/* As send and recv without waiting: how many bytes, 0 when it would have to wait, -1 when the connection is over. */
ssize_t snk_redis_tls_send(SSL *session, const char *data, size_t length, sneck_error *error);
ssize_t snk_redis_tls_receive(SSL *session, char *data, size_t size, sneck_error *error);

/* True when bytes have been received that were not taken yet. */
bool snk_redis_tls_has_pending(const SSL *session);

/* True when the peer has ended the session. Takes nothing out of the stream. */
bool snk_redis_tls_is_over(SSL *session);

#endif
