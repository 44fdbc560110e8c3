/* One server: what it says is what there is to know. */
#include "redis/topology_parts.h"

static snk_node *route_locked(snk_topology *topology, uint16_t slot)
{
    (void)slot;
    return topology->master;
}

static sneck_status look(snk_topology *topology, bool idly, sneck_error *error)
{
    (void)topology;
    (void)idly;
    (void)error;
    return SNECK_OK;
}

const snk_topology_ops snk_topology_single = { .route_locked = route_locked, .look = look, .idle_ns = SNK_NEVER_NS };
