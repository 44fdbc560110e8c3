/*
 * Included before everything else in a second build of the engine and the model store: there SNK_BUG is a variable, so
 * that one program can try each deliberate bug (base/bug.h) in turn.
 */
#ifndef SIM_BUG_SWITCH_H
#define SIM_BUG_SWITCH_H

extern int sim_bug;
#define SNK_BUG sim_bug

#endif
