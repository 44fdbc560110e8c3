#include "proxy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CHUNK 16384
#define POLL_MS 2

typedef struct proxied {
    fault_proxy *proxy;
    proxy_slot *slot;
    int client;
    int server;
    int number;
    bool is_asked; /* a request went on since the last reply */
} proxied;

static void sleep_ms(int ms)
{
    nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L }, NULL);
}

static int connect_target(int port)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static bool forward(const fault_proxy *proxy, int to, const char *data, size_t length)
{
    size_t step = proxy->mode == PROXY_TRICKLE ? 1 : length;
    for (size_t i = 0; i < length; i += step)
        if (send(to, data + i, step, MSG_NOSIGNAL) != (ssize_t)step)
            return false;
    return true;
}

static bool matches(const fault_proxy *proxy, const char *data, size_t length)
{
    const char *match = proxy->match;
    return memmem(data, length, match, strlen(match)) != NULL;
}

/* False: the connection is to be cut. */
static bool pass_request(proxied *pair, char *data, size_t length)
{
    fault_proxy *proxy = pair->proxy;
    sleep_ms(proxy->request_delay_ms);
    int mode = proxy->mode;
    bool cut = (mode == PROXY_CUT_BEFORE || mode == PROXY_CUT_AFTER) && matches(proxy, data, length);
    if (cut && mode == PROXY_CUT_BEFORE) {
        proxy->cuts++;
        return false;
    }
    if (!forward(proxy, pair->server, data, length))
        return false;
    if (!cut)
        return true;
    struct pollfd polled = { .fd = pair->server, .events = POLLIN };
    poll(&polled, 1, 5000);
    (void)recv(pair->server, data, CHUNK, 0);
    proxy->cuts++;
    return false;
}

static bool pass_reply(proxied *pair, const char *data, size_t length)
{
    sleep_ms(pair->proxy->reply_delay_ms);
    return forward(pair->proxy, pair->client, data, length);
}

static bool pass_from_client(proxied *pair, char data[CHUNK])
{
    ssize_t count = recv(pair->client, data, CHUNK, 0);
    if (count > 0) {
        pair->proxy->round_trips += !pair->is_asked;
        pair->proxy->bytes += count;
        pair->is_asked = true;
        return pass_request(pair, data, (size_t)count);
    }
    if (count == 0)
        pair->proxy->ends++;
    else
        pair->proxy->resets++;
    return false;
}

static bool pass_from_server(proxied *pair, char data[CHUNK])
{
    ssize_t count = recv(pair->server, data, CHUNK, 0);
    pair->is_asked = false;
    pair->proxy->bytes += count > 0 ? count : 0;
    return count > 0 && pass_reply(pair, data, (size_t)count);
}

/* While requests stay here, a client that hangs up must still be seen. */
static bool client_is_gone(proxied *pair)
{
    int cause = 0;
    socklen_t size = sizeof cause;
    if (getsockopt(pair->client, SOL_SOCKET, SO_ERROR, &cause, &size) == 0 && cause == 0)
        return false;
    pair->proxy->resets++;
    return true;
}

static void *serve(void *argument)
{
    proxied *pair = argument;
    const fault_proxy *proxy = pair->proxy;
    char data[CHUNK];
    while (!proxy->stopping) {
        int mode = proxy->mode;
        bool dead = pair->number < proxy->dead_before;
        short from_client = dead || mode == PROXY_STALL_REQUESTS ? 0 : POLLIN;
        short from_server = dead || mode == PROXY_STALL_REPLIES ? 0 : POLLIN;
        struct pollfd polled[] = { { .fd = pair->client, .events = from_client },
                                   { .fd = pair->server, .events = from_server } };
        if (poll(polled, 2, POLL_MS) <= 0)
            continue;
        if (from_client == 0 && (polled[0].revents & (POLLERR | POLLHUP)) != 0 && client_is_gone(pair))
            break;
        if ((polled[1].revents & POLLIN) != 0 && !pass_from_server(pair, data))
            break;
        if (from_client != 0 && polled[0].revents != 0 && !pass_from_client(pair, data))
            break;
    }
    close(pair->client);
    close(pair->server);
    pair->slot->is_over = true;
    free(pair);
    return NULL;
}

static _Noreturn void die(const char *why)
{
    (void)fprintf(stderr, "proxy: %s\n", why);
    abort();
}

/* One whose connection is over is used again: a test may make many in its time. */
static proxy_slot *find_slot(fault_proxy *proxy)
{
    for (size_t i = 0; i < PROXY_CONNECTIONS_MAX; i++) {
        proxy_slot *slot = &proxy->slots[i];
        if (slot->taken && slot->is_over) {
            pthread_join(slot->thread, NULL);
            slot->taken = false;
        }
        if (!slot->taken)
            return slot;
    }
    die("more connections at a time than it was made for");
}

static void serve_in_thread(fault_proxy *proxy, proxied *pair)
{
    proxy_slot *slot = find_slot(proxy);
    pair->slot = slot;
    slot->is_over = false;
    if (pthread_create(&slot->thread, NULL, serve, pair) != 0)
        die("no thread for a connection");
    slot->taken = true;
    proxy->connections++;
}

static void *accept_all(void *argument)
{
    fault_proxy *proxy = argument;
    while (!proxy->stopping) {
        struct pollfd polled = { .fd = proxy->listen_fd, .events = POLLIN };
        if (poll(&polled, 1, 5) <= 0)
            continue;
        int client = accept(proxy->listen_fd, NULL, NULL);
        int server = client >= 0 ? connect_target(proxy->target_port) : -1;
        proxied *pair = server >= 0 ? malloc(sizeof *pair) : NULL;
        if (pair == NULL) { /* the server is away */
            close(client);
            if (server >= 0)
                close(server);
            continue;
        }
        *pair = (proxied){ .proxy = proxy, .client = client, .server = server, .number = proxy->connections };
        serve_in_thread(proxy, pair);
    }
    return NULL;
}

bool proxy_start(fault_proxy *proxy, int target_port)
{
    memset(proxy, 0, sizeof *proxy);
    proxy->target_port = target_port;
    proxy->match = "";
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof address;
    proxy->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (proxy->listen_fd < 0 || bind(proxy->listen_fd, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(proxy->listen_fd, 64) != 0 || getsockname(proxy->listen_fd, (struct sockaddr *)&address, &size) != 0)
        return false;
    proxy->port = ntohs(address.sin_port);
    return pthread_create(&proxy->thread, NULL, accept_all, proxy) == 0;
}

void proxy_stop(fault_proxy *proxy)
{
    proxy->stopping = true;
    pthread_join(proxy->thread, NULL);
    for (size_t i = 0; i < PROXY_CONNECTIONS_MAX; i++)
        if (proxy->slots[i].taken)
            pthread_join(proxy->slots[i].thread, NULL);
    close(proxy->listen_fd);
}

void proxy_harm(fault_proxy *proxy, proxy_mode mode, const char *match)
{
    proxy->mode = PROXY_PASS;
    proxy->match = match;
    proxy->mode = (int)mode;
    sleep_ms(2 * POLL_MS); /* those that poll for the old mode are through by then */
}

void proxy_kill_silently(fault_proxy *proxy)
{
    proxy->dead_before = proxy->connections;
    sleep_ms(2 * POLL_MS);
}
