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

#include "base/clock.h"
#include "base/error.h"
#include "engine/renewal.h"
#include "store/postgres/dial.h"
#include "store/postgres/postgres.h"

#define PROBE "probe"

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
        snk_id claim;
        if (strcmp(message->extra, PROBE) == 0)
            (void)atomic_fetch_add(&store->probes, 1);
        else if (read_id(message->extra, &claim))
            snk_sql_waiters_tell(&store->waiters, &claim);
        PQfreemem(message);
    }
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

/* SNK_SQL_SILENT: something went wrong, and it is to be tried again. */
static snk_sql_hearing subscribe(snk_pg_store *store, snk_pg_conn *conn)
{
    char text[sizeof store->channel + 16];
    (void)snprintf(text, sizeof text, "LISTEN \"%s\"", store->channel);
    uint32_t probes = atomic_load(&store->probes);
    if (!ask_connection(store, conn, text) || !send_probe(store))
        return SNK_SQL_SILENT;
    int64_t until_ns = snk_time_add(snk_now_ns(), SNK_PG_PROBE_NS);
    heard result = HEARD_SOMETHING;
    while (result == HEARD_SOMETHING && atomic_load(&store->probes) == probes)
        result = hear(store, conn->pg, until_ns);
    if (result == HEARD_SOMETHING)
        return SNK_SQL_HEARS;
    if (result == HEARD_END || snk_sql_ear_is_stopping(&store->ear, 0) || !ask_connection(store, conn, ""))
        return SNK_SQL_SILENT;
    /* With the answer of a session that was only slow, the message comes too. */
    if (atomic_load(&store->probes) != probes)
        return SNK_SQL_HEARS;
    (void)ask_connection(store, conn, "UNLISTEN *"); /* whosever session that is */
    return SNK_SQL_DEAF;
}

/* Hears messages until the connection is gone, or it is to stop. */
static void hear_all(snk_pg_store *store, snk_pg_conn *conn)
{
    for (;;) {
        heard result = hear(store, conn->pg, snk_time_add(snk_now_ns(), SNK_PG_SILENCE_NS));
        if (result == HEARD_END || snk_sql_ear_is_stopping(&store->ear, 0))
            return;
        /* Silence may be that of a connection which nobody has told us is gone. */
        if (result == HEARD_NOTHING && !ask_connection(store, conn, ""))
            return;
    }
}

/* Hears as long as the connection lasts. Those who wait know from the state how often to look, and are told of each change. */
static void listen_on(snk_pg_store *store, snk_pg_conn *conn)
{
    snk_sql_ear_set(&store->ear, SNK_SQL_HEARS);
    snk_sql_waiters_tell_all(&store->waiters); /* what was said while nobody listened was missed */
    hear_all(store, conn);
    snk_sql_ear_set(&store->ear, SNK_SQL_SILENT);
    if (!snk_sql_ear_is_stopping(&store->ear, 0))
        snk_sql_waiters_tell_all(&store->waiters);
}

/* Connects once, and listens as long as it lasts. SNK_SQL_HEARS: it did, for a while. */
static snk_sql_hearing listen_once(snk_pg_store *store)
{
    if (atomic_load(&store->target->is_pooled))
        return SNK_SQL_DEAF;
    sneck_error error;
    int64_t until_ns = snk_time_add(snk_now_ns(), store->options.timeout_ns);
    snk_pg_conn conn = { .pg = NULL };
    conn.pg = snk_pg_dial(store->target, store->options.where, store->ear.stop_fd, until_ns, &error);
    if (conn.pg == NULL)
        return SNK_SQL_SILENT;
    atomic_store(&store->ear.socket, PQsocket(conn.pg));
    snk_sql_hearing result = atomic_load(&store->target->is_pooled) ? SNK_SQL_DEAF : subscribe(store, &conn);
    if (result == SNK_SQL_HEARS)
        listen_on(store, &conn);
    atomic_store(&store->ear.socket, -1);
    snk_pg_hang_up(conn.pg);
    return result;
}

static void become_deaf(snk_pg_store *store)
{
    if (atomic_load(&store->ear.state) == SNK_SQL_DEAF)
        return;
    snk_pg_log(store, SNECK_LOG_WARNING, "event=polling server=\"%s\" reason=%s", store->options.where,
               atomic_load(&store->target->is_pooled) ? "pooler" : "no-messages");
    snk_sql_ear_set(&store->ear, SNK_SQL_DEAF);
    snk_sql_waiters_tell_all(&store->waiters);
}

static void *run(void *argument)
{
    snk_pg_store *store = argument;
    unsigned failures = 0;
    unsigned deaf = 0; /* tries in a row */
    int64_t pause_ns = 0;
    do {
        snk_sql_hearing result = listen_once(store);
        failures = result == SNK_SQL_HEARS ? 1 : failures + 1;
        deaf = result == SNK_SQL_HEARS ? 0 : result == SNK_SQL_DEAF ? deaf + 1 : deaf;
        bool is_pooled = atomic_load(&store->target->is_pooled);
        /* One message that did not come may have been an accident, and what stands between may be taken away. */
        if (deaf > 0 && (is_pooled || deaf >= SNK_PG_DEAF_TRIES))
            become_deaf(store);
        if (deaf > 0 && is_pooled)
            break;
        pause_ns = deaf >= SNK_PG_DEAF_TRIES ? SNK_PG_DEAF_NS : snk_backoff_ns(failures, SNK_BACKOFF_NS_MAX);
    } while (!snk_sql_ear_is_stopping(&store->ear, pause_ns));
    return NULL;
}

/* ---- What the store wants ---- */

bool snk_pg_listen(snk_store *base)
{
    snk_pg_store *store = snk_pg_store_of(base);
    return snk_sql_ear_listen(&store->ear, run, store);
}

bool snk_pg_wait(snk_store *base, uint64_t ticket, _Atomic uint32_t *word, uint32_t expected, int64_t until_ns)
{
    return snk_bell_wait(&snk_pg_store_of(base)->waiters.bell, ticket, word, expected, until_ns);
}
