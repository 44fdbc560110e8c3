/* What the store says on its own: on its way, lost, late, repeated, forged. */
#ifndef SIM_MESSAGES_H
#define SIM_MESSAGES_H

#include "world.h"

/* Sends what the store has to say about claims that it granted from its queue. */
void messages_carry(sim_world *world, const model_news *news);

/* A server that was restarted with older data: what it had said before about claims that now wait again comes late. */
void messages_haunt(sim_world *world);

/* A message reaches a process. */
void messages_arrive(sim_world *world, const sim_event *event);

#endif
