/* Acquire, renew and release: requests as calls of functions on the server, and what they return as answers. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "store/mysql/mysql_store.h"

#define PAUSE_NS_MIN (2 * SNK_NS_PER_MS)

/* Up, because what the store keeps must not be shorter than what the caller believes. */
static int64_t us_of(int64_t ns)
{
    return (ns + SNK_NS_PER_US - 1) / SNK_NS_PER_US;
}

/* ---- Statements ---- */

static void add_number(snk_sql_text *text, int64_t number)
{
    snk_sql_text_word(text, ",");
    snk_sql_text_number(text, number);
}

static void add_bytes(snk_sql_text *text, const char *bytes)
{
    snk_sql_text_word(text, ",");
    snk_sql_text_hex(text, bytes);
}

static void write_acquire(const snk_my_store *store, const snk_claim *claim, snk_sql_text *text)
{
    const snk_send *send = &claim->send;
    uint32_t tokens = send->tokens < 1 ? 1 : send->tokens;
    char owner[SNK_OWNER_LENGTH_MAX + 1];
    (void)snprintf(owner, sizeof owner, "%s:%" PRId64, store->identity.uuid, claim->thread);
    add_number(text, us_of(send->lease_ns));
    add_number(text, tokens < SNK_TOKEN_BLOCK_MAX ? tokens : SNK_TOKEN_BLOCK_MAX);
    add_number(text, send->queue);
    add_number(text, send->fair);
    add_bytes(text, owner);
    add_number(text, store->identity.pid);
    add_bytes(text, store->identity.host);
    add_bytes(text, claim->why == NULL ? "" : claim->why);
    add_number(text, claim->grip.mode);
    add_number(text, claim->grip.units);
    snk_sql_text_word(text, ",");
    snk_my_add_id(text, &claim->grip.beside);
}

void snk_my_write_claim(const snk_my_store *store, const snk_claim *claim, bool in_row, snk_sql_text *text)
{
    static const char *const calls[] = {
        [SNK_ASK_ACQUIRE] = "SELECT sneck_acquire(",
        [SNK_ASK_RENEW] = "SELECT sneck_renew(",
        [SNK_ASK_RELEASE] = "SELECT sneck_release(",
    };
    snk_sql_text_word(text, calls[claim->send.ask]);
    snk_my_add_resource(store, claim->grip.object, claim->name, text);
    snk_sql_text_word(text, ",");
    snk_my_add_id(text, &claim->send.claim);
    switch (claim->send.ask) {
    case SNK_ASK_ACQUIRE:
        write_acquire(store, claim, text);
        add_number(text, in_row);
        break;
    case SNK_ASK_RENEW:
        add_number(text, us_of(claim->send.lease_ns));
        add_number(text, in_row);
        break;
    case SNK_ASK_RELEASE:
        add_number(text, snk_sql_tombstone_us(&claim->send));
        add_number(text, !claim->send.ends_hold);
        break;
    }
    snk_sql_text_word(text, ")");
}

/* ---- Answers ---- */

/*
 * A claim that has waited long can wait a little longer: an eighth of that, so that no hand-off takes much more time than
 * the wait did, and no long wait costs more than a look each retry_ns.
 */
static int64_t pause_of(const snk_my_store *store, int64_t waited_ns)
{
    int64_t pause_ns = waited_ns / 8;
    if (pause_ns < PAUSE_NS_MIN)
        pause_ns = PAUSE_NS_MIN;
    return pause_ns < store->retry_ns ? pause_ns : store->retry_ns;
}

static void read_answer(snk_my_store *store, snk_my_reply *reply, const snk_send *send, snk_answer *answer)
{
    snk_sql_numbers numbers = { .at = { 0 } };
    *answer = (snk_answer){ .kind = SNK_ANSWER_FAILED };
    if (reply->outcome != SNK_SQL_ANSWERED) {
        answer->kind = reply->outcome == SNK_SQL_FAILED ? SNK_ANSWER_FAILED : SNK_ANSWER_UNCERTAIN;
        answer->error = reply->error;
    } else if (!snk_sql_numbers_read(&numbers, snk_my_reply_text(reply)) ||
               !snk_sql_answer(&numbers, send, store->retry_ns, answer)) {
        answer->kind = SNK_ANSWER_UNCERTAIN;
        (void)snk_fail(&answer->error, SNECK_UNKNOWN, 0, "%s: the answer makes no sense", store->options.where);
    }
    /* The server says whether it would tell us: then there is nothing to look for before the hold may be over. */
    if (answer->kind != SNK_ANSWER_QUEUED || numbers.at[4] < 0)
        return;
    int64_t pause_ns = pause_of(store, numbers.at[4] * SNK_NS_PER_US);
    if (pause_ns < answer->look_after_ns)
        answer->look_after_ns = pause_ns;
}

void snk_my_ask(snk_my_store *store, const snk_claim *claim, bool in_row, snk_answer *answer)
{
    snk_sql_text text;
    snk_my_reply reply;
    snk_sql_text_init(&text);
    snk_my_write_claim(store, claim, in_row, &text);
    snk_my_run(store, &text, &reply);
    read_answer(store, &reply, &claim->send, answer);
    snk_my_reply_clear(&reply);
}

void snk_my_ask_by_mode(snk_store *base, const snk_claim *claim, snk_answer *answer)
{
    snk_my_store *store = snk_my_store_of(base);
    if (store->options.locks_rows)
        snk_sql_row_ask(&store->rows, claim, answer);
    else
        snk_my_ask(store, claim, false, answer);
}

/* ---- Many renewals ---- */

/* So many statements that were sent in one text have been answered; the others are asked one by one. */
static size_t renew_together(snk_my_store *store, const snk_call *call)
{
    snk_sql_text text;
    snk_my_reply reply = { .outcome = SNK_SQL_FAILED };
    size_t answered = 0;
    snk_sql_text_init(&text);
    for (size_t i = 0; i < call->count; i++) {
        if (i > 0)
            snk_sql_text_word(&text, ";");
        snk_my_write_claim(store, &call->claims[i], false, &text);
        call->answers[i].ticket = snk_bell_ticket(&store->waiters.bell, &call->claims[i].send.claim);
    }
    snk_my_conn *conn = text.text == NULL ? NULL : snk_my_pool_take(&store->pool, &reply.error);
    if (conn != NULL) {
        snk_my_conn_query(conn, store->options.where, text.text, text.length, &reply);
        while (reply.outcome == SNK_SQL_ANSWERED && answered < call->count) {
            uint64_t ticket = call->answers[answered].ticket;
            read_answer(store, &reply, &call->claims[answered].send, &call->answers[answered]);
            snk_sql_waiters_follow(&store->waiters, &call->claims[answered].send, ticket, &call->answers[answered]);
            answered++;
            if (answered < call->count)
                snk_my_conn_next(conn, store->options.where, &reply);
        }
        snk_my_reply_clear(&reply);
        snk_my_conn_drain(conn, &reply);
        snk_my_pool_give(&store->pool, conn, reply.is_broken);
    }
    snk_sql_text_deinit(&text);
    return answered;
}

/* ---- Calls ---- */

/* Now and then, so that a program with ever new names does not fill the disk. */
static void reap(snk_my_store *store)
{
    if (atomic_exchange(&store->is_reaping, true))
        return;
    snk_sql_text text;
    snk_my_reply reply;
    snk_sql_text_init(&text);
    snk_sql_text_word(&text, "SELECT sneck_reap(x'");
    snk_sql_text_word(&text, store->reap_after);
    snk_sql_text_word(&text, "')");
    snk_my_run(store, &text, &reply);
    if (reply.outcome == SNK_SQL_ANSWERED)
        (void)snk_copy_text(store->reap_after, sizeof store->reap_after, snk_my_reply_text(&reply));
    snk_my_reply_clear(&reply);
    atomic_store(&store->is_reaping, false);
}

void snk_my_submit(snk_store *base, snk_call *call)
{
    snk_my_store *store = snk_my_store_of(base);
    bool are_renewals = call->count > 1 && call->claims[0].send.ask == SNK_ASK_RENEW;
    size_t done = are_renewals && !store->options.locks_rows ? renew_together(store, call) : 0;
    for (; done < call->count; done++)
        snk_sql_waiters_do(&store->waiters, &call->claims[done], &call->answers[done]);
    if (atomic_fetch_add(&store->requests, 1) % SNK_MY_REAP_EACH == SNK_MY_REAP_EACH - 1)
        reap(store);
    call->done(call);
}
