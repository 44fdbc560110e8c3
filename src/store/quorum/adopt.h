/*
 * A node that does not have a claim which a majority has is given it, so that the hold outlives other nodes: after a
 * renewal (see snk_quorum_adopters), and at once where the token of the grant came too late for a node. That answer may be
 * old when it is heard, so there the node must not have voted for a higher token since.
 */
#ifndef SNK_STORE_QUORUM_ADOPT_H
#define SNK_STORE_QUORUM_ADOPT_H

#include "store/quorum/operation.h"

/* `operation` is the try that was granted, or a renewal of it; nothing happens if the claim does not hold by it any more. */
void snk_adopt(const snk_operation *operation, uint32_t nodes);

#endif
