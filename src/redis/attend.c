/*
 * One thread that receives for several connections at once. It holds the role of the reader on each of them from before
 * its calls are submitted, so that no other thread is woken for their answers; conn_parts.h says what that means.
 */
#include <poll.h>

#include "base/clock.h"
#include "redis/conn_parts.h"

/*
 * Answers that nobody waits for any more stay in their sockets for so long, where the next thread that asks the same
 * servers finds them with its own; then the connection's own thread receives them.
 */
#define LINGER_NS (2 * SNK_NS_PER_MS)

/* Somebody else may lower the word while this thread sleeps on the sockets, if seldom: so it looks now and then. */
#define LOOK_MS 20

static bool take_role(snk_redis_conn *conn)
{
    snk_redis_finish finish;
    snk_redis_finish_init(&finish);
    pthread_mutex_lock(&conn->mutex);
    if (conn->state == SNK_REDIS_UP)
        snk_redis_check_idle_locked(conn, snk_now_ns(), &finish);
    /* What TLS has read ahead does not show on the socket. */
    bool taken = conn->state == SNK_REDIS_UP && !conn->reading && !conn->closing && conn->wire.tls == NULL;
    conn->reading = conn->reading || taken;
    pthread_mutex_unlock(&conn->mutex);
    snk_redis_finish_run(conn, &finish);
    return taken;
}

/* Sees to it that somebody receives what is still to come: soon, unless nobody waits for it. */
static void linger_locked(snk_redis_conn *conn, snk_redis_finish *finish)
{
    bool waits = conn->undriven > conn->patient || !snk_list_is_empty(&conn->sleepers);
    if (waits || conn->state != SNK_REDIS_UP || conn->head == conn->tail || conn->undriven == 0) {
        snk_redis_pass_on_locked(conn, finish);
        return;
    }
    conn->reading = false;
    conn->lingered = conn->tail;
    conn->linger_until_ns = snk_now_ns() + LINGER_NS;
    if (!conn->thread_started || conn->thread_until_ns > conn->linger_until_ns)
        (void)snk_redis_wake_thread_locked(conn);
}

static void give_back(snk_redis_conn *conn, bool lingers)
{
    snk_redis_finish finish;
    snk_redis_finish_init(&finish);
    pthread_mutex_lock(&conn->mutex);
    if (lingers)
        linger_locked(conn, &finish);
    else
        snk_redis_pass_on_locked(conn, &finish);
    pthread_mutex_unlock(&conn->mutex);
    snk_redis_finish_run(conn, &finish);
    snk_redis_conn_leave(conn);
}

bool snk_redis_conns_attend(snk_redis_conn *const conns[], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        snk_redis_conn_arrive(conns[i]);
        if (take_role(conns[i]))
            continue;
        snk_redis_conn_leave(conns[i]);
        while (i-- > 0)
            give_back(conns[i], false);
        return false;
    }
    return true;
}

/* The spin of a connection that this thread receives from; there is one. */
static snk_spin *spin_of(snk_redis_conn *const conns[], const struct pollfd polled[])
{
    size_t first = 0;
    while (polled[first].fd < 0)
        first++;
    return &conns[first]->spin;
}

/* Which of the sockets have something to say; looks a few times before it sleeps, if that pays. */
static int await_any(snk_spin *spin, struct pollfd polled[], size_t count, int64_t until_ns)
{
    int ready = 0;
    if (snk_spin_begin(spin)) {
        do
            ready = poll(polled, count, 0);
        while (ready == 0 && snk_spin_goes_on(spin));
        snk_spin_end(spin, ready != 0);
    }
    int left_ms = snk_redis_poll_ms(until_ns);
    return ready != 0 ? ready : poll(polled, count, left_ms < LOOK_MS ? left_ms : LOOK_MS);
}

/* Receives once. False: there is nothing more to receive. */
static bool receive(snk_redis_conn *conn)
{
    pthread_mutex_lock(&conn->mutex);
    bool is_up = conn->state == SNK_REDIS_UP;
    if (is_up)
        (void)snk_redis_receive_locked(conn, NULL, 0);
    is_up = is_up && conn->state == SNK_REDIS_UP;
    pthread_mutex_unlock(&conn->mutex);
    return is_up;
}

static bool is_awaited(_Atomic uint32_t *left)
{
    /* Acquire: pairs with the release of whoever lowers it. */
    return atomic_load_explicit(left, memory_order_acquire) > 0;
}

void snk_redis_conns_receive(snk_redis_conn *const conns[], size_t count, _Atomic uint32_t *left, int64_t until_ns)
{
    int cancel_state;
    size_t open = count;
    struct pollfd polled[SNK_REDIS_ATTEND_MAX];
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    for (size_t i = 0; i < count; i++)
        polled[i] =
            (struct pollfd){ .fd = atomic_load_explicit(&conns[i]->wire.fd, memory_order_relaxed), .events = POLLIN };
    while (open > 0 && is_awaited(left) && snk_now_ns() < until_ns) {
        if (await_any(spin_of(conns, polled), polled, count, until_ns) <= 0)
            continue;
        for (size_t i = 0; i < count && is_awaited(left); i++) {
            if (polled[i].fd < 0 || polled[i].revents == 0 || receive(conns[i]))
                continue;
            /* It is given up: whoever makes the connection anew must not wait for this thread. */
            give_back(conns[i], false);
            polled[i].fd = -1;
            open--;
        }
    }
    bool lingers = !is_awaited(left);
    for (size_t i = 0; i < count; i++)
        if (polled[i].fd >= 0)
            give_back(conns[i], lingers);
    pthread_setcancelstate(cancel_state, NULL);
}
