#include "redis/follow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "redis/topology_parts.h"

/* How long one look at a server's own book of subscriptions may take before it is looked again where the channel is. */
#define AWAIT_SLICE_NS (20 * SNK_NS_PER_MS)

void snk_follows_init(snk_follows *follows)
{
    for (size_t i = 0; i < SNK_FOLLOW_BUCKETS; i++)
        snk_list_init(&follows->buckets[i]);
    follows->count = 0;
}

static snk_list *bucket_of(snk_follows *follows, const char *name, size_t length)
{
    uint32_t hash = 5381;
    for (size_t i = 0; i < length; i++)
        hash = hash * 33 ^ (unsigned char)name[i];
    return &follows->buckets[hash % SNK_FOLLOW_BUCKETS];
}

static snk_follow *find_locked(snk_topology *topology, const char *name, size_t length)
{
    const snk_list *bucket = bucket_of(&topology->follows, name, length);
    for (snk_link *link = snk_list_first(bucket); link != NULL; link = snk_list_next(bucket, link)) {
        snk_follow *follow = SNK_CONTAINER(link, snk_follow, link);
        if (follow->length == length && memcmp(follow->name, name, length) == 0)
            return follow;
    }
    return NULL;
}

static void leave_locked(snk_follow *follow)
{
    if (follow->node == NULL)
        return;
    snk_redis_unsubscribe(follow->node->redis, follow->name, follow->length);
    snk_node_unref_locked(follow->node);
    follow->node = NULL;
}

/* False when there is no server for it yet, or no room there. */
static bool place_locked(snk_topology *topology, snk_follow *follow)
{
    snk_node *node = snk_topology_route_locked(topology, follow->slot);
    if (node == follow->node)
        return node != NULL;
    leave_locked(follow);
    if (node == NULL)
        return false;
    sneck_status status = follow->sharded ? snk_redis_subscribe_sharded(node->redis, follow->name, follow->length, NULL)
                                          : snk_redis_subscribe(node->redis, follow->name, follow->length, NULL);
    if (status == SNECK_OK)
        follow->node = snk_node_ref_locked(node);
    return status == SNECK_OK;
}

static snk_follow *add_locked(snk_topology *topology, const snk_topology_channel *channel)
{
    snk_follow *follow = malloc(sizeof *follow + channel->length + 1);
    if (follow == NULL)
        return NULL;
    *follow = (snk_follow){ .slot = channel->slot, .sharded = channel->sharded, .length = channel->length };
    memcpy(follow->name, channel->name, channel->length);
    follow->name[channel->length] = '\0';
    snk_list_append(bucket_of(&topology->follows, channel->name, channel->length), &follow->link);
    topology->follows.count++;
    return follow;
}

static void drop_locked(snk_topology *topology, snk_follow *follow)
{
    leave_locked(follow);
    snk_list_remove(&follow->link);
    topology->follows.count--;
    free(follow);
}

sneck_status snk_topology_subscribe(snk_topology *topology, const snk_topology_channel *channel, sneck_error *error)
{
    sneck_status status = SNECK_OK;
    pthread_mutex_lock(&topology->mutex);
    snk_follow *follow = find_locked(topology, channel->name, channel->length);
    if (topology->closing)
        status = snk_fail(error, SNECK_UNAVAILABLE, ECANCELED, "redis: the client is being closed");
    else if (follow == NULL && topology->follows.count >= SNK_REDIS_CHANNELS_MAX)
        status = snk_fail(error, SNECK_LIMIT, 0, "redis: more than %d subscriptions", SNK_REDIS_CHANNELS_MAX);
    else if (follow == NULL && (follow = add_locked(topology, channel)) == NULL)
        status = snk_fail(error, SNECK_NO_MEMORY, ENOMEM, "redis: no memory for a subscription");
    if (status == SNECK_OK && follow != NULL) {
        follow->wanted++;
        if (follow->node == NULL && !place_locked(topology, follow))
            snk_scout_want_locked(topology);
    }
    pthread_mutex_unlock(&topology->mutex);
    return status == SNECK_OK ? snk_ok(error) : status;
}

void snk_topology_unsubscribe(snk_topology *topology, const snk_topology_channel *channel)
{
    pthread_mutex_lock(&topology->mutex);
    snk_follow *follow = find_locked(topology, channel->name, channel->length);
    if (follow != NULL && --follow->wanted == 0)
        drop_locked(topology, follow);
    pthread_mutex_unlock(&topology->mutex);
}

/* The server where the channel is subscribed to, with a reference; NULL when nowhere. */
static snk_node *place_of(snk_topology *topology, const snk_topology_channel *channel, bool *wanted_out)
{
    pthread_mutex_lock(&topology->mutex);
    const snk_follow *follow = find_locked(topology, channel->name, channel->length);
    snk_node *node = follow == NULL ? NULL : snk_node_ref_locked(follow->node);
    *wanted_out = follow != NULL && !topology->closing;
    pthread_mutex_unlock(&topology->mutex);
    return node;
}

bool snk_topology_is_subscribed(snk_topology *topology, const snk_topology_channel *channel)
{
    bool wanted = false;
    snk_node *node = place_of(topology, channel, &wanted);
    bool confirmed = node != NULL && snk_redis_is_subscribed(node->redis, channel->name, channel->length, NULL);
    snk_node_unref(node);
    return confirmed;
}

/* Waits a moment where the channel is now. True when there is an end to it: `*confirmed_out` says which. */
static bool await_slice(snk_topology *topology, const snk_topology_channel *channel, int64_t until_ns,
                        bool *confirmed_out)
{
    bool wanted = false;
    sneck_error error = { .status = SNECK_OK };
    snk_node *node = place_of(topology, channel, &wanted);
    if (node != NULL)
        *confirmed_out = snk_redis_await_subscribed(node->redis, channel->name, channel->length, until_ns, &error);
    snk_node_unref(node);
    if (*confirmed_out || !wanted || error.status == SNECK_DENIED)
        return true;
    /* It is nowhere, or has just left that place: it will be somewhere else soon. */
    pthread_mutex_lock(&topology->mutex);
    if (snk_now_ns() < until_ns)
        snk_topology_sleep_locked(topology, until_ns);
    pthread_mutex_unlock(&topology->mutex);
    return false;
}

bool snk_topology_await_subscribed(snk_topology *topology, const snk_topology_channel *channel, int64_t until_ns)
{
    bool confirmed = false;
    if (topology->plan.kind == SNK_TOPOLOGY_SINGLE)
        return snk_redis_await_subscribed(topology->master->redis, channel->name, channel->length, until_ns, NULL);
    int cancel_state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    snk_topology_enter(topology);
    for (int64_t now = snk_now_ns(); now < until_ns; now = snk_now_ns()) {
        int64_t slice_ns = now + AWAIT_SLICE_NS;
        if (await_slice(topology, channel, slice_ns < until_ns ? slice_ns : until_ns, &confirmed))
            break;
    }
    snk_topology_leave(topology);
    pthread_setcancelstate(cancel_state, NULL);
    return confirmed;
}

/* ---- Moving ---- */

typedef bool (*follow_fn)(snk_topology *topology, snk_follow *follow);

/* How many of them `each` returned true for. */
static size_t each_locked(snk_topology *topology, follow_fn each)
{
    size_t count = 0;
    for (size_t i = 0; i < SNK_FOLLOW_BUCKETS; i++) {
        const snk_list *bucket = &topology->follows.buckets[i];
        snk_link *following;
        for (snk_link *link = snk_list_first(bucket); link != NULL; link = following) {
            following = snk_list_next(bucket, link);
            count += each(topology, SNK_CONTAINER(link, snk_follow, link));
        }
    }
    return count;
}

bool snk_follows_place_locked(snk_topology *topology)
{
    return each_locked(topology, place_locked) < topology->follows.count;
}

static bool forget_locked(snk_topology *topology, snk_follow *follow)
{
    drop_locked(topology, follow);
    return true;
}

void snk_follows_clear_locked(snk_topology *topology)
{
    (void)each_locked(topology, forget_locked);
}

bool snk_follows_lost_locked(snk_topology *topology, const snk_node *node, const char *name, size_t length)
{
    snk_follow *follow = find_locked(topology, name, length);
    if (follow == NULL || follow->node != node)
        return false;
    leave_locked(follow);
    return true;
}
