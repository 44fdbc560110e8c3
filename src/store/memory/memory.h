/*
 * `memory:`, a store in the memory of one process, for tests: the full rules of store.h and nothing else. Claims in it
 * do not die with a client, only with their lease.
 *
 * Each snk_store is a view of a table; tests make several views of one table, one for each client that they play.
 */
#ifndef SNK_STORE_MEMORY_MEMORY_H
#define SNK_STORE_MEMORY_MEMORY_H

#include "store/store.h"

/* Another view of the table behind `store`, with the same prefix, for another client. Close each view. */
sneck_status snk_memory_share(snk_store *store, const snk_identity *identity, snk_store **store_out,
                              sneck_error *error);

#endif
