/* Renewals and releases of claims that have their votes: what the store does around the tallies of engine/quorum. */
#include "shell.h"

void qs_ask_all(qs_world *world, qs_operation *operation, const qs_question *question, uint32_t bury)
{
    qs_sender sender = { .operation = qs_operation_number(world, operation), .undo = QS_UNDOS_MAX };
    operation->open += world->quorum.nodes;
    for (uint32_t i = 0; i < world->quorum.nodes; i++) {
        qs_question one = *question;
        operation->says[i] = SNK_NODE_OPEN;
        if ((bury >> i & 1) == 0)
            one.bury_ns = 0;
        qs_send(world, qs_process_of(world, operation), i, &one, sender);
    }
}

void qs_adopt(qs_world *world, const qs_operation *operation, const qs_claim *claim, uint32_t adopters)
{
    if (claim->state != QS_CLAIM_HELD || (operation->votes && claim->held_by != operation->attempt))
        return;
    qs_question question = {
        .ask = QS_ADOPT,
        .claim = claim->id,
        .attempt = claim->held_by,
        .token = claim->token,
        .lease_ns = operation->send.lease_ns,
        .renewed = !operation->votes,
    };
    qs_sender nobody = { .operation = QS_OPERATIONS_MAX, .undo = QS_UNDOS_MAX };
    for (uint32_t i = 0; i < world->quorum.nodes; i++)
        if ((adopters >> i & 1) != 0)
            qs_send(world, qs_process_of(world, operation), i, &question, nobody);
}

void qs_settle_adoption(qs_world *world, const qs_request *request, snk_node_says says)
{
    qs_claim *claim = qs_find_claim(world, &request->question.claim);
    if (says == SNK_NODE_YES)
        qs_saw(world, QS_PROBE_ADOPTED);
    if (says == SNK_NODE_SILENT && claim->state == QS_CLAIM_HELD) {
        claim->unanswered |= UINT32_C(1) << request->node;
    } else if (says == SNK_NODE_SILENT) {
        qs_question question = request->question;
        question.ask = QS_RELEASE;
        question.bury_ns = SNK_TOMBSTONE_NS;
        qs_undo_start(world, &world->processes[request->process], request->node, &question);
    }
}

/* No majority has it, so it is nobody's; the votes that it still has are in the way of others. */
static void forget(qs_world *world, const qs_operation *operation, qs_claim *claim)
{
    claim->state = QS_CLAIM_GONE;
    for (uint32_t i = 0; i < world->quorum.nodes; i++) {
        bool unanswered = (claim->unanswered >> i & 1) != 0;
        qs_question question = {
            .ask = QS_RELEASE,
            .claim = claim->id,
            .attempt = claim->held_by,
            .lease_ns = operation->send.lease_ns,
            .bury_ns = unanswered ? qs_tombstone_ns(&operation->send) : 0,
        };
        if (operation->says[i] != SNK_NODE_NO || unanswered)
            qs_undo_start(world, qs_process_of(world, operation), i, &question);
    }
}

static void tally_renewal(qs_world *world, qs_operation *operation, snk_quorum_says tally)
{
    snk_answer given = qs_make_answer(SNK_ANSWER_FAILED, SNECK_UNAVAILABLE);
    qs_claim *claim = qs_find_claim(world, &operation->send.claim);
    if (tally == SNK_QUORUM_YES) {
        given = qs_make_answer(SNK_ANSWER_HELD, SNECK_OK);
        given.token_first = claim->token;
        given.token_last = claim->token;
        for (uint32_t i = 0; i < world->quorum.nodes; i++)
            if (operation->says[i] == SNK_NODE_NO)
                qs_saw(world, QS_PROBE_RENEWED_WITHOUT);
    } else if (tally == SNK_QUORUM_NO) {
        qs_saw(world, QS_PROBE_GONE);
        forget(world, operation, claim);
        given = qs_make_answer(SNK_ANSWER_GONE, SNECK_OK);
    } else {
        qs_saw(world, QS_PROBE_RENEWAL_FAILED);
        if (tally == SNK_QUORUM_UNCERTAIN)
            given = qs_make_answer(SNK_ANSWER_UNCERTAIN, SNECK_UNKNOWN);
    }
    qs_answer(world, operation, &given);
}

static void tally_release(qs_world *world, qs_operation *operation, snk_quorum_says tally)
{
    snk_answer given = qs_make_answer(SNK_ANSWER_FAILED, SNECK_UNAVAILABLE);
    if (tally == SNK_QUORUM_YES || tally == SNK_QUORUM_NO)
        given = qs_make_answer(tally == SNK_QUORUM_YES ? SNK_ANSWER_DONE : SNK_ANSWER_GONE, SNECK_OK);
    else if (tally == SNK_QUORUM_UNCERTAIN)
        given = qs_make_answer(SNK_ANSWER_UNCERTAIN, SNECK_UNKNOWN);
    qs_answer(world, operation, &given);
}

void qs_settle_question(qs_world *world, qs_operation *operation, const qs_request *request, snk_node_says says)
{
    bool renews = operation->send.ask == SNK_ASK_RENEW;
    operation->says[request->node] = says;
    if (!renews && request->reply.refused)
        qs_saw(world, QS_PROBE_REFUSED);
    if (!renews && !snk_quorum_release_is_heard(says, request->reply.refused)) {
        qs_saw(world, QS_PROBE_RELEASED_IN_PART);
        qs_undo_start(world, qs_process_of(world, operation), request->node, &request->question);
    }
    if (!operation->answered) {
        snk_quorum_says tally = renews ? snk_quorum_renewal(&world->quorum, operation->says)
                                       : snk_quorum_release(&world->quorum, operation->says);
        if (tally != SNK_QUORUM_OPEN && renews)
            tally_renewal(world, operation, tally);
        else if (tally != SNK_QUORUM_OPEN)
            tally_release(world, operation, tally);
    }
    if (renews && operation->open == 0)
        qs_adopt(world, operation, qs_find_claim(world, &operation->send.claim),
                 snk_quorum_adopters(&world->quorum, operation->says));
}
