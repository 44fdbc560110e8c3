/*
 * Threads of this process that wait for each other's locks. Whoever begins to wait looks whether its wait closes a cycle;
 * the one that came last is told, and gives up.
 */
#ifndef SNK_CLIENT_DEADLOCK_H
#define SNK_CLIENT_DEADLOCK_H

#include <stdbool.h>

#include "client/waits.h"
#include "sneck.h"

/* True when this wait closes a cycle and began last of all in it; then the error says how it goes round. */
bool snk_deadlock_find(const snk_wait_record *record, sneck_error *error);

#endif
