/*
 * Messages. The private channel of this client brings the id of a claim that may have been granted, or, with its block of
 * tokens, of one that was; the public channel of a lock says that it was released, and is listened to only while a
 * client of another kind holds it, or with wake=all. A message without the id of a claim of ours that waits does nothing;
 * a lost one is made good by the next look. Whether a claim may start with what it was told is for the engine to say.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "store/redis/redis.h"

/* How long the first claim that waits is held up until messages are heard. */
#define LISTEN_WAIT_NS (1 * SNK_NS_PER_S)

#define TOKEN_DIGITS_MAX 19

/* ---- Sleeping ---- */

bool snk_redis_store_wait(snk_store *base, uint64_t ticket, _Atomic uint32_t *word, uint32_t expected, int64_t until_ns)
{
    snk_redis_store *store = snk_redis_store_of(base);
    /* With several servers a thread would have to receive from all of them; there it sleeps on its word. */
    snk_redis *alone = snk_topology_alone(store->topology);
    if (store->bell.news == NULL || alone == NULL)
        return snk_bell_wait(&store->bell, ticket, word, expected, until_ns);
    /* A thread that waits for any claim has other things to do as well, and leaves receiving to others. */
    snk_redis_nap nap = { .word = word, .expected = expected, .until_ns = until_ns, .may_receive = ticket != 0 };
    if (until_ns == SNK_NEVER_NS || until_ns > snk_now_ns())
        snk_redis_sleep(alone, &nap);
    return false;
}

bool snk_redis_store_rouse(snk_store *base, const _Atomic uint32_t *word)
{
    snk_redis *alone = snk_topology_alone(snk_redis_store_of(base)->topology);
    return alone != NULL && snk_redis_rouse(alone, word);
}

/* ---- What the connection says ---- */

static bool is_heard(const snk_redis_store *store, uint16_t slot)
{
    return (atomic_load(&store->is_heard[slot / 8]) >> slot % 8 & 1) != 0;
}

/* Returns what it was before. */
static bool note_heard(snk_redis_store *store, uint16_t slot)
{
    uint8_t bit = (uint8_t)(1 << slot % 8);
    return (atomic_fetch_or(&store->is_heard[slot / 8], bit) & bit) != 0;
}

/* A number that ends at `end`; false when there is none. */
static bool read_number(const char **at, const char *end, uint64_t *number_out)
{
    const char *digit = *at;
    uint64_t number = 0;
    for (; digit < end && *digit >= '0' && *digit <= '9' && digit - *at < TOKEN_DIGITS_MAX; digit++)
        number = number * 10 + (uint64_t)(*digit - '0');
    bool any = digit > *at;
    *at = digit;
    *number_out = number;
    return any;
}

/* `<claim>`: look again; `<claim> <first> <last>`: it was granted the lock, with these tokens. False: neither. */
static bool read_private(const snk_redis_message *message, snk_grant *grant, bool *granted_out)
{
    char text[SNK_ID_TEXT_SIZE];
    const char *at = message->payload + sizeof text - 1;
    const char *end = message->payload + message->payload_length;
    if (message->payload_length < sizeof text - 1)
        return false;
    memcpy(text, message->payload, sizeof text - 1);
    text[sizeof text - 1] = '\0';
    if (!snk_id_from_hex(&grant->claim, text))
        return false;
    grant->run = message->run;
    *granted_out = at < end;
    if (at == end)
        return true;
    return *at++ == ' ' && read_number(&at, end, &grant->token_first) && at < end && *at++ == ' ' &&
           read_number(&at, end, &grant->token_last) && at == end && grant->token_first > 0 &&
           grant->token_first <= grant->token_last;
}

static void on_message(void *context, const snk_redis_message *message)
{
    snk_redis_store *store = context;
    char name[SNK_NAME_LENGTH_MAX + 1];
    if (snk_channel_name(store, message->channel, message->channel_length, name)) {
        snk_waiting_tell(&store->waiting, name, snk_bell_ring, &store->bell);
        return;
    }
    snk_grant grant;
    bool granted = false;
    if (!read_private(message, &grant, &granted) || !snk_waiting_find(&store->waiting, &grant.claim, name))
        return;
    /* Where replicas must have the grant too, that is asked for with the first renewal. */
    granted = granted && !store->options.commits;
    snk_bell_ring_grant(&store->bell, name, &grant.claim, granted ? &grant : NULL);
}

/*
 * Whatever was said before that may have been missed. The first confirmation of the private channel is awaited by those
 * whom it concerns (snk_wake_listen).
 */
static void on_subscribed(void *context, const char *channel, size_t length, snk_redis_run run)
{
    (void)run;
    snk_redis_store *store = context;
    char name[SNK_NAME_LENGTH_MAX + 1];
    uint16_t slot = store->slot_tags == NULL ? 0 : snk_redis_slot_of(channel, length);
    if (snk_channel_name(store, channel, length, name))
        snk_waiting_tell(&store->waiting, name, snk_bell_ring, &store->bell);
    else if (note_heard(store, slot))
        snk_waiting_tell_part(&store->waiting, slot, snk_bell_ring, &store->bell);
}

/* The server may have been restarted without its data: then it knows none of our claims. */
static void on_connected(void *context, snk_redis_lane lane, snk_redis_run run, bool again)
{
    (void)run;
    snk_redis_store *store = context;
    if (again && lane == SNK_REDIS_SHARED && store->link != NULL)
        store->link(store->link_context, true, "");
    if (again && lane == SNK_REDIS_SHARED)
        snk_waiting_tell(&store->waiting, NULL, snk_bell_ring, &store->bell);
}

static void on_disconnected(void *context, snk_redis_lane lane, const sneck_error *why)
{
    const snk_redis_store *store = context;
    if (lane == SNK_REDIS_SHARED && store->link != NULL)
        store->link(store->link_context, false, why->message);
}

static void on_log(void *context, sneck_log_level level, const char *text)
{
    const snk_redis_store *store = context;
    if (store->log != NULL)
        store->log(store->log_context, level, text);
}

snk_redis_listener snk_wake_listener(snk_redis_store *store)
{
    return (snk_redis_listener){
        .message = on_message,
        .subscribed = on_subscribed,
        .connected = on_connected,
        .disconnected = on_disconnected,
        .log = on_log,
        .context = store,
    };
}

/* ---- What the store wants to hear ---- */

/* Without memory for it, or with too many channels, the claim is found by its next look. */
static void subscribe(snk_redis_store *store, const snk_topology_channel *channel)
{
    sneck_error error;
    if (snk_topology_subscribe(store->topology, channel, &error) != SNECK_OK)
        on_log(store, SNECK_LOG_WARNING, "event=subscribe-failed");
}

static snk_topology_channel private_channel(const snk_redis_store *store, uint16_t slot, char text[SNK_CHANNEL_SIZE])
{
    snk_channel_private(store, slot, text);
    return (snk_topology_channel){
        .name = text, .length = strlen(text), .slot = slot, .sharded = store->slot_tags != NULL
    };
}

static snk_topology_channel public_channel(const snk_redis_store *store, const char *name, char text[SNK_CHANNEL_SIZE])
{
    snk_keys keys;
    /* It is the name of a lock that is waited for, so its keys could be made before. */
    (void)snk_keys_make(&keys, store->prefix, name, NULL);
    bool sharded = snk_channel_public(store, name, &keys, text);
    return (snk_topology_channel){
        .name = text, .length = strlen(text), .slot = snk_channel_slot(store, &keys), .sharded = sharded
    };
}

/* Waits until messages to this client are heard. False: not yet, and the claim must look often until they are. */
static bool await_private(snk_redis_store *store, uint16_t slot, bool may_wait)
{
    if (is_heard(store, slot))
        return true;
    if (!may_wait)
        return false;
    char text[SNK_CHANNEL_SIZE];
    snk_topology_channel channel = private_channel(store, slot, text);
    return snk_topology_await_subscribed(store->topology, &channel, snk_time_add(snk_now_ns(), LISTEN_WAIT_NS));
}

snk_wake_hearing snk_wake_listen(snk_redis_store *store, const snk_id *claim, uint16_t slot, bool holder_is_foreign,
                                 bool may_wait)
{
    bool was_heard = is_heard(store, slot);
    bool wants_public = holder_is_foreign || store->options.wake == SNK_WAKE_ALL;
    snk_waiting_wants wants = snk_waiting_mark(&store->waiting, claim, slot, wants_public);
    char text[SNK_CHANNEL_SIZE];
    if (wants.private_channel) {
        snk_topology_channel channel = private_channel(store, slot, text);
        subscribe(store, &channel);
    }
    bool is_public_heard = false;
    if (wants.public_channel) {
        snk_topology_channel channel = public_channel(store, wants.name, text);
        is_public_heard = snk_topology_is_subscribed(store->topology, &channel);
        subscribe(store, &channel);
    }
    if (!await_private(store, slot, may_wait))
        return SNK_WAKE_DEAF;
    /*
     * If the public channel is confirmed already nothing will come, but something may have been said before this claim
     * waited; the same goes for a private channel that was confirmed just now.
     */
    return was_heard && !is_public_heard ? SNK_WAKE_HEARS : SNK_WAKE_MISSED;
}

static void stop_listening(snk_redis_store *store, const char *name)
{
    char text[SNK_CHANNEL_SIZE];
    snk_topology_channel channel = public_channel(store, name, text);
    snk_topology_unsubscribe(store->topology, &channel);
}

void snk_wake_forget(snk_redis_store *store, const snk_id *claim)
{
    char name[SNK_NAME_LENGTH_MAX + 1];
    if (snk_waiting_remove(&store->waiting, claim, name))
        stop_listening(store, name);
}

void snk_wake_hold(snk_redis_store *store, const snk_id *claim)
{
    char name[SNK_NAME_LENGTH_MAX + 1];
    if (!store->tracks)
        snk_wake_forget(store, claim);
    else if (snk_waiting_hold(&store->waiting, claim, name))
        stop_listening(store, name);
}
