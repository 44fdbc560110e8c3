/*
 * An asynchronous replica of the store. It hears of executions in their order, but late, and when the master dies it takes
 * its place with what it has heard of, on its own clock.
 */
#ifndef SIM_REPLICA_H
#define SIM_REPLICA_H

#include "world.h"

void replica_draw_plan(sim_random *random, sim_plan *plan);

/* Something was executed: the replica hears of that, and of everything before, or of nothing yet. */
void replica_follow(sim_world *world);

/* It hears of nothing for a while, and nobody notices. */
void replica_cut(sim_world *world);

/* The master dies. */
void replica_take_over(sim_world *world);

#endif
