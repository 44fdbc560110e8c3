/* Calls on their way through a connection: the queue, the ring of slots, and how each call ends. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "redis/backoff.h"
#include "redis/conn_parts.h"
#include "redis/park.h"

#define SLOTS_FIRST 64
#define TIMEOUT_NS_MAX (3600 * SNK_NS_PER_S)
#define IDLE_NS (10 * SNK_NS_PER_MS) /* after so long a silence, look whether the server has hung up before sending */

/* ---- Endings ---- */

void snk_redis_finish_init(snk_redis_finish *finish)
{
    finish->wake_count = 0;
    snk_list_init(&finish->callbacks);
}

static void wake_all(snk_redis_finish *finish)
{
    for (size_t i = 0; i < finish->wake_count; i++)
        snk_unpark(finish->wakes[i]);
    finish->wake_count = 0;
}

void snk_redis_finish_wake(snk_redis_finish *finish, _Atomic uint32_t *word)
{
    if (finish->wake_count == SNK_REDIS_WAKES_MAX)
        wake_all(finish);
    finish->wakes[finish->wake_count++] = word;
}

void snk_redis_driver_step_locked(snk_redis_driver *driver, snk_redis_finish *finish)
{
    assert(driver->left > 0);
    if (--driver->left > 0)
        return;
    bool asleep = snk_link_is_linked(&driver->sleeping);
    snk_list_remove(&driver->sleeping);
    /* Pairs with the acquire in sleep_locked: the driver then sees the results and leaves without the mutex. */
    atomic_store_explicit(&driver->word, SNK_REDIS_DRIVER_DONE, memory_order_release);
    if (asleep)
        snk_redis_finish_wake(finish, &driver->word);
}

void snk_redis_finish_run(snk_redis_conn *conn, snk_redis_finish *finish)
{
    wake_all(finish);
    snk_link *link;
    while ((link = snk_list_first(&finish->callbacks)) != NULL) {
        snk_redis_call *call = SNK_CONTAINER(link, snk_redis_call, link);
        snk_redis_driver *driver = call->driver;
        snk_list_remove(link);
        call->done(call); /* from here on the call may be anything */
        if (driver == NULL)
            continue;
        pthread_mutex_lock(&conn->mutex);
        snk_redis_driver_step_locked(driver, finish);
        pthread_mutex_unlock(&conn->mutex);
        wake_all(finish);
    }
}

static void settle_locked(snk_redis_conn *conn, snk_redis_call *call, snk_redis_finish *finish)
{
    call->stage = SNK_REDIS_STAGE_DONE;
    if (call->driver == NULL) {
        assert(conn->undriven > 0);
        conn->undriven--;
        conn->patient -= call->patient;
    }
    if (call->done != NULL)
        snk_list_append(&finish->callbacks, &call->link);
    else if (call->driver != NULL)
        snk_redis_driver_step_locked(call->driver, finish);
}

static void settle_not_sent_locked(snk_redis_conn *conn, snk_redis_call *call, const sneck_error *why,
                                   snk_redis_finish *finish)
{
    call->outcome = SNK_REDIS_NOT_SENT;
    call->sent_at_ns = 0;
    call->reply_at_ns = snk_now_ns();
    snk_fail_as(&call->error, why);
    settle_locked(conn, call, finish);
}

static void settle_uncertain_locked(snk_redis_conn *conn, snk_redis_call *call, const sneck_error *why,
                                    snk_redis_finish *finish)
{
    call->outcome = SNK_REDIS_UNCERTAIN;
    call->reply_at_ns = snk_now_ns();
    snk_fail(&call->error, SNECK_UNKNOWN, why->cause, "no answer, so nobody knows whether it happened: %.180s",
             why->message);
    settle_locked(conn, call, finish);
}

/* ---- Beginnings ---- */

static snk_redis_slot *slot_at(const snk_redis_conn *conn, uint64_t position)
{
    return &conn->slots[position & (conn->slot_capacity - 1)];
}

static bool grow_slots(snk_redis_conn *conn)
{
    size_t capacity = conn->slot_capacity > 0 ? conn->slot_capacity * 2 : SLOTS_FIRST;
    snk_redis_slot *slots = calloc(capacity, sizeof *slots);
    if (slots == NULL)
        return false;
    for (uint64_t i = conn->head; i != conn->tail; i++)
        slots[i & (capacity - 1)] = *slot_at(conn, i);
    free(conn->slots);
    conn->slots = slots;
    conn->slot_capacity = capacity;
    return true;
}

/* Adds a command whose reply is for `call` (NULL: for nobody). False when there is no memory. */
static bool add_slot_locked(snk_redis_conn *conn, const char *command, size_t length, snk_redis_slot slot)
{
    if (conn->tail - conn->head == conn->slot_capacity && !grow_slots(conn))
        return false;
    if (!snk_redis_bytes_add(&conn->out, command, length))
        return false;
    slot.start = conn->stream_end;
    *slot_at(conn, conn->tail++) = slot;
    conn->stream_end += length;
    return true;
}

/* Puts a call into the stream of an open connection. False when there is no memory. */
static bool stream_locked(snk_redis_conn *conn, snk_redis_call *call, int64_t now)
{
    static const char asking[] = "*1\r\n$6\r\nASKING\r\n";
    size_t asking_length = call->asking ? sizeof asking - 1 : 0;
    snk_redis_slot slot = { .at_ns = now, .deadline_ns = call->deadline_ns };
    if (call->asking && !add_slot_locked(conn, asking, asking_length, slot))
        return false;
    slot.call = call;
    if (!add_slot_locked(conn, call->command, call->command_length, slot)) {
        /* Left alone it would be for somebody else's command, which then ran where its slot is not served yet. */
        conn->tail -= call->asking;
        conn->out.length -= asking_length;
        conn->stream_end -= asking_length;
        return false;
    }
    call->stage = SNK_REDIS_STAGE_STREAMED;
    call->sent_at_ns = now;
    call->position = conn->tail - 1;
    return true;
}

void snk_redis_check_idle_locked(snk_redis_conn *conn, int64_t now, snk_redis_finish *finish)
{
    if (conn->head != conn->tail || conn->reading || conn->writing || now - conn->received_at_ns < IDLE_NS)
        return;
    if (!snk_redis_wire_is_over(&conn->wire))
        return;
    sneck_error why;
    snk_fail(&why, SNECK_UNAVAILABLE, 0, "%s: the server closed the connection", conn->settings->where);
    snk_redis_break_locked(conn, &why, finish);
}

static sneck_status admit_locked(const snk_redis_conn *conn, const snk_redis_call *call, sneck_error *error)
{
    const char *where = conn->settings->where;
    if (conn->closing)
        return snk_fail(error, SNECK_UNAVAILABLE, ECANCELED, "%s: the client is being closed", where);
    if (call->command == NULL)
        return snk_fail(error, SNECK_INVALID, 0, "%s: a call without a command", where);
    if (conn->tail - conn->head + conn->queued >= SNK_REDIS_IN_FLIGHT_MAX)
        return snk_fail(error, SNECK_LIMIT, 0, "%s: %d calls are waiting for answers", where, SNK_REDIS_IN_FLIGHT_MAX);
    if (conn->out.length > SNK_REDIS_QUEUED_BYTES_MAX)
        return snk_fail(error, SNECK_LIMIT, 0, "%s: the server does not read, and %d bytes wait", where,
                        SNK_REDIS_QUEUED_BYTES_MAX);
    return SNECK_OK;
}

void snk_redis_enter_locked(snk_redis_conn *conn, snk_redis_call *call, int64_t now, snk_redis_finish *finish)
{
    int64_t timeout_ns = call->timeout_ns > 0 ? call->timeout_ns : conn->settings->command_timeout_ns;
    call->deadline_ns = snk_time_add(now, timeout_ns < TIMEOUT_NS_MAX ? timeout_ns : TIMEOUT_NS_MAX);
    call->link = (snk_link){ 0 };
    if (call->driver == NULL) {
        conn->undriven++;
        conn->patient += call->patient;
        if (call->deadline_ns < conn->undriven_at_ns)
            conn->undriven_at_ns = call->deadline_ns;
    }
    sneck_error error;
    if (admit_locked(conn, call, &error) != SNECK_OK) {
        settle_not_sent_locked(conn, call, &error, finish);
        return;
    }
    if (conn->state == SNK_REDIS_UP)
        snk_redis_check_idle_locked(conn, now, finish);
    if (conn->state == SNK_REDIS_UP) {
        if (stream_locked(conn, call, now))
            return;
        snk_fail(&error, SNECK_NO_MEMORY, ENOMEM, "%s: no memory to send a command", conn->settings->where);
        settle_not_sent_locked(conn, call, &error, finish);
        return;
    }
    call->stage = SNK_REDIS_STAGE_QUEUED;
    snk_list_append(&conn->queue, &call->link);
    conn->queued++;
    if (snk_redis_wake_thread_locked(conn))
        return;
    snk_fail(&error, SNECK_NO_MEMORY, EAGAIN, "%s: cannot start a thread", conn->settings->where);
    snk_redis_fail_queue_locked(conn, &error, finish);
}

void snk_redis_enter_later_locked(snk_redis_conn *conn, int64_t until_ns, snk_redis_finish *finish)
{
    if (until_ns < conn->later_at_ns)
        return;
    int64_t now = snk_now_ns();
    int64_t next = SNK_NEVER_NS;
    snk_link *following;
    for (snk_link *link = snk_list_first(&conn->later); link != NULL; link = following) {
        following = snk_list_next(&conn->later, link);
        snk_redis_call *call = SNK_CONTAINER(link, snk_redis_call, link);
        if (call->deadline_ns <= until_ns) {
            snk_list_remove(link);
            snk_redis_enter_locked(conn, call, now, finish);
        } else if (call->deadline_ns < next) {
            next = call->deadline_ns;
        }
    }
    conn->later_at_ns = next;
}

static snk_redis_call *take_queued_locked(snk_redis_conn *conn)
{
    snk_link *link = snk_list_first(&conn->queue);
    if (link == NULL)
        return NULL;
    snk_list_remove(link);
    conn->queued--;
    return SNK_CONTAINER(link, snk_redis_call, link);
}

void snk_redis_stream_queue_locked(snk_redis_conn *conn, int64_t now, snk_redis_finish *finish)
{
    snk_redis_call *call;
    while ((call = take_queued_locked(conn)) != NULL) {
        if (stream_locked(conn, call, now))
            continue;
        sneck_error error;
        snk_fail(&error, SNECK_NO_MEMORY, ENOMEM, "%s: no memory to send a command", conn->settings->where);
        settle_not_sent_locked(conn, call, &error, finish);
    }
}

void snk_redis_fail_queue_locked(snk_redis_conn *conn, const sneck_error *why, snk_redis_finish *finish)
{
    snk_redis_call *call;
    while ((call = take_queued_locked(conn)) != NULL)
        settle_not_sent_locked(conn, call, why, finish);
}

/* ---- Answers ---- */

void snk_redis_complete_locked(snk_redis_conn *conn, redisReply *replies[], size_t count, snk_redis_finish *finish)
{
    int64_t now = snk_now_ns();
    conn->received_at_ns = now;
    conn->attempts = 0;
    for (size_t i = 0; i < count; i++) {
        if (conn->state == SNK_REDIS_UP && conn->head == conn->tail) {
            sneck_error why;
            snk_fail(&why, SNECK_UNAVAILABLE, 0, "%s: an answer to no question", conn->settings->where);
            snk_redis_break_locked(conn, &why, finish);
        }
        snk_redis_call *call = conn->state == SNK_REDIS_UP ? slot_at(conn, conn->head++)->call : NULL;
        if (call == NULL) {
            freeReplyObject(replies[i]);
            continue;
        }
        call->outcome = SNK_REDIS_REPLY;
        call->reply = replies[i];
        call->run = conn->server.run;
        call->reply_at_ns = now;
        call->lingered = call->position < conn->lingered;
        snk_ok(&call->error);
        settle_locked(conn, call, finish);
    }
}

/* ---- Giving up ---- */

int64_t snk_redis_stale_at_locked(const snk_redis_conn *conn)
{
    if (conn->state != SNK_REDIS_UP || conn->head == conn->tail)
        return SNK_NEVER_NS;
    const snk_redis_slot *oldest = slot_at(conn, conn->head);
    int64_t since = oldest->at_ns > conn->received_at_ns ? oldest->at_ns : conn->received_at_ns;
    int64_t stale_at = snk_time_add(since, conn->settings->command_timeout_ns);
    return stale_at > oldest->deadline_ns ? stale_at : oldest->deadline_ns;
}

void snk_redis_expire_locked(snk_redis_conn *conn, snk_redis_call *call, int64_t now, snk_redis_finish *finish)
{
    const char *where = conn->settings->where;
    sneck_error why;
    if (call->stage == SNK_REDIS_STAGE_QUEUED) {
        snk_list_remove(&call->link);
        conn->queued--;
        const sneck_error *last = &conn->server.last_error;
        snk_fail(&why, SNECK_UNAVAILABLE, ETIMEDOUT, "%s: no connection in time%s%.120s", where,
                 last->status != SNECK_OK ? "; last: " : "", last->status != SNECK_OK ? last->message : "");
        settle_not_sent_locked(conn, call, &why, finish);
        return;
    }
    if (call->stage != SNK_REDIS_STAGE_STREAMED)
        return;
    snk_fail(&why, SNECK_UNAVAILABLE, ETIMEDOUT, "%s: the server did not answer in time", where);
    if (now >= snk_redis_stale_at_locked(conn)) {
        snk_redis_break_locked(conn, &why, finish);
        return;
    }
    slot_at(conn, call->position)->call = NULL;
    settle_uncertain_locked(conn, call, &why, finish);
    /* From now on somebody must notice when the server stays silent. */
    snk_redis_wake_thread_locked(conn);
}

void snk_redis_retire_locked(snk_redis_conn *conn)
{
    if (conn->state != SNK_REDIS_BROKEN || conn->reading || conn->writing)
        return;
    snk_redis_wire_close(&conn->wire);
    snk_redis_parser_deinit(&conn->parser);
    conn->sending.length = 0;
    conn->sent = 0;
    conn->clogged = false;
    conn->state = SNK_REDIS_DOWN;
    if (!snk_list_is_empty(&conn->queue))
        snk_redis_wake_thread_locked(conn);
}

void snk_redis_break_locked(snk_redis_conn *conn, const sneck_error *why, snk_redis_finish *finish)
{
    if (conn->state != SNK_REDIS_UP)
        return;
    conn->state = SNK_REDIS_BROKEN;
    conn->server.connected = false;
    conn->server.failures++;
    conn->server.last_error = *why;
    int64_t retry_at_ns = snk_now_ns() + snk_redis_backoff_ns(conn->attempts, &conn->random);
    if (conn->retry_at_ns < retry_at_ns)
        conn->retry_at_ns = retry_at_ns;
    snk_redis_wire_hang_up(&conn->wire);
    if (conn->thread_started)
        snk_redis_wake_thread_locked(conn); /* it may be waiting as the writer, which hanging up does not end */
    for (; conn->head != conn->tail; conn->head++) {
        const snk_redis_slot *slot = slot_at(conn, conn->head);
        if (slot->call == NULL)
            continue;
        if (slot->start >= conn->left)
            settle_not_sent_locked(conn, slot->call, why, finish);
        else
            settle_uncertain_locked(conn, slot->call, why, finish);
    }
    conn->out.length = 0;
    conn->left = conn->stream_end;
    snk_redis_retire_locked(conn);
}
