/* Tries to get the votes of a majority: what the store does around engine/ballot. */
#include "shell.h"

static void ask_round(qs_world *world, qs_operation *operation)
{
    qs_process *process = qs_process_of(world, operation);
    qs_claim *claim = qs_find_claim(world, &operation->send.claim);
    snk_ballot *ballot = &operation->ballot;
    snk_node_clock clocks[QS_NODES_MAX];
    uint64_t above = process->last_token > claim->above ? process->last_token : claim->above;
    for (uint32_t i = 0; i < world->quorum.nodes; i++)
        clocks[i] = process->links[i].clock;
    if (ballot->above > above)
        above = ballot->above;
    uint64_t token = snk_quorum_propose(&world->quorum, clocks, qs_local(world, process), above, ballot->passed);
    if (token > process->last_token)
        process->last_token = token;
    snk_ballot_ask(ballot, token);
    operation->open += world->quorum.nodes;
    operation->asked_at_ns = world->now_ns;
    qs_question question = {
        .ask = QS_VOTE,
        .claim = ballot->claim,
        .attempt = operation->attempt,
        .token = token,
        .lease_ns = ballot->lease_ns,
    };
    qs_sender sender = { .operation = qs_operation_number(world, operation),
                         .undo = QS_UNDOS_MAX,
                         .round = ballot->round };
    for (uint32_t i = 0; i < world->quorum.nodes; i++)
        qs_send(world, process, i, &question, sender);
}

void qs_on_round(qs_world *world, const sim_event *event)
{
    qs_operation *operation = &world->operations[event->index];
    operation->open--;
    ask_round(world, operation);
}

void qs_begin_ballot(qs_world *world, qs_operation *operation, qs_claim *claim)
{
    operation->votes = true;
    operation->attempt = claim->attempts++;
    claim->heard = 0;
    snk_ballot_init(&operation->ballot, &world->quorum, &operation->send);
    ask_round(world, operation);
}

static void undo(qs_world *world, const qs_operation *operation, uint32_t node, bool unanswered)
{
    qs_question question = {
        .ask = QS_RELEASE,
        .claim = operation->send.claim,
        .attempt = operation->attempt,
        .lease_ns = operation->send.lease_ns,
        .bury_ns = unanswered ? qs_tombstone_ns(&operation->send) : 0,
    };
    qs_undo_start(world, qs_process_of(world, operation), node, &question);
}

static void undo_all(qs_world *world, const qs_operation *operation)
{
    uint32_t touched = snk_ballot_touched(&operation->ballot);
    uint32_t unanswered = snk_ballot_unanswered(&operation->ballot);
    for (uint32_t i = 0; i < world->quorum.nodes; i++)
        if ((touched >> i & 1) != 0)
            undo(world, operation, i, (unanswered >> i & 1) != 0);
}

static void granted(qs_world *world, qs_operation *operation, qs_claim *claim)
{
    const snk_ballot *ballot = &operation->ballot;
    if (claim->state != QS_CLAIM_ACQUIRING && claim->state != QS_CLAIM_WAITING) {
        qs_saw(world, QS_PROBE_WITHDRAWN);
        undo_all(world, operation);
        snk_answer gone = qs_make_answer(SNK_ANSWER_GONE, SNECK_OK);
        qs_answer(world, operation, &gone);
        return;
    }
    qs_saw(world, ballot->round > 1 ? QS_PROBE_GRANTED_LATER : QS_PROBE_GRANTED);
    if (claim->state == QS_CLAIM_WAITING)
        qs_saw(world, QS_PROBE_GRANTED_WAITING);
    for (uint32_t i = 0; i < world->quorum.nodes; i++)
        if (ballot->votes[i].kind != SNK_VOTE_YES && ballot->votes[i].kind != SNK_VOTE_OPEN)
            qs_saw(world, QS_PROBE_GRANTED_MAJORITY);
    claim->state = QS_CLAIM_HELD;
    claim->held_by = operation->attempt;
    claim->token = ballot->token;
    claim->unanswered = snk_ballot_unanswered(ballot);
    claim->asked_at_ns = operation->asked_at_ns;
    snk_answer held = qs_make_answer(SNK_ANSWER_HELD, SNECK_OK);
    held.token_first = ballot->token;
    held.token_last = ballot->token;
    qs_answer(world, operation, &held);
    qs_adopt(world, operation, claim, snk_ballot_missed(ballot));
}

/* Not granted, and its votes are taken back. Who may wait, waits. */
static void refused(qs_world *world, qs_operation *operation, qs_claim *claim, snk_verdict verdict)
{
    bool waits = operation->send.ask == SNK_ASK_RENEW || operation->send.queue;
    snk_answer given = qs_make_answer(SNK_ANSWER_FAILED, SNECK_UNAVAILABLE);
    undo_all(world, operation);
    if (operation->ballot.above > claim->above)
        claim->above = operation->ballot.above;
    if (claim->state == QS_CLAIM_GONE || verdict == SNK_VERDICT_BURIED) {
        given.kind = SNK_ANSWER_GONE;
    } else if (verdict == SNK_VERDICT_BUSY) {
        given.kind = waits ? SNK_ANSWER_QUEUED : SNK_ANSWER_BUSY;
        given.look_after_ns = operation->ballot.pause_ns + sim_random_range(&world->network, 1, SNK_NS_PER_MS);
    } else if (waits && operation->send.ask == SNK_ASK_ACQUIRE &&
               (verdict == SNK_VERDICT_YOUNG || verdict == SNK_VERDICT_SKEWED || verdict == SNK_VERDICT_LATE)) {
        /* The nodes are there, so it is worth waiting; the next look says what the trouble is. */
        given.kind = SNK_ANSWER_QUEUED;
        given.look_after_ns = SNK_BACKOFF_NS_MIN;
    } else if (verdict == SNK_VERDICT_UNCERTAIN && operation->send.ask == SNK_ASK_ACQUIRE) {
        given = qs_make_answer(SNK_ANSWER_UNCERTAIN, SNECK_UNKNOWN);
    }
    bool stays = given.kind == SNK_ANSWER_QUEUED ||
                 (given.kind == SNK_ANSWER_FAILED && waits && operation->send.ask == SNK_ASK_RENEW);
    claim->state = stays && claim->state != QS_CLAIM_GONE ? QS_CLAIM_WAITING : QS_CLAIM_GONE;
    given.ticket = 1;
    qs_answer(world, operation, &given);
}

static void note_verdict(qs_world *world, const snk_ballot *ballot, snk_verdict verdict)
{
    static const qs_probe probes[] = {
        [SNK_VERDICT_BUSY] = QS_PROBE_BUSY,     [SNK_VERDICT_YOUNG] = QS_PROBE_YOUNG,
        [SNK_VERDICT_LATE] = QS_PROBE_LATE,     [SNK_VERDICT_BURIED] = QS_PROBE_BURIED,
        [SNK_VERDICT_FAILED] = QS_PROBE_FAILED, [SNK_VERDICT_UNCERTAIN] = QS_PROBE_UNCERTAIN,
        [SNK_VERDICT_SKEWED] = QS_PROBE_HIGH,
    };
    if (verdict == SNK_VERDICT_AGAIN)
        qs_saw(world, ballot->pause_ns > 0 ? QS_PROBE_SPLIT : QS_PROBE_LOW);
    else if (verdict != SNK_VERDICT_GRANTED)
        qs_saw(world, probes[verdict]);
}

static void on_verdict(qs_world *world, qs_operation *operation, snk_verdict verdict)
{
    qs_claim *claim = qs_find_claim(world, &operation->send.claim);
    note_verdict(world, &operation->ballot, verdict);
    if (verdict == SNK_VERDICT_GRANTED) {
        granted(world, operation, claim);
    } else if (verdict == SNK_VERDICT_AGAIN && claim->state != QS_CLAIM_GONE) {
        int64_t pause_ns = operation->ballot.pause_ns;
        operation->open++;
        if (pause_ns > 0)
            pause_ns += sim_random_range(&world->network, 0, pause_ns);
        qs_push(world, world->now_ns + pause_ns + 1,
                &(sim_event){ .kind = QS_EVENT_ROUND,
                              .process = operation->process,
                              .epoch = operation->epoch,
                              .index = qs_operation_number(world, operation) });
    } else {
        refused(world, operation, claim, verdict);
    }
}

/* It comes out after the end that a node has a vote of it, or may yet. */
static void late_vote(qs_world *world, const qs_operation *operation, uint32_t node, bool unanswered)
{
    qs_claim *claim = qs_find_claim(world, &operation->send.claim);
    bool held = claim->state == QS_CLAIM_HELD && claim->held_by == operation->attempt;
    if (held)
        claim->unanswered |= (uint32_t)unanswered << node;
    else
        undo(world, operation, node, unanswered);
}

static void answer_late(qs_world *world, const qs_operation *operation, const qs_request *request, snk_vote_kind kind)
{
    if (!operation->answered)
        return; /* it is taken back with the rest, if so */
    switch (snk_ballot_afterword(kind, request->sent_again)) {
    case SNK_AFTER_NOTHING:
        break;
    case SNK_AFTER_ADOPT:
        qs_adopt(world, operation, qs_find_claim(world, &operation->send.claim), UINT32_C(1) << request->node);
        break;
    case SNK_AFTER_VOTED:
        qs_saw(world, QS_PROBE_OVERTAKEN);
        late_vote(world, operation, request->node, false);
        break;
    case SNK_AFTER_UNKNOWN:
        late_vote(world, operation, request->node, true);
        break;
    }
}

static snk_vote read_vote(qs_world *world, const qs_request *request, snk_node_says outcome)
{
    const qs_link *link = &world->processes[request->process].links[request->node];
    if (outcome == SNK_NODE_FAILED)
        return (snk_vote){ .kind = SNK_VOTE_FAILED };
    if (outcome == SNK_NODE_SILENT)
        return (snk_vote){ .kind = SNK_VOTE_SILENT };
    snk_vote vote = request->reply.vote;
    vote.counts = snk_node_clock_counts(&link->clock, request->sent_at_ns);
    if (vote.kind == SNK_VOTE_YES && !vote.counts)
        vote.remaining_ns = link->clock.counts_from_ns - request->sent_at_ns;
    if (vote.kind == SNK_VOTE_YOUNG)
        qs_saw(world, QS_PROBE_YOUNG_MARK);
    if (vote.kind == SNK_VOTE_YES && !vote.counts)
        qs_saw(world, QS_PROBE_YOUNG_START);
    if (vote.kind == SNK_VOTE_HIGH)
        qs_saw(world, QS_PROBE_HIGH);
    return vote;
}

void qs_settle_vote(qs_world *world, qs_operation *operation, const qs_request *request, snk_node_says outcome)
{
    snk_ballot *ballot = &operation->ballot;
    snk_vote vote = read_vote(world, request, outcome);
    bool was_open = ballot->verdict == SNK_VERDICT_OPEN;
    snk_verdict verdict = snk_ballot_answer(ballot, request->round, request->node, &vote,
                                            qs_local(world, qs_process_of(world, operation)));
    if (was_open && verdict != SNK_VERDICT_OPEN)
        on_verdict(world, operation, verdict);
    else
        answer_late(world, operation, request, vote.kind);
}
