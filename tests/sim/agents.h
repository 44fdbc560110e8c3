/* The threads of the simulated processes: they ask, wait, hold, write, release, and make mistakes that must be refused. */
#ifndef SIM_AGENTS_H
#define SIM_AGENTS_H

#include "world.h"

void agent_act(sim_world *world, sim_process *process, sim_thread *thread);
void agent_woken(sim_world *world, sim_process *process, sim_thread *thread);
void agent_limit(sim_world *world, sim_process *process, sim_thread *thread);

/* The answer to its release or extend is there. */
void agent_answered(sim_world *world, sim_process *process, sim_thread *thread, sneck_status status);

/* A waiter of this thread was woken by the machine, or by news from the store. */
void agent_wake(sim_world *world, sim_process *process, sim_thread *thread, bool news);

/* The next thing it does comes after `pause_ns`. */
void agent_schedule(sim_world *world, sim_process *process, sim_thread *thread, int64_t pause_ns);

/* The thread ends while it holds a lock; another one takes its place. */
void agent_die(sim_world *world, sim_process *process, sim_thread *thread);

/* Asks the machine to close, as sneck_close does. */
void agent_close_client(sim_world *world, sim_process *process);

#endif
