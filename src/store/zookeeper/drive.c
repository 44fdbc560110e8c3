#include "store/zookeeper/drive.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "base/array.h"
#include "base/clock.h"

/*
 * Pauses between attempts to connect. The library's own is a 60th of the session, and for a server that takes the
 * connection and says nothing it waits two thirds of the session, which is longer than callers can wait. A server does so
 * while it starts: a greeting that comes before it serves is forgotten, and the connection stays open.
 */
#define PAUSE_MS 20
#define PAUSE_MS_MAX 100
/* Before a name is looked up again. */
#define INIT_PAUSE_MS 1000
/* How long what nobody waits for (an answer to a ping, the end of a connection) may stay unseen while callers drive. */
#define STANDBY_MS 5

/* ---- What the library says, under mutex ---- */

static void on_session(snk_zk_link *link, zhandle_t *handle, int state)
{
    if (handle != link->handle && link->handle != NULL)
        return;
    if (link->connected && state != ZOO_CONNECTED_STATE) {
        link->announce_loss = link->announce_loss || !link->announce;
        link->announce = false; /* what nobody has heard of need not be taken back */
    }
    link->connected = state == ZOO_CONNECTED_STATE;
    if (state == ZOO_CONNECTED_STATE) {
        link->connects++;
        int64_t id = zoo_client_id(handle)->client_id;
        if (id != link->session_id)
            link->session++;
        link->session_id = id;
        link->session_ns = zoo_recv_timeout(handle) * SNK_NS_PER_MS;
        link->announce = true;
        link->pause_ms = 0;
        link->dial_limit_ns = link->greeting_ns;
    }
    if (state == ZOO_EXPIRED_SESSION_STATE)
        link->expired = true;
    if (state == ZOO_AUTH_FAILED_STATE)
        link->denied = true;
    (void)pthread_cond_broadcast(&link->changed);
}

void snk_zk_on_event(zhandle_t *handle, int type, int state, const char *path, void *context)
{
    snk_zk_link *link = context;
    if (type == ZOO_SESSION_EVENT) {
        /* Each watch is told of these as well; once is enough. */
        if (path == NULL || *path == '\0')
            on_session(link, handle, state);
        return;
    }
    snk_zk_fired *fired = snk_array_with_room(link->fired, link->fired_count, &link->fired_room, sizeof *fired);
    char *copy = path == NULL ? NULL : strdup(path);
    if (fired != NULL)
        link->fired = fired;
    /* Without memory for it the claim is found by its next look. */
    if (fired == NULL || copy == NULL)
        free(copy);
    else
        fired[link->fired_count++] =
            (snk_zk_fired){ .path = copy, .has_gone = type == ZOO_DELETED_EVENT, .connection = link->connects };
}

static void drop_message(const char *message)
{
    (void)message;
}

/* ---- Sessions ---- */

/*
 * It formats addresses and messages in buffers of its own that all its handles share, so the links of one process take
 * turns where it may do that: everywhere but in sending. Taken after link.mutex; a leaf. A child of fork() has a new one.
 */
static pthread_mutex_t library_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t library_once = PTHREAD_ONCE_INIT;

static void renew_library_mutex(void)
{
    (void)pthread_mutex_init(&library_mutex, NULL);
}

static void watch_forks(void)
{
    (void)pthread_atfork(NULL, NULL, renew_library_mutex);
}

static void enter_library(void)
{
    (void)pthread_mutex_lock(&library_mutex);
}

static void leave_library(void)
{
    (void)pthread_mutex_unlock(&library_mutex);
}

void snk_zk_drive_prepare(void)
{
    (void)pthread_once(&library_once, watch_forks);
}

void snk_zk_session_start_locked(snk_zk_link *link)
{
    enter_library();
    link->handle = zookeeper_init2(link->hosts, snk_zk_on_event, link->session_ms, NULL, link, 0, drop_message);
    /* Otherwise it looks up its servers' names whenever it is asked what to wait for; so it does when a connection is lost. */
    if (link->handle != NULL)
        (void)zoo_set_servers_resolution_delay(link->handle, -1);
    if (link->handle != NULL && link->login != NULL)
        (void)zoo_add_auth(link->handle, "digest", link->login, (int)strlen(link->login), NULL, NULL);
    leave_library();
}

void snk_zk_session_end_locked(snk_zk_link *link)
{
    zhandle_t *handle = link->handle;
    link->connected = false;
    atomic_store(&link->socket, -1);
    enter_library();
    if (handle != NULL)
        (void)zookeeper_close(handle);
    leave_library();
    link->handle = NULL;
}

/* ---- Sending and receiving ---- */

void snk_zk_unlock_and_wake(snk_zk_link *link)
{
    snk_zk_flight *landed = link->flights.landed;
    link->flights.landed = NULL;
    (void)pthread_mutex_unlock(&link->mutex);
    snk_zk_flights_wake(landed);
}

static void count_failure(snk_zk_link *link, int rc)
{
    link->failures += rc == ZCONNECTIONLOSS || rc == ZOPERATIONTIMEOUT || rc == ZSYSTEMERROR;
}

static int next_pause_ms(snk_zk_link *link)
{
    int pause_ms = link->pause_ms * 2;
    link->pause_ms = pause_ms < PAUSE_MS ? PAUSE_MS : pause_ms > PAUSE_MS_MAX ? PAUSE_MS_MAX : pause_ms;
    return link->pause_ms;
}

/* How long a server that is being connected to may still take; one that took too long is given up, for the next one. */
static int64_t dial_left_ns(snk_zk_link *link, int fd)
{
    int64_t now_ns = snk_now_ns();
    if (link->dialed_at_ns == 0)
        link->dialed_at_ns = now_ns;
    int64_t left_ns = link->dialed_at_ns + link->dial_limit_ns - now_ns;
    if (left_ns > 0)
        return left_ns;
    (void)shutdown(fd, SHUT_RDWR); /* which the library finds as soon as it reads */
    if (link->dial_limit_ns < link->session_ms * SNK_NS_PER_MS)
        link->dial_limit_ns += link->greeting_ns;
    return 0;
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
    enter_library();
    int rc = zookeeper_interest(link->handle, &fd, &interest, &time);
    leave_library();
    *timeout_ms_out = (int)(time.tv_sec * 1000 + time.tv_usec / 1000);
    count_failure(link, rc);
    if (rc != ZOK || fd < 0) {
        fd = -1;
        *timeout_ms_out = next_pause_ms(link);
    }
    if (fd < 0 || link->connected) {
        link->dialed_at_ns = 0;
    } else {
        int64_t left_ms = (dial_left_ns(link, fd) + SNK_NS_PER_MS - 1) / SNK_NS_PER_MS;
        if (left_ms < *timeout_ms_out)
            *timeout_ms_out = (int)left_ms;
    }
    *events_out = (short)((interest & ZOOKEEPER_READ ? POLLIN : 0) | (interest & ZOOKEEPER_WRITE ? POLLOUT : 0));
    atomic_store(&link->socket, fd);
    return fd;
}

static void process_locked(snk_zk_link *link, short events)
{
    int happened =
        (events & (POLLIN | POLLHUP | POLLERR) ? ZOOKEEPER_READ : 0) | (events & POLLOUT ? ZOOKEEPER_WRITE : 0);
    enter_library();
    int rc = zookeeper_process(link->handle, happened);
    leave_library();
    count_failure(link, rc);
    if (rc != ZOK && rc != ZNOTHING)
        link->dialed_at_ns = 0; /* that server is given up */
}

/*
 * The library learns of it at once, by reading: if it were to learn of it by sending, it would forget to say so to those
 * whose requests are under way.
 */
void snk_zk_hang_up_locked(snk_zk_link *link)
{
    (void)shutdown(atomic_load(&link->socket), SHUT_RDWR);
    process_locked(link, POLLIN);
}

void snk_zk_drive_locked(snk_zk_link *link, int longest_ms)
{
    short events = 0;
    int timeout_ms = 0;
    int fd = plan_locked(link, &events, &timeout_ms);
    struct pollfd fds[2] = { { .fd = link->wake_fd, .events = POLLIN }, { .fd = fd, .events = events } };
    snk_zk_unlock_and_wake(link);
    if (poll(fds, fd < 0 ? 1 : 2, timeout_ms < longest_ms ? timeout_ms : longest_ms) < 0)
        fds[0].revents = fds[1].revents = 0;
    eventfd_t value = 0;
    if (fds[0].revents != 0)
        (void)eventfd_read(link->wake_fd, &value);
    (void)pthread_mutex_lock(&link->mutex);
    if (link->handle != NULL)
        process_locked(link, fds[1].revents);
}

/* ---- Callers that drive ---- */

/* Whether there is something that only the link's thread does. */
static bool needs_thread_locked(const snk_zk_link *link)
{
    return link->flights.under_way > 0 || link->fired_count > 0 || link->announce || link->announce_loss ||
           link->expired || !link->connected || link->listener.is_waiting(link->listener.context);
}

void snk_zk_drive_for_locked(snk_zk_link *link, const snk_zk_flight *flight)
{
    int ready = 1;
    link->caller_drives = true;
    while (ready > 0 && link->stands_by && link->connected && atomic_load(&flight->landed) == 0) {
        short events = 0;
        int timeout_ms = 0;
        struct pollfd polled = { .fd = plan_locked(link, &events, &timeout_ms) };
        polled.events = events;
        snk_zk_unlock_and_wake(link);
        /* Not for long: the socket may be closed and its number be another's by now. */
        ready = poll(&polled, 1, timeout_ms < STANDBY_MS ? timeout_ms : STANDBY_MS);
        (void)pthread_mutex_lock(&link->mutex);
        if (ready > 0 && link->connected)
            process_locked(link, polled.revents);
    }
    link->caller_drives = false;
    if (needs_thread_locked(link))
        (void)eventfd_write(link->wake_fd, 1);
}

/* Sleeps away from the socket; true when it was called. */
static bool stay_away_locked(snk_zk_link *link)
{
    eventfd_t value = 0;
    struct pollfd called = { .fd = link->wake_fd, .events = POLLIN };
    snk_zk_unlock_and_wake(link);
    bool was_called = poll(&called, 1, STANDBY_MS) != 0;
    if (was_called)
        (void)eventfd_read(link->wake_fd, &value);
    (void)pthread_mutex_lock(&link->mutex);
    return was_called;
}

void snk_zk_stand_by_locked(snk_zk_link *link)
{
    link->stands_by = link->was_alone && link->trips != link->trips_served && !needs_thread_locked(link);
    while (link->stands_by) {
        uint64_t seen = link->trips;
        link->stands_by = !stay_away_locked(link) && link->trips != seen && !link->closing;
    }
    link->trips_served = link->trips;
}
