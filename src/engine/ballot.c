#include "engine/ballot.h"

#include <string.h>

#include "base/bug.h"
#include "engine/deadline.h"

/* How long those who are behind have to make room for the one that is ahead; doubled in each round. */
#define ROOM_NS (2 * SNK_NS_PER_MS)

/* One of those who got votes. */
typedef struct rival {
    uint32_t votes;
    uint64_t token;
    snk_id id;
} rival;

/* What the answers of a round amount to. */
typedef struct count {
    uint32_t open;
    uint32_t yes;    /* that count */
    uint32_t unripe; /* votes that do not count yet */
    uint32_t low;
    uint32_t beaten; /* of those that are low: somebody was faster, since the round began */
    uint32_t high;
    uint32_t taken;
    uint32_t young;
    uint32_t failed;
    uint32_t silent;
    bool buried;
} count;

void snk_ballot_init(snk_ballot *ballot, const snk_quorum *quorum, const snk_send *send)
{
    *ballot = (snk_ballot){
        .quorum = quorum,
        .claim = send->claim,
        .sent_at_ns = send->sent_at_ns,
        .lease_ns = send->lease_ns,
    };
}

static uint32_t bit(uint32_t node)
{
    return UINT32_C(1) << node;
}

void snk_ballot_ask(snk_ballot *ballot, uint64_t token)
{
    if (ballot->above > ballot->known)
        ballot->known = ballot->above;
    ballot->token = token;
    ballot->above = token;
    ballot->round++;
    ballot->verdict = SNK_VERDICT_OPEN;
    ballot->pause_ns = 0;
    for (uint32_t i = 0; i < ballot->quorum->nodes; i++) {
        ballot->open[i]++;
        if (!SNK_BUGGY(112) || ballot->votes[i].kind != SNK_VOTE_YES)
            ballot->votes[i] = (snk_vote){ .kind = SNK_VOTE_OPEN };
    }
}

uint32_t snk_ballot_touched(const snk_ballot *ballot)
{
    uint32_t touched = ballot->voted;
    if (SNK_BUGGY(114))
        return touched;
    touched |= ballot->silent;
    for (uint32_t i = 0; i < ballot->quorum->nodes; i++)
        if (ballot->open[i] > 0)
            touched |= bit(i);
    return touched;
}

uint32_t snk_ballot_unanswered(const snk_ballot *ballot)
{
    return SNK_BUGGY(115) ? 0 : ballot->silent;
}

uint32_t snk_ballot_free(const snk_ballot *ballot)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < ballot->quorum->nodes; i++)
        if (ballot->votes[i].kind == SNK_VOTE_YES || ballot->votes[i].kind == SNK_VOTE_LOW)
            found |= bit(i);
    return found;
}

uint32_t snk_ballot_missed(const snk_ballot *ballot)
{
    uint32_t missed = 0;
    for (uint32_t i = 0; i < ballot->quorum->nodes && ballot->verdict == SNK_VERDICT_GRANTED; i++)
        if (ballot->votes[i].kind == SNK_VOTE_LOW)
            missed |= bit(i);
    return missed;
}

static count count_votes(const snk_ballot *ballot)
{
    count n = { .open = 0 };
    for (uint32_t i = 0; i < ballot->quorum->nodes; i++) {
        switch (ballot->votes[i].kind) {
        case SNK_VOTE_OPEN:
            n.open++;
            break;
        case SNK_VOTE_YES:
            n.yes += ballot->votes[i].counts;
            n.unripe += !ballot->votes[i].counts;
            break;
        case SNK_VOTE_LOW:
            n.low++;
            n.beaten += ballot->votes[i].beaten && ballot->votes[i].floor > ballot->known;
            break;
        case SNK_VOTE_HIGH:
            n.high++;
            break;
        case SNK_VOTE_TAKEN:
            n.taken++;
            break;
        case SNK_VOTE_BURIED:
            n.buried = true;
            break;
        case SNK_VOTE_YOUNG:
            n.young++;
            break;
        case SNK_VOTE_FAILED:
            n.failed++;
            break;
        case SNK_VOTE_SILENT:
            n.silent++;
            break;
        }
    }
    return n;
}

/* ---- Rivals ---- */

static bool is_ahead(const rival *a, const rival *b)
{
    if (a->votes != b->votes)
        return a->votes > b->votes;
    if (a->token != b->token)
        return a->token > b->token;
    return memcmp(a->id.bytes, b->id.bytes, sizeof a->id.bytes) > 0;
}

static bool is_vote_for(const snk_vote *vote, const snk_id *id)
{
    return vote->kind == SNK_VOTE_TAKEN && snk_id_equal(&vote->holder, id);
}

/* The one of the others who is ahead. */
static rival find_rival(const snk_ballot *ballot)
{
    rival best = { .votes = 0 };
    for (uint32_t i = 0; i < ballot->quorum->nodes; i++) {
        const snk_vote *vote = &ballot->votes[i];
        if (vote->kind != SNK_VOTE_TAKEN)
            continue;
        rival other = { .id = vote->holder, .token = vote->token };
        for (uint32_t j = 0; j < ballot->quorum->nodes; j++)
            other.votes += is_vote_for(&ballot->votes[j], &vote->holder);
        if (best.votes == 0 || is_ahead(&other, &best))
            best = other;
    }
    return best;
}

/*
 * When that rival will have a majority no more, by what its nodes said: the time left of the vote without which it has
 * none; of its longest if it has none now.
 */
static int64_t find_end(const snk_ballot *ballot, const rival *other)
{
    uint32_t majority = snk_quorum_majority(ballot->quorum);
    uint32_t wanted = other->votes >= majority ? majority : 1;
    int64_t end_ns = 0;
    for (uint32_t i = 0; i < ballot->quorum->nodes; i++) {
        uint32_t longer = 0;
        for (uint32_t j = 0; j < ballot->quorum->nodes; j++)
            longer += is_vote_for(&ballot->votes[j], &other->id) &&
                      ballot->votes[j].remaining_ns >= ballot->votes[i].remaining_ns;
        if (is_vote_for(&ballot->votes[i], &other->id) && longer >= wanted && ballot->votes[i].remaining_ns > end_ns)
            end_ns = ballot->votes[i].remaining_ns;
    }
    return end_ns;
}

/* ---- The verdict ---- */

static bool is_unripe(const snk_vote *vote)
{
    return vote->kind == SNK_VOTE_YOUNG || (vote->kind == SNK_VOTE_YES && !vote->counts);
}

/* When so many of the nodes that do not count yet will: as many as are missing for a majority. */
static int64_t find_ripe(const snk_ballot *ballot, uint32_t missing)
{
    int64_t ripe_ns = SNK_NEVER_NS;
    for (uint32_t i = 0; i < ballot->quorum->nodes; i++) {
        uint32_t earlier = 0;
        for (uint32_t j = 0; j < ballot->quorum->nodes; j++)
            earlier += is_unripe(&ballot->votes[j]) && ballot->votes[j].remaining_ns <= ballot->votes[i].remaining_ns;
        if (is_unripe(&ballot->votes[i]) && earlier >= missing && ballot->votes[i].remaining_ns < ripe_ns)
            ripe_ns = ballot->votes[i].remaining_ns;
    }
    return ripe_ns;
}

/* Other claims have votes, and without those nodes there is no majority. */
static snk_verdict judge_rivals(snk_ballot *ballot, const count *n)
{
    rival other = find_rival(ballot);
    rival self = { .votes = n->yes + n->unripe, .token = ballot->token, .id = ballot->claim };
    ballot->pause_ns = find_end(ballot, &other);
    uint32_t unknown = n->open + n->failed + n->silent;
    if (other.votes + unknown >= snk_quorum_majority(ballot->quorum) && !is_ahead(&self, &other))
        return SNK_VERDICT_BUSY;
    if (other.votes >= snk_quorum_majority(ballot->quorum))
        return SNK_VERDICT_BUSY;
    int64_t room_ns = ROOM_NS << ballot->round;
    if (self.votes > 0 && is_ahead(&self, &other) && ballot->round < SNK_BALLOT_ROUNDS_MAX) {
        ballot->pause_ns = room_ns;
        return SNK_VERDICT_AGAIN;
    }
    /* Nobody has it, as far as can be seen: whoever is ahead will soon. If nobody makes room, somebody has died. */
    if (is_ahead(&self, &other))
        room_ns = ballot->pause_ns / 4 > room_ns ? ballot->pause_ns / 4 : room_ns;
    if (room_ns < ballot->pause_ns)
        ballot->pause_ns = room_ns;
    return SNK_VERDICT_BUSY;
}

/* Deliberate bug 110: what every quorum did that asks one of its nodes for the token. */
static void take_token_of_one(snk_ballot *ballot)
{
    for (uint32_t i = ballot->quorum->nodes; i > 0; i--)
        if (ballot->votes[i - 1].kind == SNK_VOTE_YES)
            ballot->token = ballot->votes[i - 1].floor + 1;
}

static snk_verdict judge(snk_ballot *ballot, int64_t now_ns)
{
    count n = count_votes(ballot);
    uint32_t majority = snk_quorum_majority(ballot->quorum) - SNK_BUGGY(116);
    if (n.buried)
        return SNK_VERDICT_BURIED;
    if (n.yes >= majority && SNK_BUGGY(110))
        take_token_of_one(ballot);
    if (n.yes >= majority)
        return snk_deadline_of(ballot->sent_at_ns, ballot->lease_ns) > now_ns ? SNK_VERDICT_GRANTED : SNK_VERDICT_LATE;
    if (n.yes + n.open >= majority)
        return SNK_VERDICT_OPEN;
    uint32_t answered = n.yes + n.unripe + n.low + n.high + n.taken + n.young;
    if (answered + n.open < majority)
        return n.yes + n.unripe + n.silent + n.open >= majority ? SNK_VERDICT_UNCERTAIN : SNK_VERDICT_FAILED;
    if (n.low > 0 && n.yes + n.low + n.open >= majority && ballot->round < SNK_BALLOT_ROUNDS_MAX) {
        ballot->passed += n.low > n.beaten;
        return SNK_VERDICT_AGAIN;
    }
    if (n.taken > 0 && n.yes + n.unripe + n.young < majority)
        return judge_rivals(ballot, &n);
    if (n.unripe + n.young > 0 && n.yes + n.unripe + n.young + n.low + n.open >= majority) {
        ballot->pause_ns = find_ripe(ballot, majority - n.yes);
        return SNK_VERDICT_YOUNG;
    }
    if (n.beaten > 0 && n.high == 0) {
        ballot->pause_ns = ROOM_NS;
        return SNK_VERDICT_BUSY;
    }
    return SNK_VERDICT_SKEWED;
}

snk_verdict snk_ballot_answer(snk_ballot *ballot, uint32_t round, uint32_t node, const snk_vote *vote, int64_t now_ns)
{
    ballot->open[node]--;
    if (vote->kind == SNK_VOTE_YES)
        ballot->voted |= bit(node);
    if (vote->kind == SNK_VOTE_SILENT)
        ballot->silent |= bit(node);
    if (round == ballot->round)
        ballot->votes[node] = *vote;
    if (round != ballot->round || ballot->verdict != SNK_VERDICT_OPEN)
        return ballot->verdict;
    if (vote->floor > ballot->above)
        ballot->above = vote->floor;
    ballot->verdict = judge(ballot, now_ns);
    return ballot->verdict;
}

snk_afterword snk_ballot_afterword(snk_vote_kind kind, bool sent_again)
{
    if (kind == SNK_VOTE_SILENT)
        return SNK_AFTER_UNKNOWN;
    if (kind == SNK_VOTE_LOW)
        return SNK_AFTER_ADOPT;
    return kind == SNK_VOTE_YES && sent_again && !SNK_BUGGY(122) ? SNK_AFTER_VOTED : SNK_AFTER_NOTHING;
}
