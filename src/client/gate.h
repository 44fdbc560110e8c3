/*
 * Counts who is inside (of calls that use the store), so that closing can wait until nobody is, and lets nobody in
 * afterwards.
 */
#ifndef SNK_CLIENT_GATE_H
#define SNK_CLIENT_GATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct snk_gate {
    _Atomic uint32_t word; /* how many are inside, and SNK_GATE_CLOSED */
} snk_gate;

/* False when the gate is closed. */
bool snk_gate_enter(snk_gate *gate);
void snk_gate_leave(snk_gate *gate);

/* Closes the gate and returns when nobody is inside. */
void snk_gate_close(snk_gate *gate);

#endif
