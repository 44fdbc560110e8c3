/*
 * What src/client is to the machines, in simulated time: it carries requests to the store and answers back, fires
 * timers, chases what was given up and wakes threads.
 */
#ifndef SIM_MODEL_CLIENT_H
#define SIM_MODEL_CLIENT_H

#include "world.h"

/* Takes one step of a machine and does what it wants done. The caller fills all of `event` but the time. */
void client_step(sim_world *world, sim_process *process, uint32_t lock, snk_event *event, snk_actions *actions);

/* The requests of this step whose answer is the result of a release or an extend are the thread's. */
void client_step_for(sim_world *world, sim_process *process, sim_thread *thread, snk_event *event,
                     snk_actions *actions);

void client_on_request_arrives(sim_world *world, const sim_event *event);
void client_on_reply_arrives(sim_world *world, const sim_event *event);
void client_on_request_over(sim_world *world, const sim_event *event);
void client_on_timer(sim_world *world, const sim_event *event);
void client_on_chase(sim_world *world, const sim_event *event);

/* Asks the store whether it still has the hold of this machine, as the watchdog does. */
void client_check(sim_world *world, sim_process *process, uint32_t lock);

/* How long something is on its way, and whether it gets lost: on one network for requests, answers and messages. */
int64_t client_draw_way_ns(sim_world *world);
bool client_is_lost(sim_world *world, uint32_t chance);

/* All connections of the process fall: what is in flight is unanswered, or did not leave. */
void client_reset(sim_world *world, sim_process *process);

/* Everything that the process knew is gone. */
void client_drop_all(sim_world *world, sim_process *process);

/* Something is being chased, or an answer is waited for. */
bool client_is_busy(const sim_world *world, const sim_process *process);

#endif
