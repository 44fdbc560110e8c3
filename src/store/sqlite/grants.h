/*
 * Notes in the mapped file by which a waiter learns that its claim was granted the lock, without a transaction of its
 * own. A note is made after the commit of the grant, and before the waiter is woken. It is a hint like every word of that
 * file, and may be overwritten by the next one: whoever finds no note asks.
 *
 * Writers have the writer mutex; one may die in the middle of a note. Readers have nothing, and take a note only if no
 * write was begun or ended while they read.
 */
#ifndef SNK_STORE_SQLITE_GRANTS_H
#define SNK_STORE_SQLITE_GRANTS_H

#include "engine/claim.h"
#include "store/sqlite/sidecar.h"

void snk_grant_write(snk_slot *slot, const snk_grant *grant);

/* Fills in the tokens. */
bool snk_grant_read(snk_slot *slot, const snk_id *claim, snk_grant *grant_out);

#endif
