#include "redis/channels.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"

#define SENT_FIRST 16

void snk_redis_channels_init(snk_redis_channels *channels)
{
    *channels = (snk_redis_channels){ 0 };
    for (size_t i = 0; i < SNK_REDIS_CHANNEL_BUCKETS; i++)
        snk_list_init(&channels->buckets[i]);
    snk_list_init(&channels->to_do);
}

void snk_redis_channels_deinit(snk_redis_channels *channels)
{
    for (size_t i = 0; i < SNK_REDIS_CHANNEL_BUCKETS; i++) {
        const snk_list *bucket = &channels->buckets[i];
        snk_link *following;
        for (snk_link *link = snk_list_first(bucket); link != NULL; link = following) {
            following = snk_list_next(bucket, link);
            free(SNK_CONTAINER(link, snk_redis_channel, link));
        }
    }
    free(channels->sent);
}

static snk_list *bucket_of(snk_redis_channels *channels, const char *name, size_t length)
{
    uint32_t hash = UINT32_C(2166136261); /* FNV-1a */
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)name[i]) * UINT32_C(16777619);
    return &channels->buckets[hash % SNK_REDIS_CHANNEL_BUCKETS];
}

snk_redis_channel *snk_redis_channels_find(snk_redis_channels *channels, const char *name, size_t length)
{
    const snk_list *bucket = bucket_of(channels, name, length);
    for (snk_link *link = snk_list_first(bucket); link != NULL; link = snk_list_next(bucket, link)) {
        snk_redis_channel *channel = SNK_CONTAINER(link, snk_redis_channel, link);
        if (channel->length == length && memcmp(channel->name, name, length) == 0)
            return channel;
    }
    return NULL;
}

static void look_at(snk_redis_channels *channels, snk_redis_channel *channel)
{
    if (!snk_link_is_linked(&channel->to_do))
        snk_list_append(&channels->to_do, &channel->to_do);
}

static snk_redis_channel *add(snk_redis_channels *channels, const char *name, size_t length)
{
    snk_redis_channel *channel = calloc(1, sizeof *channel + length + 1);
    if (channel == NULL)
        return NULL;
    memcpy(channel->name, name, length);
    channel->length = length;
    snk_list_append(bucket_of(channels, name, length), &channel->link);
    channels->count++;
    return channel;
}

static void drop_if_unused(snk_redis_channels *channels, snk_redis_channel *channel)
{
    if (channel->wanted > 0 || channel->in_flight > 0 || channel->joined)
        return;
    snk_list_remove(&channel->link);
    snk_list_remove(&channel->to_do);
    channels->count--;
    free(channel);
}

sneck_status snk_redis_channels_want(snk_redis_channels *channels, const char *name, size_t length, sneck_error *error)
{
    if (length > SNK_REDIS_COMMAND_BYTES_MAX)
        return snk_fail(error, SNECK_INVALID, 0, "redis: the name of a channel is too long");
    snk_redis_channel *channel = snk_redis_channels_find(channels, name, length);
    if (channel == NULL && channels->count >= SNK_REDIS_CHANNELS_MAX)
        return snk_fail(error, SNECK_LIMIT, 0, "redis: more than %d subscriptions", SNK_REDIS_CHANNELS_MAX);
    if (channel == NULL)
        channel = add(channels, name, length);
    if (channel == NULL)
        return snk_fail(error, SNECK_NO_MEMORY, ENOMEM, "redis: no memory for a subscription");
    channel->wanted++;
    look_at(channels, channel);
    return snk_ok(error);
}

void snk_redis_channels_unwant(snk_redis_channels *channels, const char *name, size_t length)
{
    snk_redis_channel *channel = snk_redis_channels_find(channels, name, length);
    if (channel == NULL || channel->wanted == 0)
        return;
    channel->wanted--;
    look_at(channels, channel);
}

static bool note_sent(snk_redis_channels *channels, snk_redis_channel *channel, bool join)
{
    if (channels->sent_tail - channels->sent_head == channels->sent_capacity) {
        size_t capacity = channels->sent_capacity > 0 ? channels->sent_capacity * 2 : SENT_FIRST;
        snk_redis_sent *sent = calloc(capacity, sizeof *sent);
        if (sent == NULL)
            return false;
        for (size_t i = channels->sent_head; i != channels->sent_tail; i++)
            sent[i & (capacity - 1)] = channels->sent[i & (channels->sent_capacity - 1)];
        free(channels->sent);
        channels->sent = sent;
        channels->sent_capacity = capacity;
    }
    channels->sent[channels->sent_tail++ & (channels->sent_capacity - 1)] =
        (snk_redis_sent){ .channel = channel, .join = join };
    return true;
}

bool snk_redis_channels_next(snk_redis_channels *channels, snk_redis_channel **channel_out, bool *join_out)
{
    snk_link *following;
    for (snk_link *link = snk_list_first(&channels->to_do); link != NULL; link = following) {
        following = snk_list_next(&channels->to_do, link);
        snk_redis_channel *channel = SNK_CONTAINER(link, snk_redis_channel, to_do);
        bool join = channel->wanted > 0;
        if (join == channel->joined) {
            snk_list_remove(link);
            drop_if_unused(channels, channel);
            continue;
        }
        if (!note_sent(channels, channel, join))
            return false;
        snk_list_remove(link);
        channel->joined = join;
        channel->confirmed = false;
        channel->refused = (sneck_error){ 0 };
        channel->in_flight++;
        *channel_out = channel;
        *join_out = join;
        return true;
    }
    return false;
}

snk_redis_channel *snk_redis_channels_answered(snk_redis_channels *channels, const sneck_error *error)
{
    if (channels->sent_head == channels->sent_tail)
        return NULL;
    snk_redis_channel *channel = channels->sent[channels->sent_head++ & (channels->sent_capacity - 1)].channel;
    assert(channel->in_flight > 0);
    channel->in_flight--;
    if (channel->in_flight > 0)
        return NULL;
    if (!channel->joined) {
        drop_if_unused(channels, channel);
        return NULL;
    }
    channel->confirmed = error == NULL;
    if (error != NULL) {
        channel->refused = *error;
        channel->joined = false;
    }
    return channel;
}

bool snk_redis_channels_ended(snk_redis_channels *channels, const char *name, size_t length,
                              snk_redis_channel **channel_out)
{
    *channel_out = NULL;
    snk_redis_channel *channel = snk_redis_channels_find(channels, name, length);
    if (channels->sent_head != channels->sent_tail) {
        const snk_redis_sent *oldest = &channels->sent[channels->sent_head & (channels->sent_capacity - 1)];
        if (!oldest->join && oldest->channel == channel)
            return false;
    }
    /* With a command on its way the answer to that one will tell. */
    if (channel == NULL || channel->in_flight > 0 || !channel->joined)
        return true;
    channel->joined = false;
    channel->confirmed = false;
    *channel_out = channel;
    return true;
}

void snk_redis_channels_cut(snk_redis_channels *channels)
{
    channels->sent_head = channels->sent_tail;
    for (size_t i = 0; i < SNK_REDIS_CHANNEL_BUCKETS; i++) {
        const snk_list *bucket = &channels->buckets[i];
        snk_link *following;
        for (snk_link *link = snk_list_first(bucket); link != NULL; link = following) {
            following = snk_list_next(bucket, link);
            snk_redis_channel *channel = SNK_CONTAINER(link, snk_redis_channel, link);
            channel->joined = false;
            channel->confirmed = false;
            channel->in_flight = 0;
            if (channel->wanted > 0)
                look_at(channels, channel);
            else
                drop_if_unused(channels, channel);
        }
    }
}
