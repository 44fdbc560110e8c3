#include "redis/resolve.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "redis/wire.h"

/* Shared by the asker and the thread that looks up; whoever lets go last frees it. */
typedef struct lookup_request {
    _Atomic int references;
    char *host; /* owned */
    char port[8];
    int done_fd;                /* owned; readable when the answer is there */
    _Atomic int result;         /* released by the thread, acquired by the asker: then `addresses` is there */
    struct addrinfo *addresses; /* owned */
} lookup_request;

static void let_go(lookup_request *lookup)
{
    /* Acquire-release: the last one sees what the other wrote. */
    if (atomic_fetch_sub_explicit(&lookup->references, 1, memory_order_acq_rel) > 1)
        return;
    if (lookup->addresses != NULL)
        freeaddrinfo(lookup->addresses);
    if (lookup->done_fd >= 0)
        close(lookup->done_fd);
    free(lookup->host);
    free(lookup);
}

static int look_up(const char *host, const char *port, int flags, struct addrinfo **addresses_out)
{
    struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = flags };
    *addresses_out = NULL;
    return getaddrinfo(host, port, &hints, addresses_out);
}

static void *look_up_thread(void *argument)
{
    lookup_request *lookup = argument;
    int result = look_up(lookup->host, lookup->port, AI_ADDRCONFIG, &lookup->addresses);
    atomic_store_explicit(&lookup->result, result, memory_order_release);
    eventfd_write(lookup->done_fd, 1);
    let_go(lookup);
    return NULL;
}

static lookup_request *start(const char *host, const char *port)
{
    lookup_request *lookup = calloc(1, sizeof *lookup);
    if (lookup == NULL)
        return NULL;
    lookup->references = 2;
    lookup->host = strdup(host);
    snk_copy_text(lookup->port, sizeof lookup->port, port);
    lookup->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_attr_t attributes;
    pthread_t thread;
    bool started = false;
    if (lookup->host != NULL && lookup->done_fd >= 0 && pthread_attr_init(&attributes) == 0) {
        sigset_t all;
        sigset_t before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        started = pthread_create(&thread, &attributes, look_up_thread, lookup) == 0;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        pthread_attr_destroy(&attributes);
    }
    if (started)
        return lookup;
    lookup->references = 1;
    let_go(lookup);
    return NULL;
}

sneck_status snk_redis_resolve(const char *host, const char *port, int stop_fd, int64_t until_ns,
                               struct addrinfo **addresses_out, sneck_error *error)
{
    if (look_up(host, port, AI_NUMERICHOST | AI_NUMERICSERV, addresses_out) == 0)
        return SNECK_OK;
    lookup_request *lookup = start(host, port);
    if (lookup == NULL)
        return snk_fail(error, SNECK_NO_MEMORY, 0, "redis: cannot start to look up %.100s", host);
    sneck_status status = SNECK_OK;
    if (!snk_redis_poll(lookup->done_fd, POLLIN, stop_fd, until_ns)) {
        status = snk_fail(error, SNECK_UNAVAILABLE, ETIMEDOUT, "redis: looking up %.100s takes too long", host);
    } else {
        int result = atomic_load_explicit(&lookup->result, memory_order_acquire);
        if (result != 0)
            status = snk_fail(error, SNECK_UNAVAILABLE, result, "redis: cannot look up %.100s: %s", host,
                              gai_strerror(result));
        else
            *addresses_out = lookup->addresses;
        lookup->addresses = NULL;
    }
    let_go(lookup);
    return status;
}
