/* Acquire, renew and release: requests as scripts, and replies as answers. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "redis/errors.h"
#include "store/redis/run.h"

/* What the scripts answer first. */
enum {
    REPLY_HELD = 1,
    REPLY_QUEUED = 2,
    REPLY_BUSY = 3,
    REPLY_GONE = 4,
    REPLY_DONE = 5
};

/* A waiter's look at the end of a lease is later the further back it stands, so that not all of them ask at once. */
#define STAGGER_MS_MAX 100

#define NUMBER_SIZE 24

/* ---- Requests ---- */

/* The texts of a request's arguments. */
typedef struct texts {
    char claim[SNK_ID_TEXT_SIZE];
    char owner[SNK_OWNER_LENGTH_MAX + 1];
    char lease[NUMBER_SIZE];
    char tokens[NUMBER_SIZE]; /* or levels */
    char pid[NUMBER_SIZE];
    snk_keys keys;
    snk_announcement announcement;
} texts;

/* The texts of every request are made by hand: printf costs more than all the rest of it. */

static char *append(char *to, const char *text, size_t length)
{
    memcpy(to, text, length);
    to[length] = '\0';
    return to + length;
}

/* `value` is not negative. Returns the end. */
static char *number(char *to, int64_t value)
{
    char digits[NUMBER_SIZE];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    return append(to, digits + at, sizeof digits - at);
}

/* Up, because what the store keeps must not be shorter than what the caller believes. */
static int64_t ms_of(int64_t ns)
{
    return (ns + SNK_NS_PER_MS - 1) / SNK_NS_PER_MS;
}

static const char *flag(bool on)
{
    return on ? "1" : "0";
}

/* In fair mode the order is the store's business, so a waiter is always granted its turn. */
static const char *wake_word(const snk_redis_store *store, bool fair)
{
    static const char *const words[] = { [SNK_WAKE_GRANT] = "grant", [SNK_WAKE_ONE] = "one", [SNK_WAKE_ALL] = "all" };
    return fair ? words[SNK_WAKE_GRANT] : words[store->options.wake];
}

static snk_run acquire_run(const snk_redis_store *store, const snk_claim *claim, texts *text)
{
    const snk_send *send = &claim->send;
    uint32_t tokens = send->tokens < 1 ? 1 : send->tokens;
    (void)number(text->tokens, tokens < SNK_TOKEN_BLOCK_MAX ? tokens : SNK_TOKEN_BLOCK_MAX);
    (void)number(text->pid, store->identity.pid);
    char *end = append(text->owner, store->identity.uuid, SNK_UUID_TEXT_SIZE - 1);
    (void)number(append(end, ":", 1), claim->thread > 0 ? claim->thread : 0);
    return (snk_run){
        .script = SNK_SCRIPT_ACQUIRE,
        .keys = &text->keys,
        .count = 11,
        .arguments = { text->claim, text->lease, text->tokens, flag(send->queue), flag(send->fair),
                       wake_word(store, send->fair), flag(store->options.history), text->owner, text->pid, store->host,
                       claim->why == NULL ? "" : claim->why },
    };
}

static snk_run renew_run(const snk_redis_store *store, const snk_send *send, texts *text)
{
    (void)number(text->tokens, send->levels);
    return (snk_run){
        .script = SNK_SCRIPT_RENEW,
        .keys = &text->keys,
        .count = 4,
        .arguments = { text->claim, text->lease, flag(store->options.history), text->tokens },
    };
}

/* Appends text as it stands within a JSON string; names have no control characters. */
static char *append_escaped(char *to, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '"' || text[i] == '\\')
            *to++ = '\\';
        *to++ = text[i];
    }
    return to;
}

void snk_announcement_make(const snk_redis_store *store, const char *name, snk_announcement *announcement)
{
    static const char begin[] = "{\"lockKey\":\"";
    static const char end[] = "\",\"releaseTime\":";
    announcement->channel[0] = '\0';
    announcement->message[0] = '\0';
    if (!store->options.announce)
        return;
    size_t length = strnlen(name, SNK_NAME_LENGTH_MAX);
    char *to = append(announcement->channel, SNK_RELEASE_CHANNEL, sizeof SNK_RELEASE_CHANNEL - 1);
    (void)append(to, name, length);
    to = append(announcement->message, begin, sizeof begin - 1);
    to = append_escaped(to, name, length);
    (void)append(to, end, sizeof end - 1);
}

static snk_run release_run(const snk_redis_store *store, const snk_claim *claim, texts *text)
{
    const snk_send *send = &claim->send;
    int64_t tombstone_ns = send->lease_ns > SNK_TOMBSTONE_NS ? send->lease_ns : SNK_TOMBSTONE_NS;
    (void)number(text->lease, send->unanswered ? ms_of(tombstone_ns) : 0);
    snk_announcement_make(store, claim->name, &text->announcement);
    return (snk_run){
        .script = SNK_SCRIPT_RELEASE,
        .keys = &text->keys,
        .count = 6,
        /* Only a hold that was lost is released at a certain time. */
        .arguments = { text->claim, text->lease, flag(store->options.history), text->announcement.channel,
                       text->announcement.message, send->not_before_ns > 0 ? "lost" : "released" },
    };
}

static sneck_status format(const snk_redis_store *store, const snk_claim *claim, bool with_text, snk_redis_call *call,
                           sneck_error *error)
{
    texts text;
    sneck_status status = snk_keys_make(&text.keys, store->prefix, claim->name, error);
    if (status != SNECK_OK)
        return status;
    snk_id_to_hex(&claim->send.claim, text.claim);
    (void)number(text.lease, ms_of(claim->send.lease_ns));
    snk_run run = { .count = 0 };
    switch (claim->send.ask) {
    case SNK_ASK_ACQUIRE:
        run = acquire_run(store, claim, &text);
        break;
    case SNK_ASK_RENEW:
        run = renew_run(store, &claim->send, &text);
        break;
    case SNK_ASK_RELEASE:
        run = release_run(store, claim, &text);
        break;
    }
    return snk_run_format(store, &run, with_text, call, error);
}

/* ---- Replies ---- */

/* An element of a reply, 0 when it is not there: the short answers leave zeros out. */
static int64_t element(const redisReply *reply, size_t index)
{
    if (reply->type != REDIS_REPLY_ARRAY || index >= reply->elements)
        return 0;
    return reply->element[index]->type == REDIS_REPLY_INTEGER ? reply->element[index]->integer : 0;
}

static void answer_queued(const redisReply *reply, const snk_send *send, snk_answer *answer)
{
    int64_t place = element(reply, 2);
    int64_t remaining_ms = element(reply, 1) + 1 + (place < STAGGER_MS_MAX ? place : STAGGER_MS_MAX);
    int64_t cap_ns = send->lease_ns / 3;
    answer->kind = SNK_ANSWER_QUEUED;
    answer->look_after_ns = remaining_ms * SNK_NS_PER_MS < cap_ns ? remaining_ms * SNK_NS_PER_MS : cap_ns;
}

static void read_reply(snk_redis_store *store, const redisReply *reply, const snk_send *send, snk_answer *answer)
{
    switch (element(reply, 0)) {
    case REPLY_HELD:
        answer->kind = SNK_ANSWER_HELD;
        answer->token_first = (uint64_t)element(reply, 1);
        answer->token_last = (uint64_t)element(reply, 2);
        break;
    case REPLY_QUEUED:
        answer_queued(reply, send, answer);
        break;
    case REPLY_BUSY:
        answer->kind = SNK_ANSWER_BUSY;
        break;
    case REPLY_GONE:
        answer->kind = SNK_ANSWER_GONE;
        break;
    case REPLY_DONE:
        answer->kind = SNK_ANSWER_DONE;
        break;
    default:
        answer->kind = SNK_ANSWER_UNCERTAIN;
        (void)snk_fail(&answer->error, SNECK_UNKNOWN, 0, "%s: the answer to a script makes no sense", store->where);
        return;
    }
    (void)atomic_fetch_add_explicit(&store->repairs.ttl, (uint64_t)element(reply, 4), memory_order_relaxed);
    (void)atomic_fetch_add_explicit(&store->repairs.owner, (uint64_t)element(reply, 5), memory_order_relaxed);
    (void)atomic_fetch_add_explicit(&store->repairs.queue, (uint64_t)element(reply, 6), memory_order_relaxed);
}

/* Keeps the table of claims that wait in step with what the store said. */
static snk_wake_hearing follow(snk_redis_store *store, const snk_send *send, const redisReply *reply,
                               snk_answer *answer)
{
    bool ends_wait = answer->kind != SNK_ANSWER_UNCERTAIN;
    if (answer->kind == SNK_ANSWER_QUEUED) {
        bool is_acquire = send->ask == SNK_ASK_ACQUIRE;
        snk_wake_hearing hearing = snk_wake_listen(store, &send->claim, element(reply, 3) != 0, is_acquire);
        if (hearing == SNK_WAKE_DEAF && store->retry_ns < answer->look_after_ns)
            answer->look_after_ns = store->retry_ns;
        return hearing;
    }
    /* A renewal that failed, or a request that was not answered: the claim may wait, or may come to wait yet. */
    if (answer->kind == SNK_ANSWER_FAILED && send->ask != SNK_ASK_ACQUIRE)
        ends_wait = false;
    if (ends_wait)
        snk_wake_forget(store, &send->claim);
    return SNK_WAKE_HEARS;
}

/* ---- Calls ---- */

/* Before a request leaves: whoever may come to wait is in the table, and whoever leaves is not. */
static sneck_status prepare(snk_redis_store *store, const snk_claim *claim, snk_answer *answer, snk_redis_call *call,
                            sneck_error *error)
{
    const snk_send *send = &claim->send;
    sneck_status status = format(store, claim, false, call, error);
    if (status != SNECK_OK)
        return status;
    answer->ticket = snk_bell_ticket(&store->bell, &send->claim);
    if (send->ask == SNK_ASK_RELEASE)
        snk_wake_forget(store, &send->claim);
    else if (send->ask == SNK_ASK_ACQUIRE && send->queue &&
             !snk_waiting_add(&store->waiting, &send->claim, claim->name))
        return snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory");
    return SNECK_OK;
}

static void refuse(snk_answer *answer, const sneck_error *error)
{
    *answer = (snk_answer){ .kind = SNK_ANSWER_FAILED };
    answer->error = *error;
}

/*
 * Sends again, with their text, the scripts that the server did not know: that answer proves that they did not run, so
 * the same claim may be sent again.
 */
static void send_texts(snk_redis_store *store, const snk_claim claims[], snk_redis_call *calls, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        sneck_error error;
        if (calls[i].command == NULL || !snk_run_needs_text(&calls[i]))
            continue;
        if (format(store, &claims[i], true, &calls[i], &error) != SNECK_OK) {
            calls[i].outcome = SNK_REDIS_NOT_SENT;
            calls[i].error = error;
            continue;
        }
        snk_redis_call *const one[] = { &calls[i] };
        snk_redis_drive(store->redis, one, 1);
    }
}

/* Sends one request by itself. False: there was no memory for it. The call must be deinitialised. */
static bool ask(snk_redis_store *store, const snk_claim *claim, snk_redis_call *call)
{
    snk_redis_call *const calls[] = { call };
    sneck_error error;
    snk_redis_call_init(call);
    if (format(store, claim, false, call, &error) != SNECK_OK)
        return false;
    snk_redis_drive(store->redis, calls, 1);
    send_texts(store, claim, call, 1);
    return true;
}

/*
 * An acquire that the access rules refused in the middle of its script may have made the claim the holder before that.
 * True: it is not any more.
 */
static bool take_back(snk_redis_store *store, const snk_claim *claim)
{
    snk_claim back = *claim;
    back.send.ask = SNK_ASK_RELEASE;
    snk_redis_call call;
    sneck_error error;
    bool done = ask(store, &back, &call) && snk_run_result(store, &call, NULL, &error) == SNECK_OK;
    snk_redis_call_deinit(&call);
    return done;
}

static bool is_undone(snk_redis_store *store, const snk_claim *claim, const snk_redis_call *call)
{
    return claim->send.ask == SNK_ASK_ACQUIRE && snk_redis_error_of(call->reply) == SNK_REDIS_SCRIPT_DENIED &&
           take_back(store, claim);
}

static snk_wake_hearing take_answer(snk_redis_store *store, const snk_claim *claim, const snk_redis_call *call,
                                    snk_answer *answer)
{
    uint64_t ticket = answer->ticket;
    *answer = (snk_answer){ .kind = SNK_ANSWER_FAILED, .ticket = ticket };
    bool uncertain = false;
    if (snk_run_result(store, call, &uncertain, &answer->error) == SNECK_OK)
        read_reply(store, call->reply, &claim->send, answer);
    else if (uncertain && !is_undone(store, claim, call))
        answer->kind = SNK_ANSWER_UNCERTAIN;
    answer->run = call->run;
    return follow(store, &claim->send, call->reply, answer);
}

/* Asks once more about a claim that waits, because what was said before it listened was missed. */
static void look_again(snk_redis_store *store, const snk_claim *claim, snk_answer *answer)
{
    snk_claim look = *claim;
    look.send.ask = SNK_ASK_RENEW;
    snk_answer again = { .ticket = snk_bell_ticket(&store->bell, &claim->send.claim) };
    snk_redis_call call;
    if (ask(store, &look, &call)) {
        (void)take_answer(store, &look, &call, &again);
        /* If that was not answered, the claim still waits, as far as anybody knows. */
        if (again.kind == SNK_ANSWER_FAILED || again.kind == SNK_ANSWER_UNCERTAIN)
            answer->look_after_ns = store->retry_ns < answer->look_after_ns ? store->retry_ns : answer->look_after_ns;
        else
            *answer = again;
    }
    snk_redis_call_deinit(&call);
}

/* `calls` and `sent` are memory for `count` of them. */
static void do_claims(snk_redis_store *store, const snk_call *call, snk_redis_call calls[], snk_redis_call *sent[])
{
    size_t sent_count = 0;
    for (size_t i = 0; i < call->count; i++) {
        sneck_error error;
        snk_redis_call_init(&calls[i]);
        if (prepare(store, &call->claims[i], &call->answers[i], &calls[i], &error) == SNECK_OK) {
            sent[sent_count++] = &calls[i];
        } else {
            refuse(&call->answers[i], &error);
            snk_redis_call_deinit(&calls[i]);
            calls[i].command = NULL;
        }
    }
    snk_redis_drive(store->redis, sent, sent_count);
    send_texts(store, call->claims, calls, call->count);
    for (size_t i = 0; i < call->count; i++) {
        if (calls[i].command == NULL)
            continue;
        snk_wake_hearing hearing = take_answer(store, &call->claims[i], &calls[i], &call->answers[i]);
        snk_redis_call_deinit(&calls[i]);
        if (hearing == SNK_WAKE_MISSED)
            look_again(store, &call->claims[i], &call->answers[i]);
    }
}

static void do_many(snk_redis_store *store, const snk_call *call)
{
    snk_redis_call *calls = calloc(call->count, sizeof *calls);
    snk_redis_call **sent = calloc(call->count, sizeof(void *));
    if (calls != NULL && sent != NULL) {
        do_claims(store, call, calls, sent);
    } else {
        sneck_error error;
        (void)snk_fail(&error, SNECK_NO_MEMORY, 0, "out of memory");
        for (size_t i = 0; i < call->count; i++)
            refuse(&call->answers[i], &error);
    }
    free(sent);
    free(calls);
}

void snk_redis_store_submit(snk_store *base, snk_call *call)
{
    snk_redis_store *store = snk_redis_store_of(base);
    if (call->count == 1) {
        snk_redis_call one;
        snk_redis_call *sent[1] = { NULL };
        do_claims(store, call, &one, sent);
    } else if (call->count > 1) {
        do_many(store, call);
    }
    call->done(call);
}
