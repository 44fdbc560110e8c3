/* Acquire, renew and release: requests as calls of functions on the server, and what they return as answers. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "store/postgres/postgres.h"

#define NUMBER_SIZE 24

/* Up, because what the store keeps must not be shorter than what the caller believes. */
static int64_t us_of(int64_t ns)
{
    return (ns + SNK_NS_PER_US - 1) / SNK_NS_PER_US;
}

static const char *flag(bool on)
{
    return on ? "t" : "f";
}

/* ---- One request ---- */

/* The texts of a request's parameters. */
typedef struct texts {
    char resource[SNK_PG_RESOURCE_SIZE];
    char claim[SNK_ID_TEXT_SIZE];
    char lease[NUMBER_SIZE]; /* or tombstone */
    char tokens[NUMBER_SIZE];
    char pid[NUMBER_SIZE];
    char mode[NUMBER_SIZE];
    char units[NUMBER_SIZE];
    char beside[SNK_ID_TEXT_SIZE];
    char owner[SNK_OWNER_LENGTH_MAX + 1];
} texts;

static void run_acquire(snk_pg_store *store, const snk_claim *claim, const char *row_xid, texts *text,
                        snk_pg_reply *reply)
{
    const snk_send *send = &claim->send;
    uint32_t tokens = send->tokens < 1 ? 1 : send->tokens;
    (void)snprintf(text->tokens, sizeof text->tokens, "%" PRIu32,
                   tokens < SNK_TOKEN_BLOCK_MAX ? tokens : SNK_TOKEN_BLOCK_MAX);
    (void)snprintf(text->mode, sizeof text->mode, "%d", (int)claim->grip.mode);
    (void)snprintf(text->units, sizeof text->units, "%" PRIu32, claim->grip.units);
    snk_id_to_hex(&claim->grip.beside, text->beside);
    (void)snprintf(text->pid, sizeof text->pid, "%" PRId64, store->identity.pid);
    (void)snprintf(text->owner, sizeof text->owner, "%s:%" PRId64, store->identity.uuid, claim->thread);
    const char *const values[] = { text->resource,
                                   text->claim,
                                   text->lease,
                                   text->tokens,
                                   flag(send->queue),
                                   flag(send->fair),
                                   store->identity.uuid,
                                   text->owner,
                                   text->pid,
                                   store->identity.host,
                                   claim->why == NULL ? "" : claim->why,
                                   row_xid,
                                   text->mode,
                                   text->units,
                                   text->beside };
    snk_pg_run(store, SNK_PG_ACQUIRE, values, reply);
}

static void run_claim(snk_pg_store *store, const snk_claim *claim, const char *row_xid, snk_pg_reply *reply)
{
    texts text;
    snk_pg_resource(store, claim->grip.object, claim->name, text.resource);
    snk_id_to_hex(&claim->send.claim, text.claim);
    (void)snprintf(text.lease, sizeof text.lease, "%" PRId64, us_of(claim->send.lease_ns));
    switch (claim->send.ask) {
    case SNK_ASK_ACQUIRE:
        run_acquire(store, claim, row_xid, &text, reply);
        return;
    case SNK_ASK_RENEW: {
        const char *const values[] = { text.resource, text.claim, text.lease, row_xid };
        snk_pg_run(store, SNK_PG_RENEW, values, reply);
        return;
    }
    case SNK_ASK_RELEASE: {
        (void)snprintf(text.lease, sizeof text.lease, "%" PRId64, snk_sql_tombstone_us(&claim->send));
        const char *const values[] = { text.resource, text.claim, text.lease, flag(!claim->send.ends_hold) };
        snk_pg_run(store, SNK_PG_RELEASE, values, reply);
        return;
    }
    }
}

static void read_row(const snk_pg_store *store, const snk_pg_reply *reply, int row, const snk_send *send,
                     snk_answer *answer)
{
    snk_sql_numbers numbers;
    if (reply->outcome != SNK_SQL_ANSWERED) {
        answer->kind = reply->outcome == SNK_SQL_FAILED ? SNK_ANSWER_FAILED : SNK_ANSWER_UNCERTAIN;
        answer->error = reply->error;
        return;
    }
    if (reply->result == NULL || row >= PQntuples(reply->result) ||
        !snk_sql_numbers_read(&numbers, PQgetvalue(reply->result, row, 0)) ||
        !snk_sql_answer(&numbers, send, store->retry_ns, answer)) {
        answer->kind = SNK_ANSWER_UNCERTAIN;
        (void)snk_fail(&answer->error, SNECK_UNKNOWN, 0, "%s: the answer makes no sense", store->options.where);
    }
}

void snk_pg_ask(snk_pg_store *store, const snk_claim *claim, const char *row_xid, snk_answer *answer)
{
    snk_pg_reply reply;
    snk_pg_reply_init(&reply);
    *answer = (snk_answer){ .kind = SNK_ANSWER_FAILED };
    run_claim(store, claim, row_xid, &reply);
    read_row(store, &reply, 0, &claim->send, answer);
    snk_pg_reply_clear(&reply);
}

void snk_pg_ask_by_mode(snk_store *base, const snk_claim *claim, snk_answer *answer)
{
    snk_pg_store *store = snk_pg_store_of(base);
    if (store->options.locks_rows)
        snk_sql_row_ask(&store->rows, claim, answer);
    else
        snk_pg_ask(store, claim, NULL, answer);
}

/* ---- Many renewals ---- */

/* Arrays for one statement, sorted by name: so two clients that renew the same locks never wait for each other. */
typedef struct many {
    const snk_claim **sorted; /* owned; borrows the claims */
    char *names;              /* owned, and so are the others: "{…}" */
    char *ids;
    char *leases;
    size_t length[3];
} many;

static int compare_names(const void *a, const void *b)
{
    const snk_claim *const *left = a;
    const snk_claim *const *right = b;
    return strcmp((*left)->name, (*right)->name);
}

/* As an element of an array: in quotes, with quotes and backslashes escaped. Returns the length. */
static size_t write_element(char *to, const char *text)
{
    char *at = to;
    *at++ = '"';
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            *at++ = '\\';
        *at++ = *text;
    }
    *at++ = '"';
    return (size_t)(at - to);
}

static void write_many(const snk_pg_store *store, many *all, size_t count)
{
    size_t *length = all->length;
    for (size_t i = 0; i < count; i++) {
        const snk_claim *claim = all->sorted[i];
        char resource[SNK_PG_RESOURCE_SIZE];
        char separator = i == 0 ? '{' : ',';
        snk_pg_resource(store, claim->grip.object, claim->name, resource);
        all->names[length[0]++] = separator;
        length[0] += write_element(all->names + length[0], resource);
        all->ids[length[1]++] = separator;
        snk_id_to_hex(&claim->send.claim, all->ids + length[1]);
        length[1] += SNK_ID_TEXT_SIZE - 1;
        length[2] += (size_t)snprintf(all->leases + length[2], NUMBER_SIZE, "%c%" PRId64, separator,
                                      us_of(claim->send.lease_ns));
    }
    memcpy(all->names + length[0], "}", 2);
    memcpy(all->ids + length[1], "}", 2);
    memcpy(all->leases + length[2], "}", 2);
}

static bool make_many(const snk_pg_store *store, many *all, const snk_call *call)
{
    size_t names_size = 2;
    for (size_t i = 0; i < call->count; i++)
        names_size += 2 * (1 + strlen(store->prefix) + strlen(call->claims[i].name)) + 3;
    all->sorted = calloc(call->count, sizeof(void *));
    all->names = malloc(names_size);
    all->ids = malloc(call->count * (SNK_ID_TEXT_SIZE + 1) + 2);
    all->leases = malloc(call->count * NUMBER_SIZE + 2);
    if (all->sorted == NULL || all->names == NULL || all->ids == NULL || all->leases == NULL) {
        free(all->sorted);
        all->sorted = NULL; /* so nobody reads what was never filled */
        return false;
    }
    for (size_t i = 0; i < call->count; i++)
        all->sorted[i] = &call->claims[i];
    qsort(all->sorted, call->count, sizeof(void *), compare_names);
    write_many(store, all, call->count);
    return true;
}

/* Renewals only: the engine asks for nothing else in numbers. */
static void renew_many(snk_pg_store *store, const snk_call *call)
{
    many all = { .length = { 0 } };
    snk_pg_reply reply;
    snk_pg_reply_init(&reply);
    for (size_t i = 0; i < call->count; i++)
        call->answers[i] = (snk_answer){ .ticket = snk_bell_ticket(&store->waiters.bell, &call->claims[i].send.claim) };
    if (make_many(store, &all, call)) {
        const char *const values[] = { all.names, all.ids, all.leases };
        snk_pg_run(store, SNK_PG_RENEW_MANY, values, &reply);
    } else {
        (void)snk_fail(&reply.error, SNECK_NO_MEMORY, 0, "out of memory");
    }
    for (size_t i = 0; i < call->count; i++) {
        const snk_claim *claim = all.sorted == NULL ? &call->claims[i] : all.sorted[i];
        snk_answer *answer = &call->answers[claim - call->claims];
        uint64_t ticket = answer->ticket;
        *answer = (snk_answer){ .kind = SNK_ANSWER_FAILED };
        read_row(store, &reply, (int)i, &claim->send, answer);
        snk_sql_waiters_follow(&store->waiters, &claim->send, ticket, answer);
    }
    snk_pg_reply_clear(&reply);
    free(all.sorted);
    free(all.names);
    free(all.ids);
    free(all.leases);
}

/* ---- Calls ---- */

/* Now and then, so that a program with ever new names does not fill the disk. */
static void reap(snk_pg_store *store)
{
    if (atomic_exchange(&store->is_reaping, true))
        return;
    snk_pg_reply reply;
    snk_pg_reply_init(&reply);
    const char *const values[] = { store->reap_after };
    snk_pg_run(store, SNK_PG_REAP, values, &reply);
    if (reply.outcome == SNK_SQL_ANSWERED)
        (void)snk_copy_text(store->reap_after, sizeof store->reap_after, snk_pg_reply_text(&reply));
    snk_pg_reply_clear(&reply);
    atomic_store(&store->is_reaping, false);
}

void snk_pg_submit(snk_store *base, snk_call *call)
{
    snk_pg_store *store = snk_pg_store_of(base);
    bool are_renewals = call->count > 1 && call->claims[0].send.ask == SNK_ASK_RENEW;
    if (are_renewals && !store->options.locks_rows) {
        renew_many(store, call);
    } else {
        for (size_t i = 0; i < call->count; i++)
            snk_sql_waiters_do(&store->waiters, &call->claims[i], &call->answers[i]);
    }
    if (atomic_fetch_add(&store->requests, 1) % SNK_PG_REAP_EACH == SNK_PG_REAP_EACH - 1)
        reap(store);
    call->done(call);
}
