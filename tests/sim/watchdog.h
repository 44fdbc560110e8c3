/* The watchdog of a simulated process: it looks at holds, ends them, and acquires again what was lost. */
#ifndef SIM_WATCHDOG_H
#define SIM_WATCHDOG_H

#include "oracle.h"
#include "world.h"

/* Does something about one of the holds of the process. */
void watchdog_look(sim_world *world, sim_process *process);

/* A hold may have been lost in this step, and is to be acquired again. */
void watchdog_after_step(sim_world *world, sim_process *process, uint32_t lock, const snk_actions *actions,
                         const oracle_before *before);

#endif
