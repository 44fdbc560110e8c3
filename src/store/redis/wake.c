/*
 * Messages. The private channel of this client brings the id of a claim that was granted, or may have been; the public
 * channel of a lock says that it was released, and is listened to only while a client of another kind holds it, or
 * with wake=all. Whatever a message says, all it does is that a claim of ours which waits is asked about: so a forged
 * one costs a question, and a lost one is made good by the next look.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/futex.h"
#include "store/redis/redis.h"

/* How long the first claim that waits is held up until messages are heard. */
#define LISTEN_WAIT_NS (1 * SNK_NS_PER_S)

static void private_channel(const snk_redis_store *store, char channel[SNK_CHANNEL_SIZE])
{
    (void)snprintf(channel, SNK_CHANNEL_SIZE, SNK_WAKE_CHANNEL "%s", store->identity.uuid);
}

static void public_channel(const char *name, char channel[SNK_CHANNEL_SIZE])
{
    (void)snprintf(channel, SNK_CHANNEL_SIZE, SNK_RELEASE_CHANNEL "%.512s", name);
}

/* ---- Sleeping ---- */

/*
 * A client that wants to be told is told, and wakes whoever waits with that claim now (perhaps another thread than the
 * one that first did). Without one, sleepers watch a word for each claim themselves.
 *
 * A ticket: bit 63 (no ticket is 0), bits 32-62 which word, bits 0-31 its value before the request left that was
 * answered with "queued". So a message that came before the answer is not slept over.
 */
uint64_t snk_wake_ticket(const snk_redis_store *store, const snk_id *claim)
{
    uint64_t index = claim->bytes[0] % SNK_WAKE_WORDS;
    return UINT64_C(1) << 63 | index << 32 | atomic_load(&store->words[index]);
}

static void tell(void *context, const char *name, const snk_id *claim)
{
    snk_redis_store *store = context;
    if (store->news != NULL) {
        store->news(store->news_context, name, claim);
        return;
    }
    _Atomic uint32_t *word = &store->words[claim->bytes[0] % SNK_WAKE_WORDS];
    (void)atomic_fetch_add(word, 1);
    (void)atomic_fetch_add(&store->any, 1);
    snk_futex_wake(word, INT_MAX, false);
    snk_futex_wake(&store->any, INT_MAX, false);
}

static bool wait_on_words(snk_redis_store *store, uint64_t ticket, const snk_futex_word *local, int64_t limit_ns)
{
    bool any = ticket == 0;
    _Atomic uint32_t *news = any ? &store->any : &store->words[(ticket >> 32) % SNK_WAKE_WORDS];
    uint32_t known = any ? atomic_load(&store->any_seen) : (uint32_t)ticket;
    if (atomic_load(news) == known && limit_ns > 0) {
        const snk_futex_word words[] = { *local, { .word = news, .expected = known } };
        if (!snk_futex_wait_any(words, 2, limit_ns))
            (void)snk_futex_wait_any(words, 1, limit_ns < SNK_NS_PER_MS ? limit_ns : SNK_NS_PER_MS);
    }
    uint32_t value = atomic_load(news);
    return any ? atomic_exchange(&store->any_seen, value) != value : value != known;
}

bool snk_redis_store_wait(snk_store *base, uint64_t ticket, _Atomic uint32_t *word, uint32_t expected, int64_t until_ns)
{
    snk_redis_store *store = snk_redis_store_of(base);
    const snk_futex_word local = { .word = word, .expected = expected };
    int64_t limit_ns = until_ns == SNK_NEVER_NS ? SNK_NEVER_NS : until_ns - snk_now_ns();
    if (store->news == NULL)
        return wait_on_words(store, ticket, &local, limit_ns);
    if (limit_ns > 0)
        (void)snk_futex_wait_any(&local, 1, limit_ns);
    return false;
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
        snk_waiting_tell(&store->waiting, name, tell, store);
    else if (atomic_exchange(&store->is_heard, true))
        snk_waiting_tell(&store->waiting, NULL, tell, store);
}

/* The server may have been restarted without its data: then it knows none of our claims. */
static void on_connected(void *context, snk_redis_lane lane, snk_redis_run run, bool again)
{
    (void)run;
    snk_redis_store *store = context;
    if (again && lane == SNK_REDIS_SHARED && store->link != NULL)
        store->link(store->link_context, true, "");
    if (again && lane == SNK_REDIS_SHARED)
        snk_waiting_tell(&store->waiting, NULL, tell, store);
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
