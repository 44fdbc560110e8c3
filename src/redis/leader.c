#include "redis/leader.h"

#include <string.h>

#include "base/error.h"

snk_node *snk_leader_route_locked(snk_topology *topology, uint16_t slot)
{
    (void)slot;
    return topology->master;
}

void snk_leader_adopt(snk_topology *topology, snk_node *node, unsigned replicas)
{
    pthread_mutex_lock(&topology->mutex);
    snk_node *before = topology->master;
    node->replicas = replicas;
    if (before != node) {
        topology->master = snk_node_ref_locked(node);
        node->mapped = true;
        topology->version++;
        for (uint16_t slot = 0; before != NULL && slot < SNK_REDIS_SLOTS; slot++)
            snk_topology_displace_locked(topology, slot);
    }
    pthread_mutex_unlock(&topology->mutex);
    if (before == node)
        return;
    snk_topology_log(topology, SNECK_LOG_INFO, "event=master server=\"%s\" before=\"%s\"", snk_redis_where(node->redis),
                     before == NULL ? "" : snk_redis_where(before->redis));
    if (before == NULL)
        return;
    snk_node_retire(before);
    snk_node_unref(before);
}

bool snk_leader_is_master(const redisReply *role, size_t *replicas_out)
{
    if (role == NULL || role->type != REDIS_REPLY_ARRAY || role->elements < 3 ||
        role->element[0]->type != REDIS_REPLY_STRING || strcmp(role->element[0]->str, "master") != 0)
        return false;
    if (replicas_out != NULL)
        *replicas_out = role->element[2]->type == REDIS_REPLY_ARRAY ? role->element[2]->elements : 0;
    return true;
}

void snk_leader_explain(const snk_question *question, sneck_error *error)
{
    if (snk_question_answer(question, error) != NULL)
        snk_fail(error, SNECK_UNAVAILABLE, 0, "%s is not a master", snk_redis_where(question->node->redis));
}
