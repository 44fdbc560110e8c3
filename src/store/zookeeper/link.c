#include "store/zookeeper/link.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "store/zookeeper/drive.h"

/* A server that is busy is not dead; and one that has not answered by then is asked once more before callers give up. */
#define GREETING_NS_MIN (SNK_NS_PER_S / 4)
#define GREETING_NS_MAX SNK_NS_PER_S

/* ---- The link's thread ---- */

/* Says what happened, if anything did; the mutex is given back meanwhile. */
static bool announce_once_locked(snk_zk_link *link, uint64_t ended)
{
    snk_zk_fired *fired = link->fired;
    size_t count = link->fired_count;
    bool connected = link->announce;
    bool lost = link->announce_loss;
    link->fired = NULL;
    link->fired_count = 0;
    link->fired_room = 0;
    link->announce = false;
    link->announce_loss = false;
    if (count == 0 && !connected && !lost && ended == 0) {
        free(fired);
        return false;
    }
    snk_zk_unlock_and_wake(link);
    if (lost)
        link->listener.lost(link->listener.context);
    if (ended != 0)
        link->listener.expired(link->listener.context, ended);
    for (size_t i = 0; i < count; i++) {
        link->listener.watched(link->listener.context, &fired[i]);
        free(fired[i].path);
    }
    free(fired);
    if (connected)
        link->listener.connected(link->listener.context);
    (void)pthread_mutex_lock(&link->mutex);
    return true;
}

static void announce_locked(snk_zk_link *link, uint64_t ended)
{
    /* Who is told something may ask something, and more is heard meanwhile. */
    for (bool again = announce_once_locked(link, ended); again;)
        again = announce_once_locked(link, 0);
}

static void *run(void *context)
{
    snk_zk_link *link = context;
    (void)pthread_mutex_lock(&link->mutex);
    while (!link->closing) {
        uint64_t ended = 0;
        if (link->expired) {
            ended = link->session;
            snk_zk_session_end_locked(link);
            link->expired = false;
        }
        if (link->handle == NULL)
            snk_zk_session_start_locked(link);
        announce_locked(link, ended);
        if (!link->closing)
            snk_zk_drive_locked(link, INT_MAX);
        snk_zk_stand_by_locked(link);
        announce_locked(link, 0);
    }
    snk_zk_session_end_locked(link);
    snk_zk_unlock_and_wake(link);
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
        free(link->fired[i].path);
    free(link->fired);
    if (link->wake_fd >= 0)
        (void)close(link->wake_fd);
    if (link->login != NULL)
        explicit_bzero(link->login, strlen(link->login));
    free(link->login);
    free(link->hosts);
    free(link);
}

static int64_t greeting_ns(int64_t timeout_ns)
{
    if (timeout_ns / 3 > GREETING_NS_MAX)
        return GREETING_NS_MAX;
    return timeout_ns / 3 > GREETING_NS_MIN ? timeout_ns / 3 : GREETING_NS_MIN;
}

sneck_status snk_zk_link_open(const snk_zk_config *config, snk_zk_link **link_out, sneck_error *error)
{
    *link_out = NULL;
    snk_zk_drive_prepare();
    snk_zk_link *link = calloc(1, sizeof *link);
    if (link == NULL)
        return snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory");
    link->hosts = strdup(config->hosts);
    link->login = config->login == NULL ? NULL : strdup(config->login);
    link->session_ms = config->session_ms;
    link->greeting_ns = greeting_ns(config->timeout_ns);
    link->dial_limit_ns = link->greeting_ns;
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

/* ---- What is known of it ---- */

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

void snk_zk_link_describe(snk_zk_link *link, snk_store_state *state_out)
{
    (void)pthread_mutex_lock(&link->mutex);
    *state_out = (snk_store_state){
        .connected = link->connected,
        .connects = link->connects,
        .failures = link->failures,
        .in_flight = link->flights.under_way,
    };
    (void)pthread_mutex_unlock(&link->mutex);
}

void snk_zk_link_reconnect(snk_zk_link *link)
{
    (void)pthread_mutex_lock(&link->mutex);
    if (link->connected)
        snk_zk_hang_up_locked(link);
    snk_zk_unlock_and_wake(link);
    (void)eventfd_write(link->wake_fd, 1);
}

const char *snk_zk_trouble(snk_zk_link *link)
{
    (void)pthread_mutex_lock(&link->mutex);
    bool has_handle = link->handle != NULL;
    (void)pthread_mutex_unlock(&link->mutex);
    return has_handle ? "does not answer" : "has no address that can be found";
}
