/* Acquire, renew and release: requests as scripts, and replies as answers. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "redis/errors.h"
#include "store/redis/claims.h"
#include "store/redis/crowd.h"
#include "store/redis/run.h"
#include "store/redis/texts.h"
#include "store/redis/together.h"

/* A waiter's look at the end of a lease is later the further back it stands, so that not all of them ask at once. */
#define STAGGER_MS_MAX 100

/* ---- Requests ---- */

/* In fair mode the order is the store's business, so a waiter is always granted its turn. */
static const char *wake_word(const snk_redis_store *store, bool fair)
{
    static const char *const words[] = { [SNK_WAKE_GRANT] = "grant", [SNK_WAKE_ONE] = "one", [SNK_WAKE_ALL] = "all" };
    return fair ? words[SNK_WAKE_GRANT] : words[store->options.wake];
}

static snk_run acquire_run(const snk_redis_store *store, const snk_claim *claim, snk_texts *text)
{
    const snk_send *send = &claim->send;
    uint32_t tokens = send->tokens < 1 ? 1 : send->tokens;
    (void)snk_text_number(text->tokens, tokens < SNK_TOKEN_BLOCK_MAX ? tokens : SNK_TOKEN_BLOCK_MAX);
    snk_texts_asker(text, store, claim->thread);
    return (snk_run){
        .script = SNK_SCRIPT_ACQUIRE,
        .keys = &text->keys,
        .count = 11,
        .arguments = { text->claim, text->lease, text->tokens, snk_text_flag(send->queue), snk_text_flag(send->fair),
                       wake_word(store, send->fair), snk_text_flag(store->options.history), text->owner, text->pid,
                       store->host, claim->why == NULL ? "" : claim->why },
    };
}

static snk_run renew_run(const snk_redis_store *store, const snk_send *send, snk_texts *text)
{
    (void)snk_text_number(text->tokens, send->levels);
    return (snk_run){
        .script = SNK_SCRIPT_RENEW,
        .keys = &text->keys,
        .count = 4,
        .arguments = { text->claim, text->lease, snk_text_flag(store->options.history), text->tokens },
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

void snk_announcement_make(const snk_redis_store *store, const char *name, const snk_keys *keys,
                           snk_announcement *announcement)
{
    static const char begin[] = "{\"lockKey\":\"";
    static const char end[] = "\",\"releaseTime\":";
    announcement->command = "PUBLISH";
    announcement->channel[0] = '\0';
    announcement->message[0] = '\0';
    if (!store->options.announce)
        return;
    size_t length = strnlen(name, SNK_NAME_LENGTH_MAX);
    if (store->slot_tags != NULL) {
        if (snk_channel_public(store, name, keys, announcement->channel))
            announcement->command = "SPUBLISH";
    } else {
        (void)snk_text_append(
            snk_text_append(announcement->channel, SNK_RELEASE_CHANNEL, sizeof SNK_RELEASE_CHANNEL - 1), name, length);
    }
    char *to = snk_text_append(announcement->message, begin, sizeof begin - 1);
    to = append_escaped(to, name, length);
    (void)snk_text_append(to, end, sizeof end - 1);
}

static snk_run release_run(const snk_redis_store *store, const snk_claim *claim, snk_texts *text)
{
    const snk_send *send = &claim->send;
    snk_texts_tombstone(text, send);
    snk_announcement_make(store, claim->name, &text->keys, &text->announcement);
    return (snk_run){
        .script = SNK_SCRIPT_RELEASE,
        .keys = &text->keys,
        .count = 7,
        /* Only a hold that was lost is released at a certain time. */
        .arguments = { text->claim, text->tombstone, snk_text_flag(store->options.history), text->announcement.channel,
                       text->announcement.message, send->not_before_ns > 0 ? "lost" : "released",
                       text->announcement.command },
    };
}

/* A grant by a master that has been replaced may be unknown to the new one, and so may a lease that it prolonged. */
static snk_redis_late late_answer_of(snk_ask ask)
{
    switch (ask) {
    case SNK_ASK_ACQUIRE:
        return SNK_REDIS_LATE_DOUBTED;
    case SNK_ASK_RENEW:
        return SNK_REDIS_LATE_REPEATS;
    case SNK_ASK_RELEASE:
        break;
    }
    return SNK_REDIS_LATE_COUNTS;
}

sneck_status snk_claim_format(const snk_redis_store *store, const snk_claim *claim, bool with_text,
                              snk_redis_call *call, sneck_error *error)
{
    snk_texts text;
    sneck_status status = snk_keys_make_for(&text.keys, claim->grip.object, store->prefix, claim->name, error);
    if (status != SNECK_OK)
        return status;
    snk_id_to_hex(&claim->send.claim, text.claim);
    (void)snk_text_number(text.lease, snk_text_ms(claim->send.lease_ns));
    call->late = late_answer_of(claim->send.ask);
    snk_run run = { .count = 0 };
    if (claim->grip.mode != SNK_MODE_EXCLUSIVE) {
        run = snk_crowd_run(store, claim, &text);
        return snk_run_format(store, &run, with_text, call, error);
    }
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

static void answer_queued(const redisReply *reply, const snk_send *send, snk_answer *answer)
{
    int64_t place = snk_reply_number(reply, 2);
    int64_t remaining_ms = snk_reply_number(reply, 1) + 1 + (place < STAGGER_MS_MAX ? place : STAGGER_MS_MAX);
    int64_t cap_ns = send->lease_ns / 3;
    answer->kind = SNK_ANSWER_QUEUED;
    answer->look_after_ns = remaining_ms * SNK_NS_PER_MS < cap_ns ? remaining_ms * SNK_NS_PER_MS : cap_ns;
}

static void read_reply(snk_redis_store *store, const redisReply *reply, const snk_send *send, snk_answer *answer)
{
    switch (snk_reply_number(reply, 0)) {
    case SNK_REPLY_HELD:
        answer->kind = SNK_ANSWER_HELD;
        answer->token_first = (uint64_t)snk_reply_number(reply, 1);
        answer->token_last = (uint64_t)snk_reply_number(reply, 2);
        answer->units = (uint32_t)snk_reply_number(reply, 3);
        break;
    case SNK_REPLY_QUEUED:
        answer_queued(reply, send, answer);
        break;
    case SNK_REPLY_BUSY:
        answer->kind = SNK_ANSWER_BUSY;
        break;
    case SNK_REPLY_GONE:
        answer->kind = SNK_ANSWER_GONE;
        break;
    case SNK_REPLY_DONE:
        answer->kind = SNK_ANSWER_DONE;
        break;
    default:
        answer->kind = SNK_ANSWER_UNCERTAIN;
        (void)snk_fail(&answer->error, SNECK_UNKNOWN, 0, "%s: the answer to a script makes no sense", store->where);
        return;
    }
    (void)atomic_fetch_add_explicit(&store->repairs.ttl, (uint64_t)snk_reply_number(reply, 4), memory_order_relaxed);
    (void)atomic_fetch_add_explicit(&store->repairs.owner, (uint64_t)snk_reply_number(reply, 5), memory_order_relaxed);
    (void)atomic_fetch_add_explicit(&store->repairs.queue, (uint64_t)snk_reply_number(reply, 6), memory_order_relaxed);
}

/* Keeps the table of claims that wait in step with what the store said. */
static snk_wake_hearing follow(snk_redis_store *store, const snk_send *send, const snk_redis_call *call,
                               snk_answer *answer)
{
    bool ends_wait = answer->kind != SNK_ANSWER_UNCERTAIN;
    if (answer->kind == SNK_ANSWER_QUEUED) {
        bool is_acquire = send->ask == SNK_ASK_ACQUIRE;
        snk_wake_hearing hearing =
            snk_wake_listen(store, &send->claim, call->slot, snk_reply_number(call->reply, 3) != 0, is_acquire);
        if (hearing == SNK_WAKE_DEAF && store->retry_ns < answer->look_after_ns)
            answer->look_after_ns = store->retry_ns;
        return hearing;
    }
    /* A renewal that failed, or a request that was not answered: the claim may wait, or may come to wait yet. */
    if (answer->kind == SNK_ANSWER_FAILED && send->ask != SNK_ASK_ACQUIRE)
        ends_wait = false;
    if (answer->kind == SNK_ANSWER_HELD)
        snk_wake_hold(store, &send->claim);
    else if (ends_wait)
        snk_wake_forget(store, &send->claim);
    return SNK_WAKE_HEARS;
}

/* ---- Calls ---- */

bool snk_claim_keep_track(snk_redis_store *store, const snk_claim *claim, uint16_t slot)
{
    if (store->tracks)
        snk_recent_note(&store->recent, claim->name, slot);
    else if (!claim->send.queue)
        return true;
    return snk_waiting_add_in(&store->waiting, &claim->send.claim, claim->name, slot);
}

sneck_status snk_claim_prepare(snk_redis_store *store, const snk_claim *claim, snk_answer *answer, snk_redis_call *call,
                               sneck_error *error)
{
    const snk_send *send = &claim->send;
    sneck_status status = snk_claim_format(store, claim, false, call, error);
    if (status != SNECK_OK)
        return status;
    answer->ticket = snk_bell_ticket(&store->bell, &send->claim);
    if (send->ask == SNK_ASK_RELEASE) {
        /* It is over for those who tell news, but not for those who look for ghosts, until the store has answered. */
        snk_wake_hold(store, &send->claim);
    } else if (send->ask == SNK_ASK_ACQUIRE && !snk_claim_keep_track(store, claim, call->slot)) {
        return snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory");
    }
    return SNECK_OK;
}

void snk_claim_refuse(snk_answer *answer, const sneck_error *error)
{
    *answer = (snk_answer){ .kind = SNK_ANSWER_FAILED };
    answer->error = *error;
}

/*
 * Sends again, with their text, the scripts that the server did not know: that answer proves that they did not run, so
 * the same claim may be sent again. All at once: one after the other, many renewals could take longer than their leases.
 * `again` is memory for `count` of them.
 */
static void send_texts(snk_redis_store *store, const snk_claim claims[], snk_redis_call *calls, size_t count,
                       snk_redis_call *again[])
{
    size_t again_count = 0;
    for (size_t i = 0; i < count; i++) {
        if (calls[i].command != NULL && snk_run_needs_text(&calls[i]) &&
            snk_claim_format(store, &claims[i], true, &calls[i], NULL) == SNECK_OK)
            again[again_count++] = &calls[i];
    }
    if (again_count > 0)
        snk_topology_drive(store->topology, again, again_count);
}

/* Renewals that could not be done because a cluster moves their keys: with the lock's key alone. */
static void keep_held(snk_redis_store *store, const snk_claim claims[], snk_redis_call *calls, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        snk_redis_call *const one[] = { &calls[i] };
        if (calls[i].command == NULL || !snk_keep_applies(store, &claims[i], &calls[i]))
            continue;
        for (int with_text = 0; with_text < 2 && snk_keep_format(store, &claims[i], with_text != 0, &calls[i]);
             with_text++) {
            snk_topology_drive(store->topology, one, 1);
            if (!snk_run_needs_text(&calls[i]))
                break;
        }
        snk_keep_settle(store, &calls[i]);
    }
}

void snk_claim_drive(snk_redis_store *store, const snk_claim *claim, snk_redis_call *call)
{
    snk_redis_call *calls[] = { call };
    snk_topology_drive(store->topology, calls, 1);
    send_texts(store, claim, call, 1, calls);
    keep_held(store, claim, call, 1);
}

bool snk_claim_take_back(snk_redis_store *store, const snk_claim *claim)
{
    snk_claim release = *claim;
    release.send.ask = SNK_ASK_RELEASE;
    release.send.unanswered = false;
    snk_answer ended = { .ticket = 0 };
    snk_redis_call call;
    snk_redis_call_init(&call);
    if (snk_claim_prepare(store, &release, &ended, &call, NULL) == SNECK_OK) {
        snk_claim_drive(store, &release, &call);
        (void)snk_claim_answer(store, &release, &call, &ended);
    }
    snk_redis_call_deinit(&call);
    return ended.kind == SNK_ANSWER_DONE || ended.kind == SNK_ANSWER_GONE;
}

/* An acquire that the access rules refused in the middle of its script may have made the claim the holder before that. */
static bool is_undone(snk_redis_store *store, const snk_claim *claim, const snk_redis_call *call)
{
    return claim->send.ask == SNK_ASK_ACQUIRE && snk_redis_error_of(call->reply) == SNK_REDIS_SCRIPT_DENIED &&
           snk_claim_take_back(store, claim);
}

snk_wake_hearing snk_claim_answer(snk_redis_store *store, const snk_claim *claim, const snk_redis_call *call,
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
    snk_wake_hearing hearing = follow(store, &claim->send, call, answer);
    /* Looked for only now, since the claim is not in the table any more. */
    if (claim->send.ask == SNK_ASK_RELEASE && snk_topology_has_changed_since(store->topology, call))
        snk_ghosts_seek_on(store, claim->name);
    return hearing;
}

/* One request that was formatted, with what replicas are needed for it. */
static snk_wake_hearing ask_one(snk_redis_store *store, const snk_claim *claim, snk_redis_call *call,
                                snk_answer *answer)
{
    if (snk_replicas_are_wanted(store, claim))
        return snk_replicas_ask(store, claim, call, answer);
    snk_claim_drive(store, claim, call);
    return snk_claim_answer(store, claim, call, answer);
}

/* Asks once more about a claim that waits, because what was said before it listened was missed. */
static void look_again(snk_redis_store *store, const snk_claim *claim, snk_answer *answer)
{
    snk_claim look = *claim;
    look.send.ask = SNK_ASK_RENEW;
    snk_answer again = { .ticket = snk_bell_ticket(&store->bell, &claim->send.claim) };
    snk_redis_call call;
    sneck_error error;
    snk_redis_call_init(&call);
    if (snk_claim_format(store, &look, false, &call, &error) == SNECK_OK) {
        (void)ask_one(store, &look, &call, &again);
        /* If that was not answered, the claim still waits, as far as anybody knows. */
        if (again.kind == SNK_ANSWER_FAILED || again.kind == SNK_ANSWER_UNCERTAIN)
            answer->look_after_ns = store->retry_ns < answer->look_after_ns ? store->retry_ns : answer->look_after_ns;
        else
            *answer = again;
    }
    snk_redis_call_deinit(&call);
}

/* Formats a request, and sends it already if it is not for the others to wait for. False: it is done with. */
static bool begin_claim(snk_redis_store *store, const snk_call *call, size_t index, snk_redis_call *made)
{
    const snk_claim *claim = &call->claims[index];
    snk_answer *answer = &call->answers[index];
    sneck_error error;
    snk_redis_call_init(made);
    bool prepared = snk_claim_prepare(store, claim, answer, made, &error) == SNECK_OK;
    if (!prepared)
        snk_claim_refuse(answer, &error);
    /* What is asked again anyway must not hold up whoever asks. */
    made->hasty = call->background || claim->send.chase;
    made->yields = claim->send.ask == SNK_ASK_RENEW;
    if (prepared && !snk_replicas_are_wanted(store, claim))
        return true;
    snk_wake_hearing hearing = prepared ? snk_replicas_ask(store, claim, made, answer) : SNK_WAKE_HEARS;
    snk_redis_call_deinit(made);
    made->command = NULL;
    if (hearing == SNK_WAKE_MISSED)
        look_again(store, claim, answer);
    return false;
}

/* `calls` is memory for `count` of them, `sent` for twice as many. */
static void do_claims(snk_redis_store *store, const snk_call *call, snk_redis_call calls[], snk_redis_call *sent[])
{
    size_t sent_count = 0;
    snk_redis_call **again = sent + call->count;
    for (size_t i = 0; i < call->count; i++) {
        if (begin_claim(store, call, i, &calls[i]))
            sent[sent_count++] = &calls[i];
    }
    snk_topology_drive(store->topology, sent, sent_count);
    send_texts(store, call->claims, calls, call->count, again);
    keep_held(store, call->claims, calls, call->count);
    for (size_t place = 0; place < sent_count; place++) {
        size_t i = (size_t)(sent[place] - calls);
        snk_wake_hearing hearing = snk_claim_answer(store, &call->claims[i], &calls[i], &call->answers[i]);
        snk_redis_call_deinit(&calls[i]);
        if (hearing == SNK_WAKE_MISSED)
            look_again(store, &call->claims[i], &call->answers[i]);
    }
}

/* Memory for several requests that are asked by themselves. */
typedef struct many {
    snk_claim *claims; /* owned, as are the others */
    snk_answer *answers;
    snk_redis_call *calls;
    snk_redis_call **sent;
    size_t *left; /* which of the whole call they are */
} many;

static bool make_many(many *self, size_t count)
{
    *self = (many){
        .claims = calloc(count, sizeof *self->claims),
        .answers = calloc(count, sizeof *self->answers),
        .calls = calloc(count, sizeof *self->calls),
        .sent = calloc(2 * count, sizeof(void *)),
        .left = calloc(count, sizeof *self->left),
    };
    return self->claims != NULL && self->answers != NULL && self->calls != NULL && self->sent != NULL &&
           self->left != NULL;
}

static void free_many(many *self)
{
    free(self->claims);
    free(self->answers);
    free(self->calls);
    free(self->sent);
    free(self->left);
}

static void do_left(snk_redis_store *store, const snk_call *call, many *self, size_t count)
{
    snk_call part = *call;
    part.claims = self->claims;
    part.answers = self->answers;
    part.count = count;
    for (size_t i = 0; i < count; i++)
        self->claims[i] = call->claims[self->left[i]];
    do_claims(store, &part, self->calls, self->sent);
    for (size_t i = 0; i < count; i++)
        call->answers[self->left[i]] = self->answers[i];
}

static void do_many(snk_redis_store *store, const snk_call *call)
{
    many self;
    if (make_many(&self, call->count)) {
        size_t left = snk_together_acquire(store, call, self.left);
        if (left > 0)
            do_left(store, call, &self, left);
    } else {
        sneck_error error;
        (void)snk_fail(&error, SNECK_NO_MEMORY, 0, "out of memory");
        for (size_t i = 0; i < call->count; i++)
            snk_claim_refuse(&call->answers[i], &error);
    }
    free_many(&self);
}

static bool waits_for_replicas(snk_redis_store *store, const snk_call *call)
{
    for (size_t i = 0; store->options.commits && i < call->count; i++)
        if (snk_replicas_are_wanted(store, &call->claims[i]))
            return true;
    return false;
}

void snk_redis_store_submit(snk_store *base, snk_call *call)
{
    snk_redis_store *store = snk_redis_store_of(base);
    if (call->background && store->slot_tags != NULL && !waits_for_replicas(store, call)) {
        snk_background_submit(store, call);
        return;
    }
    if (call->count == 1) {
        snk_redis_call one;
        snk_redis_call *sent[2] = { NULL };
        do_claims(store, call, &one, sent);
    } else if (call->count > 1) {
        do_many(store, call);
    }
    call->done(call);
}
