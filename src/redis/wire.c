#include "redis/wire.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "redis/dial.h"
#include "redis/tls.h"

#define POLL_MS_MAX 60000

sneck_status snk_redis_wire_init(snk_redis_wire *wire, sneck_error *error)
{
    *wire = (snk_redis_wire){ .fd = -1 };
    if (pthread_mutex_init(&wire->tls_mutex, NULL) != 0)
        return snk_fail(error, SNECK_NO_MEMORY, 0, "redis: no mutex");
    return SNECK_OK;
}

void snk_redis_wire_deinit(snk_redis_wire *wire)
{
    snk_redis_wire_close(wire);
    pthread_mutex_destroy(&wire->tls_mutex);
}

static int fd_of(const snk_redis_wire *wire)
{
    /* Relaxed: who uses the wire got it through the connection's mutex. */
    return atomic_load_explicit(&wire->fd, memory_order_relaxed);
}

sneck_status snk_redis_wire_open(snk_redis_wire *wire, const snk_redis_settings *settings, int stop_fd,
                                 int64_t until_ns, sneck_error *error)
{
    int fd;
    wire->where = settings->where;
    sneck_status status = snk_redis_dial(settings, stop_fd, until_ns, &fd, error);
    if (status != SNECK_OK)
        return status;
    if (settings->tls != NULL) {
        snk_redis_tls_peer peer = { .context = settings->tls,
                                    .host = settings->host,
                                    .where = settings->where,
                                    .verify = settings->tls_verify,
                                    .fd = fd,
                                    .stop_fd = stop_fd,
                                    .until_ns = until_ns };
        status = snk_redis_tls_connect(&peer, &wire->tls, error);
        if (status != SNECK_OK) {
            close(fd);
            return status;
        }
    }
    atomic_store_explicit(&wire->fd, fd, memory_order_relaxed);
    return SNECK_OK;
}

void snk_redis_wire_close(snk_redis_wire *wire)
{
    snk_redis_tls_free(wire->tls);
    wire->tls = NULL;
    int fd = atomic_exchange_explicit(&wire->fd, -1, memory_order_relaxed);
    if (fd >= 0)
        close(fd);
}

void snk_redis_wire_hang_up(snk_redis_wire *wire)
{
    /* Only the receiving side: ending the sending side would deliver what is still queued. */
    shutdown(fd_of(wire), SHUT_RD);
}

static ssize_t fail_errno(const snk_redis_wire *wire, const char *what, sneck_error *error)
{
    int cause = errno;
    snk_fail(error, SNECK_UNAVAILABLE, cause, "%s: %s: %s", wire->where, what, snk_errno_text(cause));
    return -1;
}

static bool is_passing(int cause)
{
    return cause == EAGAIN || cause == EINTR;
}

ssize_t snk_redis_wire_send(snk_redis_wire *wire, const char *data, size_t length, sneck_error *error)
{
    if (wire->tls != NULL) {
        pthread_mutex_lock(&wire->tls_mutex);
        ssize_t count = snk_redis_tls_send(wire->tls, data, length, error);
        pthread_mutex_unlock(&wire->tls_mutex);
        return count;
    }
    ssize_t count = send(fd_of(wire), data, length, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0)
        return is_passing(errno) ? 0 : fail_errno(wire, "sending failed", error);
    return count;
}

static ssize_t receive_plain(const snk_redis_wire *wire, char *data, size_t size, int flags, sneck_error *error)
{
    ssize_t count = recv(fd_of(wire), data, size, flags);
    if (count == 0) {
        snk_fail(error, SNECK_UNAVAILABLE, 0, "%s: the server closed the connection", wire->where);
        return -1;
    }
    if (count < 0)
        return is_passing(errno) ? 0 : fail_errno(wire, "receiving failed", error);
    return count;
}

ssize_t snk_redis_wire_receive_now(snk_redis_wire *wire, char *data, size_t size, sneck_error *error)
{
    if (wire->tls == NULL)
        return receive_plain(wire, data, size, MSG_DONTWAIT, error);
    pthread_mutex_lock(&wire->tls_mutex);
    ssize_t count = snk_redis_tls_receive(wire->tls, data, size, error);
    pthread_mutex_unlock(&wire->tls_mutex);
    return count;
}

ssize_t snk_redis_wire_receive(snk_redis_wire *wire, char *data, size_t size, int64_t until_ns, sneck_error *error)
{
    /* One system call instead of two: the socket itself gives up after SNK_REDIS_TICK_NS (see dial.c). */
    if (wire->tls == NULL && until_ns - snk_now_ns() > SNK_REDIS_TICK_NS)
        return receive_plain(wire, data, size, 0, error);
    if (wire->tls != NULL) {
        /* What OpenSSL has read ahead does not show on the socket. */
        ssize_t count = snk_redis_wire_receive_now(wire, data, size, error);
        if (count != 0)
            return count;
    }
    if (!snk_redis_poll(fd_of(wire), POLLIN, -1, until_ns))
        return 0;
    return snk_redis_wire_receive_now(wire, data, size, error);
}

bool snk_redis_wire_is_over(snk_redis_wire *wire)
{
    char byte;
    ssize_t count = recv(fd_of(wire), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (count <= 0)
        return count == 0 || !is_passing(errno);
    if (wire->tls == NULL)
        return false;
    pthread_mutex_lock(&wire->tls_mutex);
    bool over = snk_redis_tls_is_over(wire->tls);
    pthread_mutex_unlock(&wire->tls_mutex);
    return over;
}

bool snk_redis_wire_has_pending(snk_redis_wire *wire)
{
    if (wire->tls == NULL)
        return false;
    pthread_mutex_lock(&wire->tls_mutex);
    bool pending = snk_redis_tls_has_pending(wire->tls);
    pthread_mutex_unlock(&wire->tls_mutex);
    return pending;
}

int snk_redis_poll_ms(int64_t until_ns)
{
    int64_t left_ns = until_ns - snk_now_ns();
    if (left_ns <= 0)
        return 0;
    if (left_ns >= POLL_MS_MAX * SNK_NS_PER_MS)
        return POLL_MS_MAX;
    return (int)((left_ns + SNK_NS_PER_MS - 1) / SNK_NS_PER_MS);
}

bool snk_redis_poll(int fd, short events, int stop_fd, int64_t until_ns)
{
    struct pollfd polled[] = { { .fd = fd, .events = events }, { .fd = stop_fd, .events = POLLIN } };
    for (;;) {
        int timeout_ms = snk_redis_poll_ms(until_ns);
        int count = poll(polled, 2, timeout_ms);
        if (polled[1].revents != 0 && count > 0)
            return false;
        if (count > 0)
            return true;
        if (count == 0 && snk_now_ns() >= until_ns)
            return false;
        if (count < 0 && errno != EINTR)
            return false;
    }
}
