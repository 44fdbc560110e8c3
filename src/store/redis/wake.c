/*
 * Messages. The private channel of this client brings the id of a claim that was granted, or may have been; the public
 * channel of a lock says that it was released, and is listened to only while a client of another kind holds it, or
 * with wake=all. Whatever a message says, all it does is that a claim of ours which waits is asked about: so a forged
 * one costs a question, and a lost one is made good by the next look.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/futex.h"
#include "store/redis/redis.h"

static void private_channel(const snk_redis_store *store, char channel[SNK_CHANNEL_SIZE])
{
    (void)snprintf(channel, SNK_CHANNEL_SIZE, SNK_WAKE_CHANNEL "%s", store->identity.uuid);
}

static void public_channel(const char *name, char channel[SNK_CHANNEL_SIZE])
{
    (void)snprintf(channel, SNK_CHANNEL_SIZE, SNK_RELEASE_CHANNEL "%.512s", name);
}

static void tell(void *context, const char *name, const snk_id *claim)
{
    const snk_redis_store *store = context;
    if (store->news != NULL)
        store->news(store->news_context, name, claim);
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

static void on_message(void *context, const snk_redis_message *message)
{
    snk_redis_store *store = context;
    char name[SNK_NAME_LENGTH_MAX + 1];
    if (name_of_channel(message->channel, message->channel_length, name)) {
        snk_waiting_tell(&store->waiting, name, tell, store);
        return;
    }
    char text[SNK_ID_TEXT_SIZE];
    snk_id claim;
    if (message->payload_length != sizeof text - 1)
        return;
    memcpy(text, message->payload, sizeof text - 1);
    text[sizeof text - 1] = '\0';
    if (snk_id_from_hex(&claim, text) && snk_waiting_find(&store->waiting, &claim, name))
        tell(store, name, &claim);
}

/* Whatever was said before that may have been missed. */
static void on_subscribed(void *context, const char *channel, size_t length, snk_redis_run run)
{
    (void)run;
    snk_redis_store *store = context;
    char name[SNK_NAME_LENGTH_MAX + 1];
    bool is_public = name_of_channel(channel, length, name);
    snk_waiting_tell(&store->waiting, is_public ? name : NULL, tell, store);
}

/* The server may have been restarted without its data: then it knows none of our claims. */
static void on_connected(void *context, snk_redis_lane lane, snk_redis_run run, bool again)
{
    (void)run;
    snk_redis_store *store = context;
    if (again && lane == SNK_REDIS_SHARED)
        snk_waiting_tell(&store->waiting, NULL, tell, store);
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

void snk_wake_listen(snk_redis_store *store, const snk_id *claim, bool holder_is_foreign)
{
    bool wants_public = holder_is_foreign || store->options.wake == SNK_WAKE_ALL;
    snk_waiting_wants wants = snk_waiting_mark(&store->waiting, claim, wants_public);
    char channel[SNK_CHANNEL_SIZE];
    if (wants.private_channel) {
        private_channel(store, channel);
        subscribe(store, channel);
    }
    if (wants.public_channel) {
        public_channel(wants.name, channel);
        /* If it is confirmed already nothing will come, but something may have been said before this claim waited. */
        bool heard = snk_redis_is_subscribed(store->redis, channel, strlen(channel), NULL);
        subscribe(store, channel);
        if (heard)
            tell(store, wants.name, claim);
    }
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

bool snk_redis_store_wait(snk_store *base, uint64_t ticket, _Atomic uint32_t *word, uint32_t expected,
                          int64_t until_ns)
{
    /* News is told to the client, which then changes the word. */
    (void)base;
    (void)ticket;
    int64_t limit_ns = until_ns == SNK_NEVER_NS ? SNK_NEVER_NS : until_ns - snk_now_ns();
    if (limit_ns > 0)
        (void)snk_futex_wait_any(&(snk_futex_word){ .word = word, .expected = expected }, 1, limit_ns);
    return false;
}
