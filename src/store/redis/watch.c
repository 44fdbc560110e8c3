/* What the watchdog asks: whether claims are still there, and whether the server answers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "redis/errors.h"
#include "redis/pulse.h"
#include "store/redis/run.h"

/* Where a whole server was emptied it does not matter who else may have each key. */
#define SETTLED_MAX 16

/* ---- Claims: plain reads instead of scripts, which cost the server a fraction ---- */

static size_t lock_key(const snk_redis_store *store, const char *name, char key[SNK_KEY_SIZE])
{
    return (size_t)snprintf(key, SNK_KEY_SIZE, "%s%s", store->prefix, name);
}

static sneck_status format_check(const snk_redis_store *store, const snk_claim *claim, snk_redis_call *call,
                                 sneck_error *error)
{
    char key[SNK_KEY_SIZE];
    size_t length = lock_key(store, claim->name, key);
    bool is_hash = store->options.layout == SNK_LAYOUT_HASH;
    const char *const arguments[] = { is_hash ? "HMGET" : "GET", key, "~claim", "~token" };
    const size_t lengths[] = { strlen(arguments[0]), length, 6, 6 };
    return snk_redis_call_format(call, is_hash ? 4 : 2, arguments, lengths, error);
}

static const char *text_of(const redisReply *reply)
{
    return reply != NULL && reply->type == REDIS_REPLY_STRING ? reply->str : NULL;
}

/* In the hash the claim has a field of its own; the string ends with it: `<owner>:<claim>`. */
static void read_check(const redisReply *reply, const snk_claim *claim, snk_answer *answer)
{
    char hex[SNK_ID_TEXT_SIZE];
    snk_id_to_hex(&claim->send.claim, hex);
    bool is_hash = reply->type == REDIS_REPLY_ARRAY && reply->elements == 2;
    const char *shown = is_hash ? text_of(reply->element[0]) : text_of(reply);
    const char *token = is_hash ? text_of(reply->element[1]) : NULL;
    size_t length = shown == NULL ? 0 : strlen(shown);
    size_t skip = length > sizeof hex - 1 && !is_hash ? length - (sizeof hex - 1) : 0;
    if (shown == NULL)
        answer->kind = SNK_ANSWER_GONE;
    else
        answer->kind = strcmp(shown + skip, hex) == 0 ? SNK_ANSWER_HELD : SNK_ANSWER_BUSY;
    if (token != NULL)
        answer->token_first = strtoull(token, NULL, 10);
}

/* What one of them came to. Data of another type is as clear an answer as another owner. */
static void take_check(const snk_redis_store *store, const snk_redis_call *call, const snk_claim *claim,
                       snk_answer *answer)
{
    if (snk_run_result(store, call, NULL, &answer->error) == SNECK_OK)
        read_check(call->reply, claim, answer);
    else if (call->outcome == SNK_REDIS_REPLY && snk_redis_error_of(call->reply) == SNK_REDIS_WRONGTYPE)
        answer->kind = SNK_ANSWER_BUSY;
}

/* A key that is there without our fields is somebody else's: a client of another kind took the lock over. */
static void settle_gone(snk_redis_store *store, const snk_claim *claim, snk_answer *answer)
{
    char key[SNK_KEY_SIZE];
    size_t length = lock_key(store, claim->name, key);
    const char *const arguments[] = { "EXISTS", key };
    const size_t lengths[] = { 6, length };
    snk_redis_call call;
    snk_redis_call *const calls[] = { &call };
    snk_redis_call_init(&call);
    if (snk_redis_call_format(&call, 2, arguments, lengths, NULL) == SNECK_OK) {
        snk_topology_drive(store->topology, calls, 1);
        if (call.outcome == SNK_REDIS_REPLY && call.reply->type == REDIS_REPLY_INTEGER && call.reply->integer > 0)
            answer->kind = SNK_ANSWER_BUSY;
    }
    snk_redis_call_deinit(&call);
}

static void check_all(snk_redis_store *store, const snk_call *call, snk_redis_call calls[], snk_redis_call *sent[])
{
    size_t sent_count = 0;
    for (size_t i = 0; i < call->count; i++) {
        snk_redis_call_init(&calls[i]);
        call->answers[i] = (snk_answer){ .kind = SNK_ANSWER_FAILED };
        if (format_check(store, &call->claims[i], &calls[i], &call->answers[i].error) == SNECK_OK)
            sent[sent_count++] = &calls[i];
    }
    if (sent_count > 0)
        snk_topology_drive(store->topology, sent, sent_count);
    size_t gone = 0;
    for (size_t i = 0; i < call->count; i++) {
        if (calls[i].command != NULL)
            take_check(store, &calls[i], &call->claims[i], &call->answers[i]);
        snk_redis_call_deinit(&calls[i]);
        if (call->answers[i].kind == SNK_ANSWER_GONE && gone++ < SETTLED_MAX)
            settle_gone(store, &call->claims[i], &call->answers[i]);
    }
}

void snk_redis_store_check(snk_store *base, snk_call *call)
{
    snk_redis_store *store = snk_redis_store_of(base);
    /* A replica would answer a plain read from what it has, which may be old. Scripts insist on a master. */
    if (snk_topology_alone(store->topology) == NULL) {
        snk_redis_store_submit(base, call);
        return;
    }
    snk_redis_call *calls = calloc(call->count, sizeof *calls);
    snk_redis_call **sent = calloc(call->count, sizeof(void *));
    if (calls != NULL && sent != NULL) {
        check_all(store, call, calls, sent);
    } else {
        for (size_t i = 0; i < call->count; i++) {
            call->answers[i] = (snk_answer){ .kind = SNK_ANSWER_FAILED };
            (void)snk_fail(&call->answers[i].error, SNECK_NO_MEMORY, 0, "out of memory");
        }
    }
    free(sent);
    free(calls);
    call->done(call);
}

/* ---- The connection ---- */

/* TIME rather than PING: the same round trip tells how the server's clock stands to ours. */
static void read_time(const snk_redis_call *call, int64_t wall_us, snk_probe *probe)
{
    const redisReply *reply = call->reply;
    probe->round_trip_ns = call->reply_at_ns - call->sent_at_ns;
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2)
        return;
    const char *seconds = text_of(reply->element[0]);
    const char *fraction = text_of(reply->element[1]);
    if (seconds == NULL || fraction == NULL)
        return;
    int64_t server_us = strtoll(seconds, NULL, 10) * 1000000 + strtoll(fraction, NULL, 10);
    probe->has_clock = true;
    probe->clock_offset_ns = (server_us - wall_us) * SNK_NS_PER_US + probe->round_trip_ns / 2;
}

/* The longest of the round trips, and the clock that is furthest from ours. */
static void add_pulse(void *context, const snk_redis_call *call, int64_t wall_us)
{
    snk_probe *sum = context;
    snk_probe one = { .round_trip_ns = 0 };
    read_time(call, wall_us, &one);
    if (one.round_trip_ns > sum->round_trip_ns)
        sum->round_trip_ns = one.round_trip_ns;
    bool is_further = llabs(one.clock_offset_ns) > llabs(sum->clock_offset_ns);
    if (one.has_clock && (!sum->has_clock || is_further))
        sum->clock_offset_ns = one.clock_offset_ns;
    sum->has_clock |= one.has_clock;
}

/* Each server by itself: any one of them may be silent, and only its own locks know. */
static sneck_status probe_cluster(snk_redis_store *store, int64_t timeout_ns, snk_probe *probe_out, sneck_error *error)
{
    snk_pulse pulse = { .timeout_ns = timeout_ns, .answered = add_pulse, .context = probe_out };
    sneck_status status = snk_topology_take_pulse(store->topology, &pulse, error);
    probe_out->is_half_open = pulse.silent > 0;
    return status;
}

static sneck_status probe_master(snk_redis_store *store, int64_t timeout_ns, snk_probe *probe_out, sneck_error *error)
{
    snk_redis_call call;
    snk_redis_call *const calls[] = { &call };
    const char *const arguments[] = { "TIME" };
    snk_redis_call_init(&call);
    sneck_status status = snk_redis_call_format(&call, 1, arguments, NULL, error);
    if (status == SNECK_OK) {
        call.timeout_ns = timeout_ns;
        call.slot = SNK_REDIS_SLOT_ANY;
        snk_topology_drive(store->topology, calls, 1);
        int64_t wall_us = snk_wall_us();
        status = snk_run_result(store, &call, NULL, error);
        if (status == SNECK_OK)
            read_time(&call, wall_us, probe_out);
    }
    snk_redis_call_deinit(&call);
    return status;
}

sneck_status snk_redis_store_probe(snk_store *base, int64_t timeout_ns, snk_probe *probe_out, sneck_error *error)
{
    snk_redis_store *store = snk_redis_store_of(base);
    if (timeout_ns > store->options.timeout_ns)
        timeout_ns = store->options.timeout_ns;
    *probe_out = (snk_probe){ .round_trip_ns = 0 };
    return store->slot_tags != NULL ? probe_cluster(store, timeout_ns, probe_out, error)
                                    : probe_master(store, timeout_ns, probe_out, error);
}

void snk_redis_store_describe(snk_store *base, snk_store_state *state_out)
{
    snk_topology_state state;
    snk_topology_describe(snk_redis_store_of(base)->topology, &state);
    *state_out = (snk_store_state){
        .connected = state.connected,
        .connects = state.connects,
        .servers = state.servers,
        .failures = state.failures,
        .in_flight = state.in_flight,
    };
}

void snk_redis_store_reconnect(snk_store *base)
{
    snk_topology_reconnect(snk_redis_store_of(base)->topology);
}
