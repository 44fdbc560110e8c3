/*
 * Messages. A thread listens on a channel of this client, on a connection of its own; a message brings the id of a claim
 * that was granted. Whatever it says, all it does is that a claim of ours which waits is asked about: so a forged one
 * costs a question, and a lost one is made good by the next look.
 *
 * Whether messages come at all is tried: through a pooler that shares sessions out they never do, and nobody would say so.
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/futex.h"
#include "base/thread.h"
#include "engine/renewal.h"
#include "store/postgres/dial.h"
#include "store/postgres/postgres.h"

/* How long the first claim that waits is held up at most until messages are heard. */
#define LISTEN_WAIT_NS (1 * SNK_NS_PER_S)
#define PROBE "probe"

static void set_state(snk_pg_ear *ear, snk_pg_hearing state)
{
    atomic_store(&ear->state, (uint32_t)state);
    snk_futex_wake(&ear->state, INT32_MAX, false);
}

static void become_deaf(snk_pg_store *store, const char *reason)
{
    snk_pg_log(store, SNECK_LOG_WARNING, "event=polling server=\"%s\" reason=%s", store->options.where, reason);
    set_state(&store->ear, SNK_PG_DEAF);
}

/* ---- What is heard ---- */

/* Ids come in the form of UUIDs. */
static bool read_id(const char *text, snk_id *id_out)
{
    char digits[SNK_ID_TEXT_SIZE];
    size_t length = 0;
    for (; *text != '\0'; text++) {
        if (*text == '-')
            continue;
        if (length == sizeof digits - 1)
            return false;
        digits[length++] = *text;
    }
    digits[length] = '\0';
    return snk_id_from_hex(id_out, digits);
}

static void take_messages(snk_pg_store *store, PGconn *pg)
{
    PGnotify *message = NULL;
    while ((message = PQnotifies(pg)) != NULL) {
        char name[SNK_NAME_LENGTH_MAX + 1];
        snk_id claim;
        if (strcmp(message->extra, PROBE) == 0)
            (void)atomic_fetch_add(&store->ear.probes, 1);
        else if (read_id(message->extra, &claim) && snk_waiting_find(&store->waiting, &claim, name))
            snk_bell_ring(&store->bell, name, &claim);
        PQfreemem(message);
    }
}

static bool is_stopping(const snk_pg_ear *ear)
{
    struct pollfd stop = { .fd = ear->stop_fd, .events = POLLIN };
    return poll(&stop, 1, 0) != 0;
}

typedef enum heard {
    HEARD_SOMETHING,
    HEARD_NOTHING, /* until the time was over, or it is to stop */
    HEARD_END      /* the connection is gone */
} heard;

static heard hear(snk_pg_store *store, PGconn *pg, int64_t until_ns)
{
    if (snk_pg_poll(PQsocket(pg), POLLIN, store->ear.stop_fd, until_ns) == 0)
        return HEARD_NOTHING;
    if (PQconsumeInput(pg) == 0)
        return HEARD_END;
    (void)PQisBusy(pg); /* lets libpq look at what it has read */
    take_messages(store, pg);
    return PQstatus(pg) == CONNECTION_OK ? HEARD_SOMETHING : HEARD_END;
}

/* ---- The connection ---- */

static bool ask_connection(snk_pg_store *store, snk_pg_conn *conn, const char *text)
{
    snk_pg_reply reply;
    snk_pg_reply_init(&reply);
    int64_t until_ns = snk_time_add(snk_now_ns(), store->options.timeout_ns);
    snk_pg_conn_query(conn, store->options.where, text, until_ns, &reply);
    snk_pg_reply_clear(&reply);
    take_messages(store, conn->pg);
    return reply.outcome == SNK_SQL_ANSWERED;
}

/* Sends ourselves a message, on another connection: on the same one it would come back even through a pooler. */
static bool send_probe(snk_pg_store *store)
{
    snk_pg_reply reply;
    const char *const values[] = { store->channel, PROBE };
    snk_pg_run(store, SNK_PG_NOTIFY, values, &reply);
    snk_pg_reply_clear(&reply);
    return reply.outcome == SNK_SQL_ANSWERED;
}

/* SNK_PG_SILENT: something went wrong, and it is to be tried again. */
static snk_pg_hearing subscribe(snk_pg_store *store, snk_pg_conn *conn)
{
    char text[sizeof store->channel + 16];
    (void)snprintf(text, sizeof text, "LISTEN \"%s\"", store->channel);
    uint32_t probes = atomic_load(&store->ear.probes);
    if (!ask_connection(store, conn, text) || !send_probe(store))
        return SNK_PG_SILENT;
    int64_t until_ns = snk_time_add(snk_now_ns(), SNK_PG_PROBE_NS);
    heard result = HEARD_SOMETHING;
    while (result == HEARD_SOMETHING && atomic_load(&store->ear.probes) == probes)
        result = hear(store, conn->pg, until_ns);
    if (result == HEARD_SOMETHING)
        return SNK_PG_HEARS;
    /* A connection that lives, and still the message did not come: they never will. */
    if (result == HEARD_NOTHING && !is_stopping(&store->ear) && ask_connection(store, conn, "UNLISTEN *"))
        return atomic_load(&store->ear.probes) == probes ? SNK_PG_DEAF : SNK_PG_HEARS;
    return SNK_PG_SILENT;
}

/* Hears messages until the connection is gone, or it is to stop. */
static void hear_all(snk_pg_store *store, snk_pg_conn *conn)
{
    for (;;) {
        heard result = hear(store, conn->pg, snk_time_add(snk_now_ns(), SNK_PG_SILENCE_NS));
        if (result == HEARD_END || is_stopping(&store->ear))
            return;
        /* Silence may be that of a connection which nobody has told us is gone. */
        if (result == HEARD_NOTHING && !ask_connection(store, conn, ""))
            return;
    }
}

/* Connects once, and listens as long as it lasts. False: it did not get that far. */
static bool listen_once(snk_pg_store *store, bool is_first)
{
    sneck_error error;
    int64_t until_ns = snk_time_add(snk_now_ns(), store->options.timeout_ns);
    snk_pg_conn conn = { .pg = NULL };
    conn.pg = snk_pg_dial(store->target, store->options.where, store->ear.stop_fd, until_ns, &error);
    if (conn.pg == NULL)
        return false;
    atomic_store(&store->ear.socket, PQsocket(conn.pg));
    snk_pg_hearing state = atomic_load(&store->target->is_pooled) ? SNK_PG_DEAF : subscribe(store, &conn);
    if (state == SNK_PG_DEAF) {
        become_deaf(store, "pooler");
    } else if (state == SNK_PG_HEARS) {
        set_state(&store->ear, SNK_PG_HEARS);
        /* What was said while nobody listened was missed; those who wait for the first time see to that themselves. */
        if (!is_first)
            snk_waiting_tell(&store->waiting, NULL, snk_bell_ring, &store->bell);
        hear_all(store, &conn);
        set_state(&store->ear, SNK_PG_SILENT);
    }
    atomic_store(&store->ear.socket, -1);
    snk_pg_hang_up(conn.pg);
    return state == SNK_PG_HEARS;
}

static void *run(void *argument)
{
    snk_pg_store *store = argument;
    snk_pg_ear *ear = &store->ear;
    bool is_first = true;
    unsigned failures = 0;
    while (!is_stopping(ear) && atomic_load(&ear->state) != SNK_PG_DEAF) {
        bool heard_some = listen_once(store, is_first);
        is_first = is_first && !heard_some;
        failures = heard_some ? 1 : failures + 1;
        int64_t pause_ns = snk_backoff_ns(failures, SNK_BACKOFF_NS_MAX);
        (void)snk_pg_poll(ear->stop_fd, POLLIN, -1, snk_time_add(snk_now_ns(), pause_ns));
    }
    return NULL;
}

/* ---- What the store wants ---- */

void snk_pg_ear_init(snk_pg_ear *ear)
{
    (void)pthread_mutex_init(&ear->mutex, NULL);
    ear->stop_fd = -1;
    atomic_init(&ear->socket, -1);
}

void snk_pg_ear_deinit(snk_pg_store *store)
{
    snk_pg_ear *ear = &store->ear;
    if (ear->is_started) {
        (void)eventfd_write(ear->stop_fd, 1);
        (void)pthread_join(ear->thread, NULL);
    }
    if (ear->stop_fd >= 0)
        (void)close(ear->stop_fd);
    (void)pthread_mutex_destroy(&ear->mutex);
}

/* Without a descriptor or a thread, those who wait look often. */
static void start(snk_pg_store *store)
{
    snk_pg_ear *ear = &store->ear;
    (void)pthread_mutex_lock(&ear->mutex);
    if (!ear->is_started) {
        if (ear->stop_fd < 0)
            ear->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        ear->is_started = ear->stop_fd >= 0 && snk_thread_create(&ear->thread, NULL, run, store) == 0;
    }
    (void)pthread_mutex_unlock(&ear->mutex);
}

bool snk_pg_listen(snk_pg_store *store, int64_t wait_ns, bool *ask_again_out)
{
    snk_pg_ear *ear = &store->ear;
    *ask_again_out = false;
    if (atomic_load(&ear->state) != SNK_PG_SILENT)
        return atomic_load(&ear->state) == SNK_PG_HEARS;
    start(store);
    int64_t left_ns = wait_ns < LISTEN_WAIT_NS ? wait_ns : LISTEN_WAIT_NS;
    int64_t until_ns = snk_time_add(snk_now_ns(), left_ns);
    while (atomic_load(&ear->state) == SNK_PG_SILENT && left_ns > 0) {
        const snk_futex_word word = { .word = &ear->state, .expected = SNK_PG_SILENT };
        (void)snk_futex_wait_any(&word, 1, left_ns);
        left_ns = until_ns - snk_now_ns();
    }
    *ask_again_out = atomic_load(&ear->state) == SNK_PG_HEARS;
    return *ask_again_out;
}

bool snk_pg_wait(snk_store *base, uint64_t ticket, _Atomic uint32_t *word, uint32_t expected, int64_t until_ns)
{
    return snk_bell_wait(&snk_pg_store_of(base)->bell, ticket, word, expected, until_ns);
}
