/* What goes wrong, and when: drawn per seed, each class armed on its own. */
#ifndef SIM_FAULTS_H
#define SIM_FAULTS_H

#include "world.h"

/* Draws the plan of this seed, and the clocks. */
void faults_draw_plan(sim_world *world);

/* Puts the first fault of each armed class into the future. */
void faults_begin(sim_world *world);

void faults_on_event(sim_world *world, const sim_event *event);

/* Pauses happen at the worst moments too: while a hold is kept for hand-off and nobody has taken it. */
void faults_after_step(sim_world *world, sim_process *process, uint32_t lock);

/* The store has lost something, and nobody can say what; only these claims, which hold locks, are as they were. */
void faults_distrust(sim_world *world, const snk_id kept[], uint32_t kept_count);

/* A process that crashed or is closing: begins anew if it can. */
void faults_on_restart(sim_world *world, const sim_event *event);

/* No faults any more. */
void faults_heal(sim_world *world);

#endif
