/*
 * Names of channels. With one master they are those of the lock and of the client. In a cluster a channel belongs to a
 * slot, as a key does, so the name ends with a hash tag that is in the slot of the lock.
 */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "store/redis/redis.h"

uint16_t snk_channel_slot(const snk_redis_store *store, const snk_keys *keys)
{
    if (store->slot_tags == NULL)
        return 0;
    return snk_redis_slot_of(keys->text[SNK_KEY_LOCK], keys->length[SNK_KEY_LOCK]);
}

void snk_channel_shard(const snk_redis_store *store, uint16_t slot, char shard[SNK_SHARD_SIZE])
{
    shard[0] = '\0';
    if (store->slot_tags != NULL)
        (void)snprintf(shard, SNK_SHARD_SIZE, ":{%u}", (unsigned)store->slot_tags[slot]);
}

void snk_channel_private(const snk_redis_store *store, uint16_t slot, char channel[SNK_CHANNEL_SIZE])
{
    char shard[SNK_SHARD_SIZE];
    snk_channel_shard(store, slot, shard);
    (void)snprintf(channel, SNK_CHANNEL_SIZE, SNK_WAKE_CHANNEL "%s%s", store->identity.uuid, shard);
}

bool snk_channel_public(const snk_redis_store *store, const char *name, const snk_keys *keys,
                        char channel[SNK_CHANNEL_SIZE])
{
    bool sharded = store->slot_tags != NULL && !store->options.announce_plainly &&
                   snk_topology_is_sharded(store->topology, snk_channel_slot(store, keys));
    const char *key = keys->text[SNK_KEY_LOCK];
    if (!sharded)
        (void)snprintf(channel, SNK_CHANNEL_SIZE, SNK_RELEASE_CHANNEL "%.512s", name);
    else if (strchr(key, '{') != NULL) /* which then is a hash tag */
        (void)snprintf(channel, SNK_CHANNEL_SIZE, SNK_RELEASE_CHANNEL "%s", key);
    else
        (void)snprintf(channel, SNK_CHANNEL_SIZE, SNK_RELEASE_CHANNEL "{%s}", key);
    return sharded;
}

/* The name of the lock with that key: false when it has not our prefix. */
static bool strip_prefix(const snk_redis_store *store, const char *key, size_t length,
                         char name[SNK_NAME_LENGTH_MAX + 1])
{
    size_t prefix_length = strlen(store->prefix);
    if (length <= prefix_length || length - prefix_length > SNK_NAME_LENGTH_MAX ||
        memcmp(key, store->prefix, prefix_length) != 0)
        return false;
    memcpy(name, key + prefix_length, length - prefix_length);
    name[length - prefix_length] = '\0';
    return true;
}

bool snk_channel_name(const snk_redis_store *store, const char *channel, size_t length,
                      char name[SNK_NAME_LENGTH_MAX + 1])
{
    size_t skip = sizeof SNK_RELEASE_CHANNEL - 1;
    if (length <= skip || memcmp(channel, SNK_RELEASE_CHANNEL, skip) != 0)
        return false;
    channel += skip;
    length -= skip;
    bool sharded = store->slot_tags != NULL && !store->options.announce_plainly;
    bool braced =
        length > 2 && channel[0] == '{' && channel[length - 1] == '}' && memchr(channel + 1, '{', length - 2) == NULL;
    if (sharded && braced && strip_prefix(store, channel + 1, length - 2, name))
        return true;
    if (sharded && !braced && memchr(channel, '{', length) != NULL && strip_prefix(store, channel, length, name))
        return true;
    if (length > SNK_NAME_LENGTH_MAX)
        return false;
    memcpy(name, channel, length);
    name[length] = '\0';
    return true;
}
