/*
 * A cluster: some of its servers are asked who has which slot. A server that is asked for a slot it does not have says
 * who has it; that is believed at once, and the whole map is looked at again.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "redis/backoff.h"
#include "redis/map.h"
#include "redis/question.h"

#define IDLE_NS (15 * SNK_NS_PER_S)
#define ASKED_AT_ONCE 3

/* ---- The map ---- */

static snk_node *node_at(snk_topology *topology, uint16_t index)
{
    return index == SNK_MAP_NOBODY ? NULL : atomic_load_explicit(&topology->nodes[index], memory_order_relaxed);
}

static snk_node *route_locked(snk_topology *topology, uint16_t slot)
{
    if (topology->map == NULL)
        return NULL;
    if (slot != SNK_REDIS_SLOT_ANY)
        return node_at(topology, topology->map->owners[slot]);
    size_t begin = snk_redis_random(&topology->random) % SNK_REDIS_SLOTS;
    for (size_t i = 0; i < SNK_REDIS_SLOTS; i++) {
        snk_node *node = node_at(topology, topology->map->owners[(begin + i) % SNK_REDIS_SLOTS]);
        if (node != NULL)
            return node;
    }
    return NULL;
}

static void set_owner_locked(snk_topology *topology, uint16_t slot, uint16_t owner)
{
    uint16_t *before = &topology->map->owners[slot];
    if (*before == owner)
        return;
    /* One that was served by nobody has found the server that it had before, or another: nobody knows. */
    if (owner != SNK_MAP_NOBODY && topology->version > 0)
        snk_topology_displace_locked(topology, slot);
    *before = owner;
}

static void moved_locked(snk_topology *topology, uint16_t slot, snk_node *node)
{
    if (topology->map == NULL)
        return;
    set_owner_locked(topology, slot, node->index);
    node->mapped = true;
    topology->version++;
}

static void install_locked(snk_topology *topology, const snk_map_range ranges[], snk_node *const nodes[], size_t count)
{
    uint16_t owners[SNK_REDIS_SLOTS];
    memset(owners, 0xff, sizeof owners);
    for (size_t i = 0; i < SNK_REDIS_NODES_MAX; i++) {
        snk_node *node = node_at(topology, (uint16_t)i);
        if (node != NULL)
            node->mapped = false;
    }
    for (size_t i = 0; i < count; i++) {
        nodes[i]->mapped = true;
        nodes[i]->replicas = ranges[i].replicas;
        for (size_t slot = ranges[i].first; slot <= ranges[i].last; slot++)
            owners[slot] = nodes[i]->index;
    }
    if (memcmp(topology->map->owners, owners, sizeof owners) == 0)
        return;
    for (uint16_t slot = 0; slot < SNK_REDIS_SLOTS; slot++)
        set_owner_locked(topology, slot, owners[slot]);
    topology->version++;
}

static sneck_status install(snk_topology *topology, const snk_map_range ranges[], size_t count, sneck_error *error)
{
    snk_node **nodes = calloc(count, sizeof(snk_node *));
    sneck_status status = SNECK_OK;
    if (nodes == NULL)
        return snk_fail(error, SNECK_NO_MEMORY, 0, "redis: no memory for the map of the cluster");
    for (size_t i = 0; i < count && status == SNECK_OK; i++) {
        nodes[i] = snk_node_get(topology, SNK_NODE_SERVER, &ranges[i].address, error);
        if (nodes[i] == NULL)
            status = error->status;
    }
    pthread_mutex_lock(&topology->mutex);
    if (topology->map == NULL) {
        topology->map = malloc(sizeof *topology->map);
        if (topology->map != NULL)
            memset(topology->map->owners, 0xff, sizeof topology->map->owners);
        else
            status = snk_fail(error, SNECK_NO_MEMORY, 0, "redis: no memory for the map of the cluster");
    }
    if (status == SNECK_OK)
        install_locked(topology, ranges, nodes, count);
    for (size_t i = 0; i < count; i++)
        snk_node_unref_locked(nodes[i]);
    pthread_mutex_unlock(&topology->mutex);
    free(nodes);
    return status;
}

/*
 * Whoever waits for a server that has lost all its slots and cannot be reached would wait for nothing: it is given up, and
 * what has not left goes where the slots are now.
 */
static void give_up_lost(snk_topology *topology)
{
    for (size_t i = 0; i < SNK_REDIS_NODES_MAX; i++) {
        sneck_error why;
        pthread_mutex_lock(&topology->mutex);
        snk_node *node = node_at(topology, (uint16_t)i);
        bool is_lost = node != NULL && !node->mapped && !node->retired && node->references > 0;
        node = is_lost ? snk_node_ref_locked(node) : NULL;
        pthread_mutex_unlock(&topology->mutex);
        if (is_lost && snk_node_is_down(node, &why))
            snk_node_retire(node);
        snk_node_unref(node);
    }
}

/* ---- Looking ---- */

/* Up to `most` servers of the map, by chance; how many. */
static size_t choose_known(snk_topology *topology, snk_question questions[ASKED_AT_ONCE], size_t most)
{
    size_t count = 0;
    size_t seen = 0;
    pthread_mutex_lock(&topology->mutex);
    for (size_t i = 0; i < SNK_REDIS_NODES_MAX; i++) {
        snk_node *node = node_at(topology, (uint16_t)i);
        if (node == NULL || !node->mapped || node->retired)
            continue;
        /* Each of those seen so far is among the chosen with the same chance. */
        seen++;
        size_t place = count < most ? count++ : snk_redis_random(&topology->random) % seen;
        if (place >= most)
            continue;
        snk_node_unref_locked(questions[place].node);
        questions[place].node = snk_node_ref_locked(node);
    }
    pthread_mutex_unlock(&topology->mutex);
    return count;
}

/* The same of the servers that the plan names. */
static size_t choose_planned(snk_topology *topology, snk_question questions[ASKED_AT_ONCE], sneck_error *error)
{
    const snk_plan *plan = &topology->plan;
    size_t count = 0;
    pthread_mutex_lock(&topology->mutex);
    size_t begin = snk_redis_random(&topology->random) % plan->host_count;
    pthread_mutex_unlock(&topology->mutex);
    for (size_t i = 0; i < plan->host_count && count < ASKED_AT_ONCE; i++) {
        questions[count].node =
            snk_node_get(topology, SNK_NODE_SERVER, &plan->hosts[(begin + i) % plan->host_count], error);
        count += questions[count].node != NULL;
    }
    return count;
}

/* A map that a server told. */
typedef struct told_map {
    snk_map_range *ranges; /* owned */
    size_t count;
    size_t slots;
    size_t stranded; /* slots that it gives to servers that cannot be reached */
} told_map;

static size_t count_stranded(snk_topology *topology, const told_map *told, const bool down[])
{
    size_t stranded = 0;
    pthread_mutex_lock(&topology->mutex);
    for (size_t i = 0; i < told->count; i++) {
        const snk_map_range *range = &told->ranges[i];
        const snk_node *node = snk_node_find_locked(topology, SNK_NODE_SERVER, &range->address);
        if (node != NULL && down[node->index])
            stranded += (size_t)(range->last - range->first) + 1;
    }
    pthread_mutex_unlock(&topology->mutex);
    return stranded;
}

/* The same of the map that is used; SIZE_MAX without one. */
static size_t count_stranded_now(snk_topology *topology, const bool down[])
{
    size_t stranded = 0;
    pthread_mutex_lock(&topology->mutex);
    const snk_map *map = topology->map;
    for (size_t slot = 0; map != NULL && slot < SNK_REDIS_SLOTS; slot++)
        stranded += map->owners[slot] != SNK_MAP_NOBODY && down[map->owners[slot]];
    pthread_mutex_unlock(&topology->mutex);
    return map == NULL ? SIZE_MAX : stranded;
}

/*
 * Of several answers the one that knows the most slots with servers that are there: one that has not heard of a failover
 * yet, or never will, names the server that died. The error says why there is none.
 */
static told_map choose_best(snk_topology *topology, const snk_question questions[], size_t count, const bool down[],
                            sneck_error *error)
{
    told_map best = { .ranges = NULL };
    for (size_t i = 0; i < count; i++) {
        sneck_error why;
        const redisReply *reply = snk_question_answer(&questions[i], &why);
        told_map told = { .ranges = NULL };
        if (reply != NULL)
            told.ranges = snk_map_read(reply, questions[i].node->address.host, &told.count, &told.slots);
        else if (error->status == SNECK_OK || why.status != SNECK_UNAVAILABLE)
            *error = why;
        told.stranded = count_stranded(topology, &told, down);
        if (told.ranges != NULL && (best.ranges == NULL || told.slots - told.stranded > best.slots - best.stranded)) {
            snk_map_range *worse = best.ranges;
            best = told;
            told.ranges = worse;
        }
        free(told.ranges);
    }
    if (best.ranges == NULL && error->status == SNECK_OK)
        snk_fail(error, SNECK_UNAVAILABLE, 0, "redis: no server of the cluster has any slots");
    return best;
}

static sneck_status take_best(snk_topology *topology, const snk_question questions[], size_t count, sneck_error *error)
{
    bool down[SNK_REDIS_NODES_MAX];
    (void)snk_nodes_find_down(topology, down);
    told_map best = choose_best(topology, questions, count, down, error);
    if (best.ranges == NULL)
        return error->status;
    sneck_status status = SNECK_OK;
    /* What is known already may be newer than what the only one says who was asked. */
    if (best.stranded <= count_stranded_now(topology, down))
        status = install(topology, best.ranges, best.count, error);
    free(best.ranges);
    give_up_lost(topology);
    return status;
}

static sneck_status ask(snk_topology *topology, snk_question questions[], size_t count, sneck_error *error)
{
    snk_question_ask(questions, count, 2, (const char *const[]){ "CLUSTER", "SLOTS" },
                     snk_question_timeout_ns(topology));
    sneck_status status = take_best(topology, questions, count, error);
    for (size_t i = 0; i < count; i++) {
        const snk_redis_call *call = &questions[i].call;
        if (status != SNECK_OK && call->outcome == SNK_REDIS_REPLY && call->reply->type == REDIS_REPLY_ERROR &&
            strstr(call->reply->str, "cluster support disabled") != NULL)
            status = snk_fail(error, SNECK_INVALID, 0, "%s is not part of a cluster; use redis:// or rediss://",
                              snk_redis_where(questions[i].node->redis));
    }
    snk_question_clear(questions, count);
    for (size_t i = 0; i < count; i++)
        snk_node_unref(questions[i].node);
    return status;
}

static sneck_status look(snk_topology *topology, bool idly, sneck_error *error)
{
    *error = (sneck_error){ .status = SNECK_OK };
    snk_question known[ASKED_AT_ONCE] = { { .node = NULL } };
    size_t count = choose_known(topology, known, idly ? 1 : ASKED_AT_ONCE);
    if (count > 0 && ask(topology, known, count, error) == SNECK_OK)
        return snk_ok(error);
    *error = (sneck_error){ .status = SNECK_OK };
    snk_question planned[ASKED_AT_ONCE] = { { .node = NULL } };
    count = choose_planned(topology, planned, error);
    if (count == 0)
        return error->status;
    sneck_status status = ask(topology, planned, count, error);
    return status == SNECK_OK ? snk_ok(error) : status;
}

const snk_topology_ops snk_topology_cluster = {
    .route_locked = route_locked,
    .look = look,
    .moved_locked = moved_locked,
    .idle_ns = IDLE_NS,
};
