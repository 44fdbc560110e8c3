/* Trips: requests that go out together, and who waits for their answers. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/futex.h"
#include "store/zookeeper/drive.h"

/* Fewer requests than this always fit into a socket's buffer; more may have to be sent on by the link's thread. */
#define FITS_SOCKET 8

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

/*
 * The library sends each request in two parts, and each part would be a packet, for which the server wakes up and reads.
 * While the socket is corked they go into one.
 */
static void cork(int socket, int is_corked)
{
    (void)setsockopt(socket, IPPROTO_TCP, TCP_CORK, &is_corked, sizeof is_corked);
}

static void send_locked(snk_zk_link *link, const snk_zk_trip *trip, snk_zk_flight *flight)
{
    int socket = atomic_load(&link->socket);
    link->was_alone = link->flights.under_way++ == 0;
    link->trips++;
    const struct ACL_vector *acl = link->login != NULL ? &ZOO_CREATOR_ALL_ACL : &ZOO_OPEN_ACL_UNSAFE;
    cork(socket, 1);
    for (size_t i = 0; i < trip->count; i++)
        snk_zk_seat_send(&flight->seats[i], link->handle, &trip->requests[i], acl, snk_zk_on_event, link);
    cork(socket, 0);
    if (trip->count >= FITS_SOCKET)
        (void)eventfd_write(link->wake_fd, 1);
}

static void forget_answer(int rc, const struct Stat *stat, const void *data)
{
    (void)rc;
    (void)stat;
    (void)data;
}

void snk_zk_post(snk_zk_link *link, uint64_t session, const char *path, const char *data)
{
    (void)pthread_mutex_lock(&link->mutex);
    if (link->connected && link->session == session) {
        int socket = atomic_load(&link->socket);
        cork(socket, 1);
        (void)zoo_aset(link->handle, path, data, (int)strlen(data), -1, forget_answer, NULL);
        cork(socket, 0);
    }
    (void)pthread_mutex_unlock(&link->mutex);
}

void snk_zk_touch(snk_zk_link *link)
{
    (void)pthread_mutex_lock(&link->mutex);
    if (link->connected)
        (void)zoo_aexists(link->handle, "/", 0, forget_answer, NULL);
    (void)pthread_mutex_unlock(&link->mutex);
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

static bool is_on_link(const snk_zk_link *link)
{
    return pthread_equal(pthread_self(), link->thread) != 0;
}

/* The link's thread has nobody who receives for it. */
static void drive_on_link_locked(snk_zk_link *link, const snk_zk_trip *trip, const snk_zk_flight *flight)
{
    int64_t left_ns = trip->until_ns - snk_now_ns();
    while (atomic_load(&flight->landed) == 0 && link->connected && !link->closing && left_ns > 0) {
        snk_zk_drive_locked(link, (int)(left_ns / SNK_NS_PER_MS) + 1);
        left_ns = trip->until_ns - snk_now_ns();
    }
}

static void depart_locked(snk_zk_link *link, const snk_zk_trip *trip, snk_zk_back *back)
{
    back->session = link->session;
    back->connection = link->connects;
    send_locked(link, trip, back->flight);
    if (is_on_link(link))
        drive_on_link_locked(link, trip, back->flight);
    else if (link->stands_by && !link->caller_drives)
        snk_zk_drive_for_locked(link, back->flight);
}

static snk_zk_outcome travel(snk_zk_link *link, const snk_zk_trip *trip, snk_zk_back *back)
{
    (void)pthread_mutex_lock(&link->mutex);
    bool connected = is_on_link(link) ? link->connected : await_connection_locked(link, trip->until_ns);
    bool other = connected && trip->session != 0 && trip->session != link->session;
    /* A session that has ended is known by its number before there is a new one. */
    if (connected && !other)
        depart_locked(link, trip, back);
    bool on_link = is_on_link(link);
    snk_zk_unlock_and_wake(link);
    if (!connected || other) {
        atomic_store(&back->flight->owners, 1); /* the library never saw it */
        return other ? SNK_ZK_OTHER_SESSION : SNK_ZK_NOT_SENT;
    }
    bool landed = on_link ? atomic_load(&back->flight->landed) != 0 : await_landing(back->flight, trip->until_ns);
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
    *back = (snk_zk_back){ .flight = snk_zk_flight_new(trip->count, &link->flights) };
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
