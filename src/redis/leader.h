/* Topologies with one master: who it is, and that it says so itself. */
#ifndef SNK_REDIS_LEADER_H
#define SNK_REDIS_LEADER_H

#include "redis/question.h"

snk_node *snk_leader_route_locked(snk_topology *topology, uint16_t slot);

/*
 * `node` is the master from now on (nothing happens if it was before), and should have so many replicas. The one before
 * gets nothing any more; what is on its way there has a moment to be answered, and is then given up: nobody should wait
 * for long for a server that has been replaced (snk_node_retire). Scout only.
 */
void snk_leader_adopt(snk_topology *topology, snk_node *node, unsigned replicas);

/* True when that is the answer of a master to ROLE; `*replicas_out` (may be NULL): how many replicas it has. */
bool snk_leader_is_master(const redisReply *role, size_t *replicas_out);

/* What is wrong with an answer to ROLE that is not a master's. */
void snk_leader_explain(const snk_question *question, sneck_error *error);

#endif
