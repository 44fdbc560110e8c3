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

static void private_channel(const snk_redis_store *store, char channel[SNK_CHANNEL_SIZE])
{
    (void)snprintf(channel, SNK_CHANNEL_SIZE, SNK_WAKE_CHANNEL "%s", store->identity.uuid);
}

static void public_channel(const char *name, char channel[SNK_CHANNEL_SIZE])
{
    (void)snprintf(channel, SNK_CHANNEL_SIZE, SNK_RELEASE_CHANNEL "%.512s", name);
}

bool snk_redis_store_wait(snk_store *base, uint64_t ticket, _Atomic uint32_t *word, uint32_t expected, int64_t until_ns)
{
    snk_redis_store *store = snk_redis_store_of(base);
    if (store->bell.news == NULL)
        return snk_bell_wait(&store->bell, ticket, word, expected, until_ns);
    /* A thread that waits for any claim has other things to do as well, and leaves receiving to others. */
    snk_redis_nap nap = { .word = word, .expected = expected, .until_ns = until_ns, .may_receive = ticket != 0 };
    if (until_ns == SNK_NEVER_NS || until_ns > snk_now_ns())
        snk_redis_sleep(store->redis, &nap);
    return false;
}

bool snk_redis_store_rouse(snk_store *base, const _Atomic uint32_t *word)
{
    return snk_redis_rouse(snk_redis_store_of(base)->redis, word);
}

/* The name of the lock whose public channel this is; false when it is none. */
static bool name_of_channel(const char *channel, size_t length, char name[SNK_NAME_LENGTH_MAX + 1])
{
    size_t skip = sizeof SNK_RELEASE_CHANNEL - 1;
    if (length <= skip || length - skip > SNK_NAME_LENGTH_MAX || memcmp(channel, SNK_RELEASE_CHANNEL, skip) != 0)
        return false;
    memcpy(name, channel + skip, length - skip);
    name[length - skip] = '\0';
    return true;
}

/* ---- What the connection says ---- */

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
    if (name_of_channel(message->channel, message->channel_length, name)) {
        snk_waiting_tell(&store->waiting, name, snk_bell_ring, &store->bell);
        return;
    }
    snk_grant grant;
    bool granted = false;
    if (read_private(message, &grant, &granted) && snk_waiting_find(&store->waiting, &grant.claim, name))
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
    if (name_of_channel(channel, length, name))
        snk_waiting_tell(&store->waiting, name, snk_bell_ring, &store->bell);
    else if (atomic_exchange(&store->is_heard, true))
        snk_waiting_tell(&store->waiting, NULL, snk_bell_ring, &store->bell);
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
static void subscribe(snk_redis_store *store, const char *channel)
{
    sneck_error error;
    if (snk_redis_subscribe(store->redis, channel, strlen(channel), &error) != SNECK_OK)
        on_log(store, SNECK_LOG_WARNING, "event=subscribe-failed");
}

/* Waits until messages to this client are heard. False: not yet, and the claim must look often until they are. */
static bool await_private(snk_redis_store *store, bool may_wait)
{
    if (atomic_load(&store->is_heard))
        return true;
    if (!may_wait)
        return false;
    char channel[SNK_CHANNEL_SIZE];
    private_channel(store, channel);
    int64_t until_ns = snk_time_add(snk_now_ns(), LISTEN_WAIT_NS);
    return snk_redis_await_subscribed(store->redis, channel, strlen(channel), until_ns, NULL);
}

snk_wake_hearing snk_wake_listen(snk_redis_store *store, const snk_id *claim, bool holder_is_foreign, bool may_wait)
{
    bool was_heard = atomic_load(&store->is_heard);
    bool wants_public = holder_is_foreign || store->options.wake == SNK_WAKE_ALL;
    snk_waiting_wants wants = snk_waiting_mark(&store->waiting, claim, wants_public);
    char channel[SNK_CHANNEL_SIZE];
    if (wants.private_channel) {
        private_channel(store, channel);
        subscribe(store, channel);
    }
    bool is_public_heard = false;
    if (wants.public_channel) {
        public_channel(wants.name, channel);
        is_public_heard = snk_redis_is_subscribed(store->redis, channel, strlen(channel), NULL);
        subscribe(store, channel);
    }
    if (!await_private(store, may_wait))
        return SNK_WAKE_DEAF;
    /*
     * If the public channel is confirmed already nothing will come, but something may have been said before this claim
     * waited; the same goes for a private channel that was confirmed just now.
     */
    return was_heard && !is_public_heard ? SNK_WAKE_HEARS : SNK_WAKE_MISSED;
}

void snk_wake_forget(snk_redis_store *store, const snk_id *claim)
{
    char name[SNK_NAME_LENGTH_MAX + 1];
    char channel[SNK_CHANNEL_SIZE];
    if (!snk_waiting_remove(&store->waiting, claim, name))
        return;
    public_channel(name, channel);
    snk_redis_unsubscribe(store->redis, channel, strlen(channel));
}
