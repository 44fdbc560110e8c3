#include <stdlib.h>

#include "base/clock.h"
#include "store/zookeeper/claims.h"
#include "store/zookeeper/node.h"

/* Whether the claim's note was written, to its own node; otherwise what that means is answered. */
static bool is_written(const snk_zk_asked *asked, snk_zk_claim *claim, const snk_zk_reply *noted)
{
    if (noted->rc == ZOK && noted->stat.czxid == claim->czxid)
        return true;
    if (noted->rc == ZOK || noted->rc == ZNONODE)
        snk_zk_answer_gone(asked, claim);
    else
        snk_zk_answer_refusal(asked, noted->rc);
    return false;
}

/* What came of writing that the claim holds. False: the list shows somebody before it. */
static bool after_entering(const snk_zk_asked *asked, snk_zk_claim *claim, const snk_zk_back *back, bool has_list)
{
    snk_zk_standing standing = { .is_let_in = true };
    if (!is_written(asked, claim, &back->replies[0]))
        return true;
    if (has_list && (back->replies[1].rc != ZOK || !snk_zk_stand_in(claim, &back->replies[1], &standing)))
        return false;
    if (standing.is_let_in)
        snk_zk_answer_held(asked, claim);
    return standing.is_let_in;
}

bool snk_zk_queue_hold(const snk_zk_asked *asked, snk_zk_claim *claim, uint32_t units, bool must_check)
{
    char text[SNK_ZK_NOTE_SIZE];
    if (claim->note.held_ms == 0)
        claim->note.held_ms = snk_wall_us() / 1000;
    claim->note.lease_ms = snk_zk_node_lease_ms(asked, claim);
    claim->note.token = claim->token;
    if (units > 0)
        claim->note.units = units;
    snk_zk_trip trip = { .until_ns = asked->until_ns, .session = claim->session };
    (void)snk_zk_node_ask(&trip, claim, text);
    if (must_check)
        (void)snk_zk_ask(&trip, SNK_ZK_LIST, claim->folder);
    snk_zk_back back;
    snk_zk_outcome outcome = snk_zk_insist(asked->store, &trip, &back);
    bool decided = true;
    if (outcome == SNK_ZK_ANSWERED)
        decided = after_entering(asked, claim, &back, must_check);
    else if (outcome == SNK_ZK_OTHER_SESSION)
        snk_zk_answer_gone(asked, claim);
    else
        snk_zk_answer_failure(asked, outcome, true);
    snk_zk_trip_end(&back);
    return decided;
}

/* When to look at the latest: with the end of the first one's lease, unless that has been renewed by then. */
static int64_t look_after_ns(const snk_zk_asked *asked, const snk_zk_reply *first)
{
    int64_t look_ns = asked->asked->send.lease_ns / 3;
    if (first->rc != ZOK)
        return look_ns;
    snk_zk_note note;
    snk_zk_note_read(first->text, &note);
    int64_t left_ms = note.lease_ms - (snk_wall_us() / 1000 - first->stat.mtime);
    /* Of clocks that differ, or of a holder that is dead while its session is not. */
    if (left_ms <= 0 || left_ms > note.lease_ms)
        left_ms = note.lease_ms < 1000 ? note.lease_ms : 1000;
    int64_t left_ns = left_ms * SNK_NS_PER_MS + SNK_NS_PER_MS;
    return left_ns < look_ns ? left_ns : look_ns;
}

/* The trip of a claim that waits, and where its replies are. */
typedef struct lookout {
    snk_zk_trip trip;
    bool is_written; /* that it waits */
    size_t noted;
    size_t first;
    size_t watched;
    size_t before;
} lookout;

/* What came of writing that the claim waits, and of watching. */
static snk_zk_progress after_watching(const snk_zk_asked *asked, snk_zk_claim *claim, const snk_zk_standing *standing,
                                      const lookout *out, const snk_zk_back *back)
{
    if (out->is_written && !is_written(asked, claim, &back->replies[out->noted]))
        return SNK_ZK_DECIDED;
    if (!standing->watches_all) {
        const snk_zk_reply *watched = &back->replies[out->watched];
        const snk_zk_reply *before = &back->replies[out->before];
        snk_zk_note note = { .held_ms = 0 };
        if (watched->rc == ZOK && standing->watches_data)
            snk_zk_note_read(watched->text, &note);
        /* It went before it was watched: with nobody else in the way, that is what the watch would have said. */
        bool is_first = watched->rc == ZNONODE && standing->is_next && claim->grip.mode == SNK_MODE_EXCLUSIVE;
        if (is_first && snk_zk_queue_hold(asked, claim, 0, true))
            return SNK_ZK_DECIDED;
        if (watched->rc != ZOK || note.held_ms != 0)
            return SNK_ZK_LOOK_AGAIN; /* it went, or was let in */
        /* A reader's token is that of the writer before it. */
        if (claim->grip.mode == SNK_MODE_SHARED && before->rc == ZOK)
            claim->token = (uint64_t)before->stat.czxid;
    }
    snk_zk_answer_queued(asked, claim, look_after_ns(asked, &back->replies[out->first]));
    return SNK_ZK_DECIDED;
}

static snk_zk_progress wait_in_queue(const snk_zk_asked *asked, snk_zk_claim *claim, const snk_zk_standing *standing)
{
    char text[SNK_ZK_NOTE_SIZE];
    snk_zk_path watch;
    snk_zk_path first;
    snk_zk_below(claim->folder, standing->watch, watch);
    snk_zk_below(claim->folder, standing->first, first);
    lookout out = { .trip = { .until_ns = asked->until_ns, .session = claim->session } };
    /* A node that was made just now, and says already that it waits, need not be written to. */
    out.is_written = asked->asked->send.ask != SNK_ASK_ACQUIRE || claim->note.held_ms != 0;
    if (out.is_written) {
        claim->note.held_ms = 0;
        claim->note.lease_ms = snk_zk_node_lease_ms(asked, claim);
        out.noted = snk_zk_node_ask(&out.trip, claim, text);
    }
    out.first = snk_zk_ask(&out.trip, SNK_ZK_GET, first);
    if (!standing->watches_all) { /* else the queue is watched since before it was looked at */
        out.watched = snk_zk_ask(&out.trip, standing->watches_data ? SNK_ZK_GET_WATCH : SNK_ZK_LIST_WATCH, watch);
        out.before = snk_zk_ask(&out.trip, SNK_ZK_STAT, watch);
        /* Before it leaves, because what is watched may go before the answer is here. */
        snk_zk_claim_watch(&asked->store->table, claim, watch, NULL, standing->is_next);
    }
    snk_zk_back back;
    snk_zk_outcome outcome = snk_zk_insist(asked->store, &out.trip, &back);
    snk_zk_progress done = SNK_ZK_DECIDED;
    if (outcome == SNK_ZK_ANSWERED)
        done = after_watching(asked, claim, standing, &out, &back);
    else if (outcome == SNK_ZK_OTHER_SESSION)
        snk_zk_answer_gone(asked, claim);
    else
        snk_zk_answer_failure(asked, outcome, true);
    snk_zk_trip_end(&back);
    return done;
}

snk_zk_progress snk_zk_queue_act(const snk_zk_asked *asked, snk_zk_claim *claim, const snk_zk_standing *standing,
                                 bool is_noted)
{
    bool queues = asked->asked->send.ask == SNK_ASK_RENEW || asked->asked->send.queue;
    if (!standing->is_there) {
        snk_zk_answer_gone(asked, claim);
        return SNK_ZK_DECIDED;
    }
    if (standing->is_let_in && is_noted) {
        snk_zk_answer_held(asked, claim);
        return SNK_ZK_DECIDED;
    }
    if (standing->is_let_in) {
        (void)snk_zk_queue_hold(asked, claim, standing->units, false);
        return SNK_ZK_DECIDED;
    }
    if (queues)
        return wait_in_queue(asked, claim, standing);
    snk_zk_node_withdraw(asked, claim);
    asked->answer->kind = SNK_ANSWER_BUSY;
    return SNK_ZK_DECIDED;
}

void snk_zk_queue_look(const snk_zk_asked *asked, snk_zk_claim *claim)
{
    snk_zk_path count;
    snk_zk_below(claim->folder, "count", count);
    for (int i = 0; i < SNK_ZK_LOOKS_MAX; i++) {
        snk_zk_standing standing;
        int rc = ZOK;
        bool counts = claim->grip.mode == SNK_MODE_PERMIT || claim->grip.mode == SNK_MODE_TAKE;
        if (counts)
            snk_zk_claim_watch(&asked->store->table, claim, claim->folder, count, false);
        snk_zk_outcome outcome = snk_zk_stand(asked->store, claim, asked->until_ns, &standing, &rc);
        if (outcome != SNK_ZK_ANSWERED) {
            snk_zk_answer_failure(asked, outcome, true);
            return;
        }
        if (rc != ZOK) {
            snk_zk_answer_refusal(asked, rc);
            return;
        }
        if (snk_zk_queue_act(asked, claim, &standing, false) == SNK_ZK_DECIDED)
            return;
    }
    asked->answer->kind = SNK_ANSWER_QUEUED;
    asked->answer->ticket = asked->ticket;
    asked->answer->look_after_ns = SNK_NS_PER_MS;
}
