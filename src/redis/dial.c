#include "redis/dial.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "redis/resolve.h"
#include "redis/wire.h"

#define KEEPALIVE_INTERVAL_S 5
#define KEEPALIVE_PROBES 3

static void set_option(int fd, int level, int option, int value)
{
    /* Each of these is an improvement only: a kernel that lacks one still works. */
    (void)setsockopt(fd, level, option, &value, sizeof value);
}

static void set_tcp_options(int fd, const snk_redis_settings *settings)
{
    int64_t silence_ms = settings->command_timeout_ns / SNK_NS_PER_MS;
    set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, (int)(SNK_REDIS_KEEPALIVE_NS / SNK_NS_PER_S));
    set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S);
    set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_PROBES);
    set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, silence_ms > INT32_MAX ? INT32_MAX : (int)silence_ms);
}

static sneck_status fail_connect(const snk_redis_settings *settings, int cause, sneck_error *error)
{
    return snk_fail(error, SNECK_UNAVAILABLE, cause, "%s: cannot connect: %s", settings->where, snk_errno_text(cause));
}

/* Connects a new socket, or returns -1 and its errno in *cause_out. */
static int connect_socket(const struct sockaddr *address, socklen_t length, int stop_fd, int64_t until_ns,
                          int *cause_out)
{
    *cause_out = 0;
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        *cause_out = errno;
        return -1;
    }
    struct linger linger = { .l_onoff = 1, .l_linger = 0 };
    if (setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger) != 0 || connect(fd, address, length) != 0)
        *cause_out = errno;
    if (*cause_out == EINPROGRESS) {
        socklen_t size = sizeof *cause_out;
        if (!snk_redis_poll(fd, POLLOUT, stop_fd, until_ns))
            *cause_out = ETIMEDOUT;
        else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, cause_out, &size) != 0)
            *cause_out = errno;
    }
    if (*cause_out == 0)
        return fd;
    close(fd);
    return -1;
}

/* The socket blocks, but for SNK_REDIS_TICK_NS only; see snk_redis_wire_receive. */
static void set_blocking(int fd)
{
    struct timeval tick = { .tv_usec = SNK_REDIS_TICK_NS / SNK_NS_PER_US };
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tick, sizeof tick);
    int flags = fcntl(fd, F_GETFL);
    (void)fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
}

static sneck_status dial_unix(const snk_redis_settings *settings, int stop_fd, int64_t until_ns, int *fd_out,
                              sneck_error *error)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    snk_copy_text(address.sun_path, sizeof address.sun_path, settings->unix_path);
    int cause;
    int fd = connect_socket((const struct sockaddr *)&address, sizeof address, stop_fd, until_ns, &cause);
    if (fd < 0)
        return fail_connect(settings, cause, error);
    *fd_out = fd;
    return SNECK_OK;
}

static sneck_status dial_host(const snk_redis_settings *settings, int stop_fd, int64_t until_ns, int *fd_out,
                              sneck_error *error)
{
    struct addrinfo *addresses = NULL;
    sneck_status status = snk_redis_resolve(settings->host, settings->port, stop_fd, until_ns, &addresses, error);
    if (status != SNECK_OK)
        return status;
    int untried = 0;
    for (const struct addrinfo *address = addresses; address != NULL; address = address->ai_next)
        untried++;
    int cause = EADDRNOTAVAIL;
    int fd = -1;
    for (const struct addrinfo *address = addresses; address != NULL && fd < 0; address = address->ai_next) {
        /* An address that does not answer must leave time for those after it. */
        int64_t now = snk_now_ns();
        int64_t share_ns = until_ns > now ? (until_ns - now) / untried-- : 0;
        fd = connect_socket(address->ai_addr, address->ai_addrlen, stop_fd, now + share_ns, &cause);
    }
    freeaddrinfo(addresses);
    if (fd < 0)
        return fail_connect(settings, cause, error);
    set_tcp_options(fd, settings);
    *fd_out = fd;
    return SNECK_OK;
}

sneck_status snk_redis_dial(const snk_redis_settings *settings, int stop_fd, int64_t until_ns, int *fd_out,
                            sneck_error *error)
{
    sneck_status status = settings->unix_path[0] != '\0' ? dial_unix(settings, stop_fd, until_ns, fd_out, error)
                                                         : dial_host(settings, stop_fd, until_ns, fd_out, error);
    if (status == SNECK_OK)
        set_blocking(*fd_out);
    return status;
}
