#include "store/zookeeper/link.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/futex.h"
#include "store/zookeeper/flight.h"

/* A pause where the library asks for none: between attempts to connect, and before a name is looked up again. */
#define PAUSE_MS 20
#define INIT_PAUSE_MS 1000
/* Fewer requests than this always fit into a socket's buffer; more may have to be sent on by the link's thread. */
#define FITS_SOCKET 8

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
    bool announce; /* a connection is to be announced */
    char **fired;  /* owned; paths whose watches have fired and were not announced */
    size_t fired_count;
    size_t fired_room;
    _Atomic int socket; /* for a child of fork() to close */
};

/* ---- What the library says, on the link's thread and under mutex ---- */

static void on_session(snk_zk_link *link, zhandle_t *handle, int state)
{
    if (handle != link->handle && link->handle != NULL)
        return;
    link->connected = state == ZOO_CONNECTED_STATE;
    if (state == ZOO_CONNECTED_STATE) {
        int64_t id = zoo_client_id(handle)->client_id;
        if (id != link->session_id)
            link->session++;
        link->session_id = id;
        link->session_ns = zoo_recv_timeout(handle) * SNK_NS_PER_MS;
        link->announce = true;
    }
    if (state == ZOO_EXPIRED_SESSION_STATE)
        link->expired = true;
    if (state == ZOO_AUTH_FAILED_STATE)
        link->denied = true;
    (void)pthread_cond_broadcast(&link->changed);
}

static void on_event(zhandle_t *handle, int type, int state, const char *path, void *context)
{
    snk_zk_link *link = context;
    if (type == ZOO_SESSION_EVENT) {
        /* Each watch is told of these as well; once is enough. */
        if (path == NULL || *path == '\0')
            on_session(link, handle, state);
        return;
    }
    char **fired = snk_array_with_room(link->fired, link->fired_count, &link->fired_room, sizeof *fired);
    char *copy = path == NULL ? NULL : strdup(path);
    if (fired != NULL)
        link->fired = fired;
    /* Without memory for it the claim is found by its next look. */
    if (fired == NULL || copy == NULL)
        free(copy);
    else
        fired[link->fired_count++] = copy;
}

static void drop_message(const char *message)
{
    (void)message;
}

/* ---- The link's thread ---- */

static void start_session_locked(snk_zk_link *link)
{
    link->handle = zookeeper_init2(link->hosts, on_event, link->session_ms, NULL, link, 0, drop_message);
    if (link->handle != NULL && link->login != NULL)
        (void)zoo_add_auth(link->handle, "digest", link->login, (int)strlen(link->login), NULL, NULL);
}

static void end_session_locked(snk_zk_link *link)
{
    zhandle_t *handle = link->handle;
    link->connected = false;
    atomic_store(&link->socket, -1);
    if (handle != NULL)
        (void)zookeeper_close(handle);
    link->handle = NULL;
}

/* Says what happened; the mutex is given back meanwhile. */
static void announce_locked(snk_zk_link *link, uint64_t ended)
{
    char **fired = link->fired;
    size_t count = link->fired_count;
    bool connected = link->announce;
    link->fired = NULL;
    link->fired_count = 0;
    link->fired_room = 0;
    link->announce = false;
    if (count == 0 && !connected && ended == 0) {
        free(fired);
        return;
    }
    (void)pthread_mutex_unlock(&link->mutex);
    if (ended != 0)
        link->listener.expired(link->listener.context, ended);
    for (size_t i = 0; i < count; i++) {
        link->listener.watched(link->listener.context, fired[i]);
        free(fired[i]);
    }
    free(fired);
    if (connected)
        link->listener.connected(link->listener.context);
    (void)pthread_mutex_lock(&link->mutex);
}

/* What to wait for next, and how long; -1: no socket. */
static int plan_locked(snk_zk_link *link, short *events_out, int *timeout_ms_out)
{
    int fd = -1;
    int interest = 0;
    struct timeval time = { .tv_sec = 0 };
    *events_out = 0;
    *timeout_ms_out = INIT_PAUSE_MS;
    if (link->handle == NULL)
        return -1;
    int rc = zookeeper_interest(link->handle, &fd, &interest, &time);
    *timeout_ms_out = (int)(time.tv_sec * 1000 + time.tv_usec / 1000);
    if (rc != ZOK || fd < 0) {
        fd = -1;
        if (*timeout_ms_out < PAUSE_MS)
            *timeout_ms_out = PAUSE_MS;
    }
    *events_out = (short)((interest & ZOOKEEPER_READ ? POLLIN : 0) | (interest & ZOOKEEPER_WRITE ? POLLOUT : 0));
    atomic_store(&link->socket, fd);
    return fd;
}

static void wait_for_io_locked(snk_zk_link *link)
{
    short events = 0;
    int timeout_ms = 0;
    int fd = plan_locked(link, &events, &timeout_ms);
    struct pollfd fds[2] = { { .fd = link->wake_fd, .events = POLLIN }, { .fd = fd, .events = events } };
    (void)pthread_mutex_unlock(&link->mutex);
    if (poll(fds, fd < 0 ? 1 : 2, timeout_ms) < 0)
        fds[0].revents = fds[1].revents = 0;
    eventfd_t value = 0;
    if (fds[0].revents != 0)
        (void)eventfd_read(link->wake_fd, &value);
    (void)pthread_mutex_lock(&link->mutex);
    if (link->handle == NULL)
        return;
    int happened = (fds[1].revents & (POLLIN | POLLHUP | POLLERR) ? ZOOKEEPER_READ : 0) |
                   (fds[1].revents & POLLOUT ? ZOOKEEPER_WRITE : 0);
    (void)zookeeper_process(link->handle, happened);
}

static void *run(void *context)
{
    snk_zk_link *link = context;
    (void)pthread_mutex_lock(&link->mutex);
    while (!link->closing) {
        uint64_t ended = 0;
        if (link->expired) {
            ended = link->session;
            end_session_locked(link);
            link->expired = false;
        }
        if (link->handle == NULL)
            start_session_locked(link);
        announce_locked(link, ended);
        if (!link->closing)
            wait_for_io_locked(link);
        announce_locked(link, 0);
    }
    end_session_locked(link);
    (void)pthread_mutex_unlock(&link->mutex);
    return NULL;
}

/* ---- Opening and closing ---- */

static bool start_thread(snk_zk_link *link)
{
    /* Signals are for the threads of the program, not for ours. */
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(&link->thread, NULL, run, link) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

static bool init_waiting(snk_zk_link *link)
{
    pthread_condattr_t attributes;
    if (pthread_mutex_init(&link->mutex, NULL) != 0)
        return false;
    bool done = pthread_condattr_init(&attributes) == 0;
    done = done && pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0 &&
           pthread_cond_init(&link->changed, &attributes) == 0;
    (void)pthread_condattr_destroy(&attributes);
    return done;
}

static void free_link(snk_zk_link *link)
{
    for (size_t i = 0; i < link->fired_count; i++)
        free(link->fired[i]);
    free(link->fired);
    if (link->wake_fd >= 0)
        (void)close(link->wake_fd);
    if (link->login != NULL)
        explicit_bzero(link->login, strlen(link->login));
    free(link->login);
    free(link->hosts);
    free(link);
}

sneck_status snk_zk_link_open(const snk_zk_config *config, snk_zk_link **link_out, sneck_error *error)
{
    *link_out = NULL;
    snk_zk_link *link = calloc(1, sizeof *link);
    if (link == NULL)
        return snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory");
    link->hosts = strdup(config->hosts);
    link->login = config->login == NULL ? NULL : strdup(config->login);
    link->session_ms = config->session_ms;
    link->listener = config->listener;
    atomic_store(&link->socket, -1);
    link->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    bool ready = link->hosts != NULL && (link->login != NULL) == (config->login != NULL) && link->wake_fd >= 0 &&
                 init_waiting(link);
    if (!ready || !start_thread(link)) {
        free_link(link);
        return snk_fail(error, SNECK_NO_MEMORY, errno, "no memory or no thread for the ZooKeeper session");
    }
    *link_out = link;
    return SNECK_OK;
}

void snk_zk_link_close(snk_zk_link *link)
{
    if (link == NULL)
        return;
    (void)pthread_mutex_lock(&link->mutex);
    link->closing = true;
    (void)pthread_mutex_unlock(&link->mutex);
    (void)eventfd_write(link->wake_fd, 1);
    (void)pthread_join(link->thread, NULL);
    (void)pthread_cond_destroy(&link->changed);
    (void)pthread_mutex_destroy(&link->mutex);
    free_link(link);
}

/* Nothing but descriptors: a thread of the parent may have been changing the rest. */
void snk_zk_link_abandon(snk_zk_link *link)
{
    int socket = atomic_load(&link->socket);
    if (socket >= 0)
        (void)close(socket);
    (void)close(link->wake_fd);
}

/* ---- Trips ---- */

size_t snk_zk_ask(snk_zk_trip *trip, snk_zk_verb verb, const char *path)
{
    trip->requests[trip->count] = (snk_zk_request){ .verb = verb, .path = path, .version = -1 };
    return trip->count++;
}

/* Waits for a connection. False: none in time. */
static bool await_connection_locked(snk_zk_link *link, int64_t until_ns)
{
    while (!link->connected && !link->denied) {
        int64_t left_ns = until_ns - snk_now_ns();
        if (left_ns <= 0)
            return false;
        struct timespec until = snk_timespec(snk_clock_read_ns(CLOCK_MONOTONIC) + left_ns);
        (void)pthread_cond_timedwait(&link->changed, &link->mutex, &until);
    }
    return link->connected;
}

static void send_locked(snk_zk_link *link, const snk_zk_trip *trip, snk_zk_flight *flight)
{
    const struct ACL_vector *acl = link->login != NULL ? &ZOO_CREATOR_ALL_ACL : &ZOO_OPEN_ACL_UNSAFE;
    for (size_t i = 0; i < trip->count; i++)
        snk_zk_seat_send(&flight->seats[i], link->handle, &trip->requests[i], acl, on_event, link);
    if (trip->count >= FITS_SOCKET)
        (void)eventfd_write(link->wake_fd, 1);
}

static bool await_landing(snk_zk_flight *flight, int64_t until_ns)
{
    const snk_futex_word word = { .word = &flight->landed, .expected = 0 };
    while (atomic_load(&flight->landed) == 0) {
        int64_t left_ns = until_ns - snk_now_ns();
        if (left_ns <= 0)
            return false;
        (void)snk_futex_wait_any(&word, 1, left_ns);
    }
    return true;
}

static bool is_answer(int rc)
{
    return rc == ZOK || rc == ZUNIMPLEMENTED || rc == ZBADARGUMENTS ||
           (rc < ZAPIERROR && rc != ZCLOSING && rc != ZSESSIONEXPIRED && rc != ZSESSIONMOVED && rc != ZINVALIDSTATE);
}

static snk_zk_outcome travel(snk_zk_link *link, const snk_zk_trip *trip, snk_zk_back *back)
{
    (void)pthread_mutex_lock(&link->mutex);
    bool connected = await_connection_locked(link, trip->until_ns);
    bool other = connected && trip->session != 0 && trip->session != link->session;
    /* A session that has ended is known by its number before there is a new one. */
    if (connected && !other) {
        back->session = link->session;
        send_locked(link, trip, back->flight);
    }
    (void)pthread_mutex_unlock(&link->mutex);
    if (!connected || other) {
        atomic_store(&back->flight->owners, 1); /* the library never saw it */
        return other ? SNK_ZK_OTHER_SESSION : SNK_ZK_NOT_SENT;
    }
    bool landed = await_landing(back->flight, trip->until_ns);
    if (!landed)
        return SNK_ZK_CUT; /* the answers are being written: they are nobody's to read */
    back->replies = back->flight->replies;
    for (size_t i = 0; i < trip->count; i++) {
        if (!is_answer(back->replies[i].rc))
            return SNK_ZK_CUT;
    }
    return SNK_ZK_ANSWERED;
}

snk_zk_outcome snk_zk_travel(snk_zk_link *link, const snk_zk_trip *trip, snk_zk_back *back)
{
    *back = (snk_zk_back){ .flight = snk_zk_flight_new(trip->count) };
    if (back->flight == NULL)
        return SNK_ZK_NO_MEMORY;
    int cancel_state = PTHREAD_CANCEL_ENABLE;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    snk_zk_outcome outcome = travel(link, trip, back);
    (void)pthread_setcancelstate(cancel_state, NULL);
    return outcome;
}

void snk_zk_trip_end(snk_zk_back *back)
{
    snk_zk_flight_unref(back->flight);
    *back = (snk_zk_back){ .flight = NULL };
}

static void forget_answer(int rc, const struct Stat *stat, const void *data)
{
    (void)rc;
    (void)stat;
    (void)data;
}

void snk_zk_touch(snk_zk_link *link)
{
    (void)pthread_mutex_lock(&link->mutex);
    if (link->connected)
        (void)zoo_aexists(link->handle, "/", 0, forget_answer, NULL);
    (void)pthread_mutex_unlock(&link->mutex);
}

int64_t snk_zk_session_ns(snk_zk_link *link)
{
    (void)pthread_mutex_lock(&link->mutex);
    int64_t session_ns = link->session_ns;
    (void)pthread_mutex_unlock(&link->mutex);
    return session_ns;
}

int64_t snk_zk_session_id(snk_zk_link *link, uint64_t session)
{
    (void)pthread_mutex_lock(&link->mutex);
    int64_t id = session == link->session ? link->session_id : 0;
    (void)pthread_mutex_unlock(&link->mutex);
    return id;
}

const char *snk_zk_trouble(snk_zk_link *link)
{
    (void)pthread_mutex_lock(&link->mutex);
    bool has_handle = link->handle != NULL;
    (void)pthread_mutex_unlock(&link->mutex);
    return has_handle ? "does not answer" : "has no address that can be found";
}
