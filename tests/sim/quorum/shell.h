/* How the files of the shell work together; see world.h for the rest. */
#ifndef SIM_QUORUM_SHELL_H
#define SIM_QUORUM_SHELL_H

#include "world.h"

static inline int64_t qs_tombstone_ns(const snk_send *send)
{
    return send->lease_ns > SNK_TOMBSTONE_NS ? send->lease_ns : SNK_TOMBSTONE_NS;
}

static inline uint32_t qs_operation_number(const qs_world *world, const qs_operation *operation)
{
    return (uint32_t)(operation - world->operations);
}

static inline qs_process *qs_process_of(qs_world *world, const qs_operation *operation)
{
    return &world->processes[operation->process];
}

/* ---- shell.c ---- */

snk_answer qs_make_answer(snk_answer_kind kind, sneck_status status);
void qs_answer(qs_world *world, qs_operation *operation, const snk_answer *given);

/* ---- ballots.c: tries to get a majority ---- */

void qs_begin_ballot(qs_world *world, qs_operation *operation, qs_claim *claim);
void qs_settle_vote(qs_world *world, qs_operation *operation, const qs_request *request, snk_node_says outcome);

/* ---- questions.c: about claims that have one ---- */

/* The question goes to all nodes; where it says so in `bury`, with the tombstone. */
void qs_ask_all(qs_world *world, qs_operation *operation, const qs_question *question, uint32_t bury);
void qs_settle_question(qs_world *world, qs_operation *operation, const qs_request *request, snk_node_says says);
/* These nodes are given the claim of a try that was granted, or of a renewal. */
void qs_adopt(qs_world *world, const qs_operation *operation, const qs_claim *claim, uint32_t adopters);
void qs_settle_adoption(qs_world *world, const qs_request *request, snk_node_says says);

#endif
