/* The two roles of a connection: who writes and who reads. conn_parts.h says how they are handed over. */
#include <assert.h>

#include "base/clock.h"
#include "base/error.h"
#include "redis/conn_parts.h"

#define FLUSH_ROUNDS_MAX 16 /* how often one writer sends what others add, before it hands that to the thread */
#define REPLIES_MAX 64      /* that are settled in one critical section */

/* ---- The writer ---- */

/* Sends `sending` as far as the wire takes it. Without the mutex. False: the connection is over. */
static bool send_some(snk_redis_conn *conn, sneck_error *error)
{
    while (conn->sent < conn->sending.length) {
        ssize_t count =
            snk_redis_wire_send(&conn->wire, conn->sending.data + conn->sent, conn->sending.length - conn->sent, error);
        if (count < 0)
            return false;
        if (count == 0)
            break;
        conn->sent += (size_t)count;
    }
    return true;
}

/* One round of the writer: returns true when another may follow. */
static bool send_round_locked(snk_redis_conn *conn, snk_redis_finish *finish)
{
    uint64_t end = conn->left;
    sneck_error error;
    pthread_mutex_unlock(&conn->mutex);
    bool fine = send_some(conn, &error);
    pthread_mutex_lock(&conn->mutex);
    conn->clogged = fine && conn->sent < conn->sending.length;
    if (!fine && conn->state == SNK_REDIS_UP) {
        /* Exactly so much has left, and calls beyond it can be tried again at once. */
        conn->left = end - (conn->sending.length - conn->sent);
        snk_redis_break_locked(conn, &error, finish);
    }
    if (conn->clogged)
        snk_redis_wake_thread_locked(conn);
    return conn->state == SNK_REDIS_UP && !conn->clogged;
}

static void write_locked(snk_redis_conn *conn, snk_redis_finish *finish)
{
    assert(!conn->writing);
    conn->writing = true;
    bool more = true;
    if (conn->sent < conn->sending.length)
        more = send_round_locked(conn, finish);
    for (int round = 0; more && conn->out.length > 0; round++) {
        if (round == FLUSH_ROUNDS_MAX) {
            snk_redis_wake_thread_locked(conn);
            break;
        }
        snk_redis_bytes empty = conn->sending;
        empty.length = 0;
        conn->sending = conn->out;
        conn->out = empty;
        conn->sent = 0;
        conn->left = conn->stream_end; /* from now on its bytes may have left */
        more = send_round_locked(conn, finish);
    }
    conn->writing = false;
    snk_redis_retire_locked(conn);
}

void snk_redis_flush_locked(snk_redis_conn *conn, snk_redis_finish *finish)
{
    if (conn->state != SNK_REDIS_UP || conn->out.length == 0 || conn->writing || conn->clogged || conn->corks > 0)
        return;
    write_locked(conn, finish);
}

void snk_redis_unclog_locked(snk_redis_conn *conn, snk_redis_finish *finish)
{
    if (conn->state != SNK_REDIS_UP || conn->writing)
        return;
    conn->clogged = false;
    write_locked(conn, finish);
}

/* ---- The reader ---- */

void snk_redis_pass_on_locked(snk_redis_conn *conn, snk_redis_finish *finish)
{
    assert(conn->reading);
    conn->reading = false;
    snk_redis_retire_locked(conn);
    if (conn->state != SNK_REDIS_UP || conn->head == conn->tail)
        return;
    if (snk_list_is_empty(&conn->sleepers)) {
        if (conn->undriven > 0)
            snk_redis_wake_thread_locked(conn);
        return;
    }
    snk_redis_driver *next = SNK_CONTAINER(conn->sleepers.head.previous, snk_redis_driver, sleeping);
    snk_list_remove(&next->sleeping);
    /* Pairs with the acquire in sleep_locked. */
    atomic_store_explicit(&next->word, SNK_REDIS_DRIVER_LOOK, memory_order_release);
    snk_redis_finish_wake(finish, &next->word);
}

void snk_redis_offer_locked(snk_redis_conn *conn, snk_redis_finish *finish)
{
    if (conn->reading || conn->state != SNK_REDIS_UP)
        return;
    conn->reading = true;
    snk_redis_pass_on_locked(conn, finish);
}

/* Receives bytes and parses up to REPLIES_MAX of them. Without the mutex. False: the connection is over. */
static bool parse_some(snk_redis_conn *conn, redisReply *replies[REPLIES_MAX], size_t *count_out, sneck_error *error)
{
    *count_out = 0;
    while (*count_out < REPLIES_MAX) {
        redisReply *reply;
        if (!snk_redis_parser_next(&conn->parser, &reply, error))
            return false;
        if (reply == NULL)
            break;
        replies[(*count_out)++] = reply;
    }
    return true;
}

/* Looks a few times, if that pays: 0 when it did not. */
static ssize_t receive_awake(snk_redis_conn *conn, sneck_error *error)
{
    if (!snk_spin_begin(&conn->spin))
        return 0;
    ssize_t count;
    do
        count = snk_redis_wire_receive_now(&conn->wire, conn->received, sizeof conn->received, error);
    while (count == 0 && snk_spin_goes_on(&conn->spin));
    snk_spin_end(&conn->spin, count != 0);
    return count;
}

/* `few`: the answer that is awaited is all that the server has to do. */
static bool receive(snk_redis_conn *conn, bool few, int64_t until_ns, sneck_error *error)
{
    ssize_t count = 0;
    if (until_ns == 0)
        count = snk_redis_wire_receive_now(&conn->wire, conn->received, sizeof conn->received, error);
    else if (few)
        count = receive_awake(conn, error);
    if (count == 0 && until_ns != 0)
        count = snk_redis_wire_receive(&conn->wire, conn->received, sizeof conn->received, until_ns, error);
    if (count <= 0)
        return count == 0;
    return snk_redis_parser_feed(&conn->parser, conn->received, (size_t)count, error);
}

/*
 * Settles one batch. True when the role is still held afterwards. The role is passed on before anybody is woken, so that
 * the next reader is on its way while this thread still wakes the others.
 */
static bool settle_batch_locked(snk_redis_conn *conn, const snk_redis_driver *driver, redisReply *replies[],
                                size_t count, bool last)
{
    snk_redis_finish finish;
    snk_redis_finish_init(&finish);
    bool cork = conn->tail - conn->head >= SNK_REDIS_CORK_AT;
    snk_redis_complete_locked(conn, replies, count, &finish);
    bool held = !last || driver == NULL || driver->left > 0;
    if (!held)
        snk_redis_pass_on_locked(conn, &finish);
    if (snk_redis_finish_is_empty(&finish))
        return held;
    if (cork)
        conn->corks++;
    snk_redis_finish_locked(conn, &finish);
    if (cork)
        conn->corks--;
    snk_redis_flush_locked(conn, &finish);
    snk_redis_finish_locked(conn, &finish);
    return held;
}

bool snk_redis_receive_locked(snk_redis_conn *conn, const snk_redis_driver *driver, int64_t until_ns)
{
    assert(conn->reading);
    redisReply *replies[REPLIES_MAX];
    size_t count = 0;
    sneck_error error;
    bool few = conn->tail - conn->head <= SNK_REDIS_SPIN_AT;
    pthread_mutex_unlock(&conn->mutex);
    bool fine = receive(conn, few, until_ns, &error);
    bool held = true;
    bool last;
    do {
        fine = fine && parse_some(conn, replies, &count, &error);
        last = count < REPLIES_MAX;
        pthread_mutex_lock(&conn->mutex);
        if (count > 0)
            held = settle_batch_locked(conn, driver, replies, count, last);
        if (!last)
            pthread_mutex_unlock(&conn->mutex);
    } while (!last);
    if (!fine) {
        snk_redis_finish finish;
        snk_redis_finish_init(&finish);
        snk_redis_break_locked(conn, &error, &finish);
        snk_redis_finish_locked(conn, &finish);
    }
    return held;
}
