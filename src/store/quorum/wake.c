/*
 * Messages. A node that gives a vote back at the end of a hold says so on the lock's public channel. One node alone says
 * little: only when those that have said it since the last try began, and those that were free then, are a majority,
 * another try is worth it. Whatever they say, that is all it does; a lost message is made good by the next look.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/futex.h"
#include "base/text.h"
#include "store/quorum/quorum.h"

#define RELEASE_CHANNEL "lock:release:"
/* How long the first claim that waits for a lock is held up until messages are heard. */
#define LISTEN_WAIT_NS (1 * SNK_NS_PER_S)

/* ---- What is said ---- */

/* The time as the nodes have it, in ms: the highest of their clocks. */
static int64_t nodes_time_ms(snk_quorum_store *store)
{
    int64_t time_us = 0;
    int64_t now_ns = snk_now_ns();
    (void)pthread_mutex_lock(&store->mutex);
    for (uint32_t i = 0; i < store->quorum.nodes; i++) {
        const snk_node_clock *clock = &store->nodes[i].clock;
        if (clock->known && snk_node_clock_us(clock, now_ns) > time_us)
            time_us = snk_node_clock_us(clock, now_ns);
    }
    (void)pthread_mutex_unlock(&store->mutex);
    return (time_us > 0 ? time_us : snk_wall_us()) / 1000;
}

void snk_quorum_news_make(snk_quorum_store *store, const char *name, snk_quorum_news *news)
{
    static const char begin[] = "{\"lockKey\":\"";
    static const char time[] = "\",\"releaseTime\":";
    static const char holder[] = ",\"holder\":\"";
    news->channel[0] = '\0';
    news->message[0] = '\0';
    if (name == NULL || !store->options.announce)
        return;
    size_t length = strnlen(name, SNK_NAME_LENGTH_MAX);
    char *to = snk_text_append(news->channel, RELEASE_CHANNEL, sizeof RELEASE_CHANNEL - 1);
    (void)snk_text_append(to, name, length);
    to = snk_text_append(news->message, begin, sizeof begin - 1);
    to = snk_text_escape(to, name, length);
    to = snk_text_append(to, time, sizeof time - 1);
    to = snk_text_number(to, nodes_time_ms(store));
    (void)snk_text_append(to, holder, sizeof holder - 1);
}

/* ---- What is heard ---- */

bool snk_quorum_wait(snk_store *base, uint64_t ticket, _Atomic uint32_t *word, uint32_t expected, int64_t until_ns)
{
    return snk_bell_wait(&snk_quorum_store_of(base)->bell, ticket, word, expected, until_ns);
}

static void hear(snk_quorum_node *node, const char *channel, size_t length)
{
    snk_quorum_store *store = node->store;
    char name[SNK_NAME_LENGTH_MAX + 1];
    size_t skip = sizeof RELEASE_CHANNEL - 1;
    if (length <= skip || length - skip > SNK_NAME_LENGTH_MAX || memcmp(channel, RELEASE_CHANNEL, skip) != 0)
        return;
    memcpy(name, channel + skip, length - skip);
    name[length - skip] = '\0';
    snk_quorum_claims_hear(&store->claims, name, node->index, snk_quorum_majority(&store->quorum), snk_bell_ring,
                           &store->bell);
}

static void on_message(void *context, const snk_redis_message *message)
{
    hear(context, message->channel, message->channel_length);
}

/* Whatever the node said before that was missed. */
static void on_subscribed(void *context, const char *channel, size_t length, snk_redis_run run)
{
    (void)run;
    snk_quorum_node *node = context;
    hear(node, channel, length);
    (void)atomic_fetch_add(&node->store->confirmed, 1);
    snk_futex_wake(&node->store->confirmed, INT_MAX, false);
}

static void on_log(void *context, sneck_log_level level, const char *text)
{
    const snk_quorum_node *node = context;
    if (node->store->log != NULL)
        node->store->log(node->store->log_context, level, text);
}

snk_redis_listener snk_quorum_listener(snk_quorum_node *node)
{
    return (snk_redis_listener){
        .message = on_message,
        .subscribed = on_subscribed,
        .log = on_log,
        .context = node,
    };
}

static size_t channel_of(const char *name, char channel[SNK_NAME_LENGTH_MAX + 32])
{
    return (size_t)snprintf(channel, SNK_NAME_LENGTH_MAX + 32, RELEASE_CHANNEL "%.512s", name);
}

void snk_quorum_listen(snk_quorum_store *store, const char *name)
{
    char channel[SNK_NAME_LENGTH_MAX + 32];
    size_t length = channel_of(name, channel);
    for (uint32_t i = 0; i < store->quorum.nodes; i++) {
        sneck_error error;
        /* Without memory for it, or with too many channels, the claim is found by its next look. */
        if (snk_redis_subscribe(store->nodes[i].redis, channel, length, &error) != SNECK_OK)
            on_log(&store->nodes[i], SNECK_LOG_WARNING, "event=subscribe-failed");
    }
}

void snk_quorum_unlisten(snk_quorum_store *store, const char *name)
{
    char channel[SNK_NAME_LENGTH_MAX + 32];
    size_t length = channel_of(name, channel);
    for (uint32_t i = 0; i < store->quorum.nodes; i++)
        snk_redis_unsubscribe(store->nodes[i].redis, channel, length);
}

bool snk_quorum_hears(snk_quorum_store *store, const char *name)
{
    char channel[SNK_NAME_LENGTH_MAX + 32];
    size_t length = channel_of(name, channel);
    uint32_t count = 0;
    for (uint32_t i = 0; i < store->quorum.nodes; i++)
        count += snk_redis_is_subscribed(store->nodes[i].redis, channel, length, NULL);
    return count >= snk_quorum_majority(&store->quorum);
}

void snk_quorum_await_hearing(snk_quorum_store *store, const char *name)
{
    int64_t until_ns = snk_now_ns() + LISTEN_WAIT_NS;
    for (;;) {
        uint32_t confirmed = atomic_load(&store->confirmed);
        int64_t left_ns = until_ns - snk_now_ns();
        if (left_ns <= 0 || snk_quorum_hears(store, name))
            return;
        (void)snk_futex_wait_any(&(snk_futex_word){ .word = &store->confirmed, .expected = confirmed }, 1, left_ns);
    }
}
