/*
 * When the command must be stopped so that it is gone by the end of the lease. sneck and its guard both decide by this,
 * each on its own clock: told at deadline - kill_after, killed at the deadline at the latest.
 */
#ifndef SNK_CLI_STOP_H
#define SNK_CLI_STOP_H

#include <stdbool.h>
#include <stdint.h>

typedef struct snk_stop {
    int64_t kill_after_ns;
    int64_t deadline_ns; /* the last one seen; 0: none */
    bool is_lost;
} snk_stop;

/* Takes in what the page says. */
void snk_stop_look(snk_stop *stop, int64_t deadline_ns);

/* The next time at which it may become due, if no renewal comes. */
int64_t snk_stop_due_at(const snk_stop *stop);
bool snk_stop_is_due(const snk_stop *stop, int64_t now_ns);

/* When a group that was told at `begun_ns` is to be killed. */
int64_t snk_stop_kill_at(const snk_stop *stop, int64_t begun_ns);

#endif
