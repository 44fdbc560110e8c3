#include "redis/conn.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/ids.h"
#include "redis/conn_parts.h"
#include "redis/park.h"

#define USERS_AWAITED UINT32_C(0x80000000)

sneck_status snk_redis_conn_open(const snk_redis_settings *settings, snk_redis_lane lane, int stop_fd,
                                 snk_redis_conn **conn_out, sneck_error *error)
{
    *conn_out = NULL;
    snk_redis_conn *conn = calloc(1, sizeof *conn);
    if (conn == NULL)
        return snk_fail(error, SNECK_NO_MEMORY, ENOMEM, "redis: no memory for a connection");
    conn->settings = settings;
    conn->lane = lane;
    conn->stop_fd = stop_fd;
    conn->undriven_at_ns = SNK_NEVER_NS;
    snk_list_init(&conn->queue);
    conn->later_at_ns = SNK_NEVER_NS;
    snk_list_init(&conn->later);
    snk_list_init(&conn->sleepers);
    snk_id seed;
    if (!snk_id_random(&seed))
        seed = (snk_id){ .bytes = { 1 } };
    for (size_t i = 0; i < sizeof conn->random; i++)
        conn->random = conn->random << 8 | seed.bytes[i];
    conn->random |= 1;
    conn->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (conn->wake_fd < 0) {
        sneck_status status = snk_fail(error, SNECK_LIMIT, errno, "redis: no file descriptor for a connection");
        free(conn);
        return status;
    }
    /* On Linux neither can fail. */
    (void)pthread_mutex_init(&conn->mutex, NULL);
    (void)snk_redis_wire_init(&conn->wire, NULL);
    *conn_out = conn;
    return SNECK_OK;
}

void snk_redis_conn_arrive(snk_redis_conn *conn)
{
    /* Relaxed: only counts. Whoever arrives does so before close is called. */
    atomic_fetch_add_explicit(&conn->users, 1, memory_order_relaxed);
}

void snk_redis_conn_leave(snk_redis_conn *conn)
{
    /* Release: pairs with the acquire in await_users. */
    if (atomic_fetch_sub_explicit(&conn->users, 1, memory_order_release) == (USERS_AWAITED | 1))
        snk_unpark(&conn->users);
}

static void await_users(snk_redis_conn *conn)
{
    uint32_t users = atomic_fetch_or_explicit(&conn->users, USERS_AWAITED, memory_order_acquire) | USERS_AWAITED;
    while (users != USERS_AWAITED) {
        snk_park(&conn->users, users, SNK_NS_PER_S);
        users = atomic_load_explicit(&conn->users, memory_order_acquire);
    }
}

void snk_redis_conn_submit(snk_redis_conn *conn, snk_redis_call *const calls[], size_t count)
{
    snk_redis_finish finish;
    snk_redis_finish_init(&finish);
    int cancel_state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    snk_redis_conn_arrive(conn);
    int64_t now = snk_now_ns();
    pthread_mutex_lock(&conn->mutex);
    for (size_t i = 0; i < count; i++) {
        calls[i]->driver = NULL;
        snk_redis_enter_locked(conn, calls[i], now, &finish);
    }
    snk_redis_flush_locked(conn, &finish);
    if (conn->undriven > 0 && (!conn->thread_started || !conn->reading || conn->undriven_at_ns < conn->thread_until_ns))
        snk_redis_wake_thread_locked(conn);
    pthread_mutex_unlock(&conn->mutex);
    snk_redis_finish_run(conn, &finish);
    snk_redis_conn_leave(conn);
    pthread_setcancelstate(cancel_state, NULL);
}

void snk_redis_conn_submit_later(snk_redis_conn *conn, snk_redis_call *call, int64_t at_ns)
{
    snk_redis_finish finish;
    snk_redis_finish_init(&finish);
    int cancel_state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    snk_redis_conn_arrive(conn);
    pthread_mutex_lock(&conn->mutex);
    call->driver = NULL;
    /* The thread sends it, so there must be one; it finds the call when the mutex is free. */
    if (!conn->closing && snk_redis_wake_thread_locked(conn)) {
        call->deadline_ns = at_ns;
        call->link = (snk_link){ 0 };
        snk_list_append(&conn->later, &call->link);
        if (at_ns < conn->later_at_ns)
            conn->later_at_ns = at_ns;
    } else {
        snk_redis_enter_locked(conn, call, snk_now_ns(), &finish);
    }
    pthread_mutex_unlock(&conn->mutex);
    snk_redis_finish_run(conn, &finish);
    snk_redis_conn_leave(conn);
    pthread_setcancelstate(cancel_state, NULL);
}

/* ---- Driving ---- */

typedef struct drive_turn {
    snk_redis_driver driver;
    snk_redis_call *const *calls;
    size_t count;
    int64_t now;
} drive_turn;

/* When the first call that has no result yet must be given up; SNK_NEVER_NS when only callbacks are still running. */
static int64_t deadline_locked(const drive_turn *drive)
{
    int64_t deadline_ns = SNK_NEVER_NS;
    for (size_t i = 0; i < drive->count; i++) {
        const snk_redis_call *call = drive->calls[i];
        if (call->driver == &drive->driver && call->stage != SNK_REDIS_STAGE_DONE && call->deadline_ns < deadline_ns)
            deadline_ns = call->deadline_ns;
    }
    return deadline_ns;
}

static void expire_driven_locked(snk_redis_conn *conn, drive_turn *drive, snk_redis_finish *finish)
{
    for (size_t i = 0; i < drive->count; i++) {
        snk_redis_call *call = drive->calls[i];
        if (call->driver == &drive->driver && call->stage != SNK_REDIS_STAGE_DONE && call->deadline_ns <= drive->now)
            snk_redis_expire_locked(conn, call, drive->now, finish);
    }
    /* Perhaps this driver was just woken to become the reader, and leaves instead. */
    snk_redis_offer_locked(conn, finish);
}

/* The reader's turn: until everything of this driver is done, or its time is over. */
static void read_locked(snk_redis_conn *conn, drive_turn *drive, int64_t deadline_ns, snk_redis_finish *finish)
{
    conn->reading = true;
    bool held = true;
    while (held && drive->driver.left > 0 && conn->state == SNK_REDIS_UP && drive->now < deadline_ns) {
        held = snk_redis_receive_locked(conn, &drive->driver, deadline_ns);
        if (drive->driver.left > 0)
            drive->now = snk_now_ns();
    }
    if (held)
        snk_redis_pass_on_locked(conn, finish);
}

/* Sleeps until woken. True: all is done, and the mutex is free; otherwise it is held. */
static bool sleep_locked(snk_redis_conn *conn, drive_turn *drive, int64_t deadline_ns)
{
    snk_redis_driver *driver = &drive->driver;
    /* Relaxed: nobody else stores it before this driver is in the list, and that is under the mutex. */
    atomic_store_explicit(&driver->word, SNK_REDIS_DRIVER_ASLEEP, memory_order_relaxed);
    snk_list_append(&conn->sleepers, &driver->sleeping);
    pthread_mutex_unlock(&conn->mutex);
    snk_park(&driver->word, SNK_REDIS_DRIVER_ASLEEP, deadline_ns - drive->now);
    /* Acquire: pairs with the releases in snk_redis_driver_step_locked and snk_redis_pass_on_locked. */
    if (atomic_load_explicit(&driver->word, memory_order_acquire) == SNK_REDIS_DRIVER_DONE)
        return true;
    drive->now = snk_now_ns();
    pthread_mutex_lock(&conn->mutex);
    snk_list_remove(&driver->sleeping);
    return false;
}

static void drive_all(snk_redis_conn *conn, drive_turn *drive)
{
    snk_redis_finish finish;
    snk_redis_finish_init(&finish);
    pthread_mutex_lock(&conn->mutex);
    for (size_t i = 0; i < drive->count; i++) {
        drive->calls[i]->driver = &drive->driver;
        snk_redis_enter_locked(conn, drive->calls[i], drive->now, &finish);
    }
    snk_redis_flush_locked(conn, &finish);
    for (;;) {
        snk_redis_finish_locked(conn, &finish);
        if (drive->driver.left == 0)
            break;
        int64_t deadline_ns = deadline_locked(drive);
        if (drive->now >= deadline_ns)
            expire_driven_locked(conn, drive, &finish);
        else if (conn->state == SNK_REDIS_UP && !conn->reading && deadline_ns != SNK_NEVER_NS)
            read_locked(conn, drive, deadline_ns, &finish);
        else if (sleep_locked(conn, drive, deadline_ns))
            return;
    }
    pthread_mutex_unlock(&conn->mutex);
}

void snk_redis_conn_drive(snk_redis_conn *conn, snk_redis_call *const calls[], size_t count)
{
    assert(count > 0 && count <= SNK_REDIS_DRIVE_MAX);
    int cancel_state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    snk_redis_conn_arrive(conn);
    drive_turn drive = { .driver = { .left = count }, .calls = calls, .count = count, .now = snk_now_ns() };
    drive_all(conn, &drive);
    snk_redis_conn_leave(conn);
    pthread_setcancelstate(cancel_state, NULL);
}

/* ---- The rest ---- */

void snk_redis_conn_describe(snk_redis_conn *conn, snk_redis_server *server_out)
{
    pthread_mutex_lock(&conn->mutex);
    *server_out = conn->server;
    server_out->in_flight = conn->tail - conn->head + conn->queued;
    pthread_mutex_unlock(&conn->mutex);
}

void snk_redis_conn_give_up(snk_redis_conn *conn)
{
    snk_redis_finish finish;
    snk_redis_finish_init(&finish);
    sneck_error why;
    snk_fail(&why, SNECK_UNAVAILABLE, ETIMEDOUT, "%s: the connection seems dead and is made anew",
             conn->settings->where);
    snk_redis_conn_arrive(conn);
    pthread_mutex_lock(&conn->mutex);
    snk_redis_break_locked(conn, &why, &finish);
    pthread_mutex_unlock(&conn->mutex);
    snk_redis_finish_run(conn, &finish);
    snk_redis_conn_leave(conn);
}

void snk_redis_conn_begin_close(snk_redis_conn *conn)
{
    snk_redis_finish finish;
    snk_redis_finish_init(&finish);
    sneck_error why;
    snk_fail(&why, SNECK_UNAVAILABLE, ECANCELED, "%s: the client is being closed", conn->settings->where);
    snk_redis_conn_arrive(conn);
    pthread_mutex_lock(&conn->mutex);
    if (!conn->closing) {
        conn->closing = true;
        snk_redis_break_locked(conn, &why, &finish);
        snk_redis_fail_queue_locked(conn, &why, &finish);
        snk_redis_enter_later_locked(conn, SNK_NEVER_NS, &finish);
        if (conn->thread_started)
            snk_redis_wake_thread_locked(conn);
    }
    pthread_mutex_unlock(&conn->mutex);
    snk_redis_finish_run(conn, &finish);
    snk_redis_conn_leave(conn);
}

void snk_redis_conn_close(snk_redis_conn *conn)
{
    if (conn == NULL)
        return;
    snk_redis_conn_begin_close(conn);
    snk_redis_thread_join(conn);
    await_users(conn);
    assert(conn->head == conn->tail && snk_list_is_empty(&conn->queue) && snk_list_is_empty(&conn->later));
    snk_redis_parser_deinit(&conn->parser);
    snk_redis_wire_deinit(&conn->wire);
    pthread_mutex_destroy(&conn->mutex);
    close(conn->wake_fd);
    free(conn->slots);
    snk_redis_bytes_free(&conn->out);
    snk_redis_bytes_free(&conn->sending);
    free(conn);
}

void snk_redis_conn_abandon(snk_redis_conn *conn)
{
    close(conn->wake_fd);
    int fd = atomic_load_explicit(&conn->wire.fd, memory_order_relaxed);
    if (fd >= 0)
        close(fd);
}
