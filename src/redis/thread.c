/* The connection's own thread: it connects, serves the calls that nobody drives, and unclogs. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>

#include "base/clock.h"
#include "base/error.h"
#include "redis/backoff.h"
#include "redis/conn_parts.h"
#include "redis/greet.h"

/* ---- Connecting ---- */

static sneck_status connect_wire(snk_redis_conn *conn, snk_redis_greeting *greeting, sneck_error *error)
{
    int64_t until_ns = snk_time_add(snk_now_ns(), conn->settings->connect_timeout_ns);
    sneck_status status = snk_redis_wire_open(&conn->wire, conn->settings, conn->stop_fd, until_ns, error);
    if (status != SNECK_OK)
        return status;
    status = snk_redis_parser_init(&conn->parser, conn->settings->where, error);
    if (status == SNECK_OK) {
        snk_redis_greeter greeter = { .wire = &conn->wire,
                                      .parser = &conn->parser,
                                      .settings = conn->settings,
                                      .stop_fd = conn->stop_fd,
                                      .until_ns = until_ns };
        status = snk_redis_greet(&greeter, greeting, error);
    }
    if (status == SNECK_OK)
        return SNECK_OK;
    snk_redis_parser_deinit(&conn->parser);
    snk_redis_wire_close(&conn->wire);
    return status;
}

static void come_up_locked(snk_redis_conn *conn, const snk_redis_greeting *greeting, snk_redis_finish *finish)
{
    int64_t now = snk_now_ns();
    conn->state = SNK_REDIS_UP;
    conn->received_at_ns = now;
    conn->left = conn->stream_end;
    conn->server.connected = true;
    conn->server.run = greeting->run;
    conn->server.version = greeting->version;
    conn->server.started_at_ns = greeting->started_at_ns;
    conn->server.connects++;
    snk_redis_stream_queue_locked(conn, now, finish);
    snk_redis_flush_locked(conn, finish);
    snk_redis_offer_locked(conn, finish);
}

static void stay_down_locked(snk_redis_conn *conn, const sneck_error *why, snk_redis_finish *finish)
{
    conn->state = SNK_REDIS_DOWN;
    conn->server.failures++;
    conn->server.last_error = *why;
    snk_redis_fail_queue_locked(conn, why, finish);
}

static void tell(snk_redis_conn *conn, sneck_status status, const sneck_error *error, snk_redis_run run, bool again)
{
    const snk_redis_settings *settings = conn->settings;
    if (status != SNECK_OK) {
        snk_redis_log(settings, SNECK_LOG_WARNING, "event=connect-failed server=\"%s\" error=\"%s\"", settings->where,
                      error->message);
        return;
    }
    snk_redis_log(settings, SNECK_LOG_INFO, "event=connected server=\"%s\" again=%d", settings->where, again);
    conn->is_told_up = true;
    if (settings->listener.connected != NULL)
        settings->listener.connected(settings->listener.context, conn->lane, run, again);
}

static void connect_locked(snk_redis_conn *conn)
{
    snk_redis_finish finish;
    snk_redis_finish_init(&finish);
    snk_redis_greeting greeting = { 0 };
    sneck_error error;
    conn->state = SNK_REDIS_DIALLING;
    /* Counted before it is known how it ends: only an answer to a call proves that the connection is of use. */
    conn->retry_at_ns = snk_now_ns();
    conn->attempts++;
    pthread_mutex_unlock(&conn->mutex);
    sneck_status status = connect_wire(conn, &greeting, &error);
    pthread_mutex_lock(&conn->mutex);
    conn->retry_at_ns = snk_now_ns() + snk_redis_backoff_ns(conn->attempts, &conn->random);
    bool again = conn->server.connects > 0;
    if (conn->closing && status == SNECK_OK) {
        snk_redis_parser_deinit(&conn->parser);
        snk_redis_wire_close(&conn->wire);
        status = snk_fail(&error, SNECK_UNAVAILABLE, 0, "%s: the client is being closed", conn->settings->where);
    }
    if (status == SNECK_OK)
        come_up_locked(conn, &greeting, &finish);
    else
        stay_down_locked(conn, &error, &finish);
    pthread_mutex_unlock(&conn->mutex);
    snk_redis_finish_run(conn, &finish);
    tell(conn, status, &error, greeting.run, again);
    pthread_mutex_lock(&conn->mutex);
}

/* A connection that the listener knows of is over. True: it was told, and the mutex was released meanwhile. */
static bool tell_down_locked(snk_redis_conn *conn)
{
    const snk_redis_listener *listener = &conn->settings->listener;
    if (!conn->is_told_up || conn->state == SNK_REDIS_UP)
        return false;
    conn->is_told_up = false;
    sneck_error why = conn->server.last_error;
    pthread_mutex_unlock(&conn->mutex);
    if (listener->disconnected != NULL)
        listener->disconnected(listener->context, conn->lane, &why);
    pthread_mutex_lock(&conn->mutex);
    return true;
}

/* ---- Calls that nobody drives ---- */

/* Gives up the undriven calls whose time is over; sets when to look again. */
static void expire_undriven_locked(snk_redis_conn *conn, int64_t now, snk_redis_finish *finish)
{
    if (now < conn->undriven_at_ns)
        return;
    int64_t next = SNK_NEVER_NS;
    snk_link *following;
    for (snk_link *link = snk_list_first(&conn->queue); link != NULL; link = following) {
        following = snk_list_next(&conn->queue, link);
        snk_redis_call *call = SNK_CONTAINER(link, snk_redis_call, link);
        if (call->driver != NULL)
            continue;
        if (call->deadline_ns <= now)
            snk_redis_expire_locked(conn, call, now, finish);
        else if (call->deadline_ns < next)
            next = call->deadline_ns;
    }
    for (uint64_t i = conn->head; i != conn->tail && conn->state == SNK_REDIS_UP; i++) {
        snk_redis_call *call = conn->slots[i & (conn->slot_capacity - 1)].call;
        if (call == NULL || call->driver != NULL)
            continue;
        if (call->deadline_ns <= now)
            snk_redis_expire_locked(conn, call, now, finish);
        else if (call->deadline_ns < next)
            next = call->deadline_ns;
    }
    conn->undriven_at_ns = next;
}

/* Nobody reads answers that nobody awaits any more; so before a server counts as silent, hears what it has said. */
static void hear_late_answers_locked(snk_redis_conn *conn, snk_redis_finish *finish)
{
    if (conn->reading)
        return;
    conn->reading = true;
    (void)snk_redis_receive_locked(conn, NULL, 0);
    snk_redis_pass_on_locked(conn, finish);
}

static void check_silence_locked(snk_redis_conn *conn, int64_t now, snk_redis_finish *finish)
{
    if (now < snk_redis_stale_at_locked(conn))
        return;
    hear_late_answers_locked(conn, finish);
    if (snk_now_ns() < snk_redis_stale_at_locked(conn))
        return;
    sneck_error why;
    snk_fail(&why, SNECK_UNAVAILABLE, ETIMEDOUT, "%s: the server did not answer in time", conn->settings->where);
    snk_redis_break_locked(conn, &why, finish);
}

static int64_t next_timer_locked(const snk_redis_conn *conn)
{
    int64_t at = conn->undriven_at_ns;
    int64_t stale_at = snk_redis_stale_at_locked(conn);
    if (stale_at < at)
        at = stale_at;
    if (conn->state == SNK_REDIS_UP && !conn->reading && conn->undriven > 0 && conn->linger_until_ns < at)
        at = conn->linger_until_ns;
    if (conn->later_at_ns < at)
        at = conn->later_at_ns;
    if (conn->state == SNK_REDIS_DOWN && !snk_list_is_empty(&conn->queue) && conn->retry_at_ns < at)
        at = conn->retry_at_ns;
    return at;
}

/* Sleeps until something is to be done; returns what the socket is ready for. */
static short poll_locked(snk_redis_conn *conn, short events)
{
    struct pollfd polled[] = { { .fd = conn->wake_fd, .events = POLLIN },
                               { .fd = events != 0 ? conn->wire.fd : -1, .events = events } };
    conn->thread_until_ns = next_timer_locked(conn);
    int timeout_ms = snk_redis_poll_ms(conn->thread_until_ns);
    conn->thread_asleep = true;
    pthread_mutex_unlock(&conn->mutex);
    int count = poll(polled, 2, timeout_ms);
    pthread_mutex_lock(&conn->mutex);
    conn->thread_asleep = false;
    conn->thread_until_ns = 0;
    if (count > 0 && polled[0].revents != 0) {
        eventfd_t value;
        eventfd_read(conn->wake_fd, &value);
    }
    return count > 0 ? polled[1].revents : 0;
}

/* Sleeps, then reads if this thread is the reader, and writes if the socket was clogged. */
static void wait_locked(snk_redis_conn *conn, bool *reads)
{
    /* Both roles are held while it polls: nobody may close the socket under it. */
    bool writes = conn->clogged && !conn->writing;
    conn->writing = conn->writing || writes;
    short events = (short)((*reads ? POLLIN : 0) | (writes ? POLLOUT : 0));
    short ready = poll_locked(conn, events);
    if (writes) {
        conn->writing = false;
        snk_redis_finish finish;
        snk_redis_finish_init(&finish);
        if ((ready & ~POLLIN) != 0)
            snk_redis_unclog_locked(conn, &finish);
        snk_redis_retire_locked(conn);
        snk_redis_finish_locked(conn, &finish);
    }
    if (ready != 0 && *reads)
        *reads = snk_redis_receive_locked(conn, NULL, 0);
}

/* Takes the role of the reader if calls without driver need it, or gives it back when none does. */
static void choose_role_locked(snk_redis_conn *conn, bool *reads, snk_redis_finish *finish)
{
    bool lingers = conn->undriven == conn->patient && snk_now_ns() < conn->linger_until_ns;
    bool wanted = conn->state == SNK_REDIS_UP && conn->undriven > 0 && !lingers;
    if (*reads && !wanted) {
        *reads = false;
        snk_redis_pass_on_locked(conn, finish);
    } else if (!*reads && wanted && !conn->reading) {
        *reads = true;
        conn->reading = true;
        /* What TLS has read ahead does not show on the socket. */
        if (conn->wire.tls != NULL)
            *reads = snk_redis_receive_locked(conn, NULL, 0);
    }
}

static void *run(void *argument)
{
    snk_redis_conn *conn = argument;
    bool reads = false; /* this thread is the reader */
    snk_redis_finish finish;
    snk_redis_finish_init(&finish);
    pthread_mutex_lock(&conn->mutex);
    for (;;) {
        int64_t now = snk_now_ns();
        snk_redis_enter_later_locked(conn, now, &finish);
        expire_undriven_locked(conn, now, &finish);
        check_silence_locked(conn, now, &finish);
        snk_redis_flush_locked(conn, &finish);
        choose_role_locked(conn, &reads, &finish);
        if (!snk_redis_finish_is_empty(&finish)) {
            snk_redis_finish_locked(conn, &finish);
            continue;
        }
        if (conn->closing && !reads)
            break;
        if (tell_down_locked(conn))
            continue;
        if (conn->state == SNK_REDIS_DOWN && !snk_list_is_empty(&conn->queue) && now >= conn->retry_at_ns)
            connect_locked(conn);
        else
            wait_locked(conn, &reads);
    }
    pthread_mutex_unlock(&conn->mutex);
    return NULL;
}

bool snk_redis_wake_thread_locked(snk_redis_conn *conn)
{
    if (conn->thread_started) {
        if (conn->thread_asleep)
            eventfd_write(conn->wake_fd, 1);
        conn->thread_asleep = false; /* once is enough */
        return true;
    }
    if (conn->closing)
        return false;
    /* Signals are for the threads of the program, not for ours. */
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    conn->thread_started = pthread_create(&conn->thread, NULL, run, conn) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return conn->thread_started;
}

void snk_redis_thread_join(snk_redis_conn *conn)
{
    pthread_mutex_lock(&conn->mutex);
    bool started = conn->thread_started;
    pthread_mutex_unlock(&conn->mutex);
    if (started)
        pthread_join(conn->thread, NULL);
}
