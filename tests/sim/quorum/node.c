#include "node.h"

#include <assert.h>

#include "base/bug.h"

static int64_t time_us(int64_t now_ns)
{
    return now_ns / SNK_NS_PER_US;
}

void qs_node_init(qs_node *node, const snk_quorum *quorum, int64_t now_ns)
{
    node->quorum = quorum;
    node->run = 1;
    node->started_at_ns = now_ns - 4 * quorum->lease_max_ns - 4 * SNK_QUORUM_YOUNG_NS;
    node->down_until_ns = 0;
    node->paused_until_ns = 0;
    node->refuses_until_ns = 0;
    node->scripts = UINT32_MAX;
    node->forgot_at_ns = -1;
    node->memory = (qs_memory){ .marked = true, .marked_at_ns = node->started_at_ns };
    node->saved = node->memory;
}

int64_t qs_node_uptime_ns(const qs_node *node, int64_t now_ns)
{
    return (now_ns - node->started_at_ns) / SNK_NS_PER_S * SNK_NS_PER_S;
}

void qs_node_save(qs_node *node)
{
    node->saved = node->memory;
}

void qs_node_restart(qs_node *node, bool empty, int64_t now_ns)
{
    node->run++;
    node->started_at_ns = now_ns;
    if (empty)
        node->saved = (qs_memory){ .taken = false };
    node->memory = node->saved;
}

void qs_node_flush(qs_node *node)
{
    node->memory = (qs_memory){ .taken = false };
}

void qs_node_forget_scripts(qs_node *node, uint32_t scripts)
{
    node->scripts &= ~scripts;
}

/* ---- Tombstones ---- */

static bool is_buried(const qs_memory *memory, const qs_question *question, int64_t now_ns)
{
    for (uint32_t i = 0; i < memory->tombstone_count; i++) {
        const qs_tombstone *stone = &memory->tombstones[i];
        if (stone->ends_at_ns > now_ns && snk_id_equal(&stone->claim, &question->claim) &&
            (stone->attempt == question->attempt || stone->attempt == QS_ALL_TRIES))
            return true;
    }
    return false;
}

static void bury(qs_memory *memory, const qs_question *question, int64_t now_ns)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < memory->tombstone_count; i++) {
        const qs_tombstone *stone = &memory->tombstones[i];
        bool same = stone->attempt == question->attempt && snk_id_equal(&stone->claim, &question->claim);
        if (stone->ends_at_ns > now_ns && !same)
            memory->tombstones[kept++] = *stone;
    }
    assert(kept < QS_TOMBSTONES_MAX);
    memory->tombstones[kept++] = (qs_tombstone){
        .claim = question->claim,
        .attempt = question->attempt,
        .ends_at_ns = now_ns + question->bury_ns,
    };
    memory->tombstone_count = kept;
}

/* ---- Questions ---- */

static bool has_claim(const qs_memory *memory, const qs_question *question)
{
    return memory->taken && snk_id_equal(&memory->claim, &question->claim) &&
           (memory->attempt == question->attempt || question->attempt == QS_ALL_TRIES);
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void put(qs_memory *memory, const qs_question *question, bool adopted, int64_t now_ns)
{
    bool own = has_claim(memory, question);
    int64_t ends_at_ns = now_ns + question->lease_ns;
    memory->ends_at_ns = own ? later(memory->ends_at_ns, ends_at_ns) : ends_at_ns;
    memory->taken = true;
    memory->adopted = adopted;
    memory->claim = question->claim;
    memory->attempt = question->attempt;
    memory->token = question->token;
    if (question->token > memory->floor)
        memory->floor = question->token;
}

static int64_t young_for_ns(const qs_node *node, int64_t now_ns)
{
    if (SNK_BUGGY(121))
        return 0;
    return node->memory.marked_at_ns + node->quorum->lease_max_ns + SNK_QUORUM_YOUNG_NS - now_ns;
}

static void vote(qs_node *node, const qs_question *question, int64_t now_ns, snk_vote *vote_out)
{
    qs_memory *memory = &node->memory;
    uint64_t clock = (uint64_t)time_us(now_ns);
    uint64_t floor = memory->floor > clock ? memory->floor : clock;
    if (SNK_BUGGY(118))
        floor = clock;
    if (SNK_BUGGY(119))
        floor = memory->floor;
    if (!memory->marked) {
        memory->marked = true;
        memory->marked_at_ns = now_ns;
    }
    vote_out->floor = floor;
    if (is_buried(memory, question, now_ns)) {
        vote_out->kind = SNK_VOTE_BURIED;
    } else if (memory->taken && !has_claim(memory, question)) {
        vote_out->kind = SNK_VOTE_TAKEN;
        vote_out->holder = memory->claim;
        vote_out->token = memory->token;
        vote_out->remaining_ns = memory->ends_at_ns - now_ns;
    } else if (young_for_ns(node, now_ns) > 0) {
        vote_out->kind = SNK_VOTE_YOUNG;
        vote_out->remaining_ns = young_for_ns(node, now_ns);
    } else if (question->token <= floor && !SNK_BUGGY(110)) {
        vote_out->kind = SNK_VOTE_LOW;
        vote_out->beaten = floor > clock;
    } else if (question->token > clock + (uint64_t)(node->quorum->lease_max_ns / SNK_NS_PER_US / 2)) {
        vote_out->kind = SNK_VOTE_HIGH;
    } else {
        vote_out->kind = SNK_VOTE_YES;
        put(memory, question, false, now_ns);
    }
}

static bool release(qs_memory *memory, const qs_question *question, int64_t now_ns)
{
    bool there = has_claim(memory, question);
    if (there)
        memory->taken = false;
    if (question->bury_ns > 0)
        bury(memory, question, now_ns);
    return there;
}

bool qs_node_execute(qs_node *node, const qs_question *question, int64_t now_ns, qs_reply *reply_out)
{
    qs_memory *memory = &node->memory;
    bool there = false;
    *reply_out = (qs_reply){ .time_us = time_us(now_ns) };
    if (memory->taken && memory->ends_at_ns <= now_ns)
        memory->taken = false;
    switch (question->ask) {
    case QS_VOTE:
        vote(node, question, now_ns, &reply_out->vote);
        return false;
    case QS_RENEW:
        there = has_claim(memory, question);
        if (there)
            memory->ends_at_ns = later(memory->ends_at_ns, now_ns + question->lease_ns);
        break;
    case QS_RELEASE:
        there = release(memory, question, now_ns);
        break;
    case QS_ADOPT:
        there = !memory->taken && !is_buried(memory, question, now_ns) &&
                (question->renewed || memory->floor <= question->token);
        if (there)
            put(memory, question, true, now_ns);
        break;
    }
    reply_out->says = there ? SNK_NODE_YES : SNK_NODE_NO;
    return there && question->ask == QS_RELEASE;
}
