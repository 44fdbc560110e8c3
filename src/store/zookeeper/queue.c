#include <stdlib.h>
#include <string.h>

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
    snk_zk_node_holds(asked, claim, units);
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

void snk_zk_queue_held(const snk_zk_asked *asked, snk_zk_claim *claim)
{
    char text[SNK_ZK_NOTE_SIZE];
    bool is_noted = claim->note.held_ms != 0;
    snk_zk_node_holds(asked, claim, 0);
    snk_zk_note_write(&claim->note, text);
    if (!is_noted)
        snk_zk_post(asked->store->link, claim->session, claim->path, text);
    snk_zk_answer_held(asked, claim);
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
    size_t list;
} lookout;

/*
 * A claim that stood second, and would hold alone: with the other one gone it has the lock, and need not ask. Nobody else
 * gets before it but who becomes a reader beside the other one (enter.c), which changes that node. Since it is watched that
 * would be told, so the list is looked at after the watch was set. It need not be written that the claim holds: the write
 * by which it was entered or renewed is of this same request.
 */
static snk_zk_progress after_watching_the_one(const snk_zk_asked *asked, snk_zk_claim *claim, const char *watch,
                                              const lookout *out, const snk_zk_back *back)
{
    snk_zk_standing standing;
    const snk_zk_reply *list = &back->replies[out->list];
    if (list->rc != ZOK || !snk_zk_stand_in(claim, list, &standing) || !standing.is_there)
        return SNK_ZK_LOOK_AGAIN;
    bool is_next = standing.is_next && back->replies[out->watched].rc == ZOK && strcmp(standing.watch, watch) == 0;
    if (standing.is_let_in || (is_next && snk_zk_claim_is_next(&asked->store->table, claim, back->connection))) {
        snk_zk_queue_held(asked, claim);
        return SNK_ZK_DECIDED;
    }
    if (!is_next)
        return SNK_ZK_LOOK_AGAIN;
    snk_zk_answer_queued(asked, claim, look_after_ns(asked, &back->replies[out->first]));
    return SNK_ZK_DECIDED;
}

/* What came of watching. */
static snk_zk_progress after_watching(const snk_zk_asked *asked, snk_zk_claim *claim, const snk_zk_standing *standing,
                                      const lookout *out, const snk_zk_back *back)
{
    if (!standing->watches_all) {
        const snk_zk_reply *watched = &back->replies[out->watched];
        const snk_zk_reply *before = &back->replies[out->before];
        snk_zk_note note = { .held_ms = 0 };
        if (watched->rc == ZOK && standing->watches_data)
            snk_zk_note_read(watched->text, &note);
        if (watched->rc != ZOK || note.held_ms != 0)
            return SNK_ZK_LOOK_AGAIN; /* it went, or was let in */
        /* A reader's token is that of the writer before it. */
        if (claim->grip.mode == SNK_MODE_SHARED && before->rc == ZOK)
            claim->token = (uint64_t)before->stat.czxid;
    }
    snk_zk_answer_queued(asked, claim, look_after_ns(asked, &back->replies[out->first]));
    return SNK_ZK_DECIDED;
}

static bool waits_for_the_one(const snk_zk_claim *claim, const snk_zk_standing *standing)
{
    return claim->grip.mode == SNK_MODE_EXCLUSIVE && standing->is_next;
}

/* What is watched is written down before it leaves, because it may go before the answer is here. */
static void plan_watch(const snk_zk_asked *asked, snk_zk_claim *claim, const snk_zk_standing *standing,
                       const char *watch, lookout *out)
{
    bool for_the_one = waits_for_the_one(claim, standing);
    bool for_data = for_the_one || standing->watches_data;
    out->watched = snk_zk_ask(&out->trip, for_data ? SNK_ZK_GET_WATCH : SNK_ZK_LIST_WATCH, watch);
    if (for_the_one) {
        out->first = out->watched;
        out->list = snk_zk_ask(&out->trip, SNK_ZK_LIST, claim->folder);
    } else {
        out->before = snk_zk_ask(&out->trip, SNK_ZK_STAT, watch);
    }
    snk_zk_claim_watch(&asked->store->table, claim, watch, NULL, standing->is_next && !for_the_one);
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
        snk_zk_node_waits(asked, claim);
        out.noted = snk_zk_node_ask(&out.trip, claim, text);
    }
    if (!waits_for_the_one(claim, standing))
        out.first = snk_zk_ask(&out.trip, SNK_ZK_GET, first);
    if (!standing->watches_all) /* else the queue is watched since before it was looked at */
        plan_watch(asked, claim, standing, watch, &out);
    snk_zk_back back;
    snk_zk_outcome outcome = snk_zk_insist(asked->store, &out.trip, &back);
    snk_zk_progress done = SNK_ZK_DECIDED;
    if (outcome == SNK_ZK_OTHER_SESSION)
        snk_zk_answer_gone(asked, claim);
    else if (outcome != SNK_ZK_ANSWERED)
        snk_zk_answer_failure(asked, outcome, true);
    else if (out.is_written && !is_written(asked, claim, &back.replies[out.noted]))
        done = SNK_ZK_DECIDED;
    else if (waits_for_the_one(claim, standing))
        done = after_watching_the_one(asked, claim, standing->watch, &out, &back);
    else
        done = after_watching(asked, claim, standing, &out, &back);
    snk_zk_trip_end(&back);
    return done;
}

snk_zk_progress snk_zk_queue_act(const snk_zk_asked *asked, snk_zk_claim *claim, const snk_zk_standing *standing,
                                 bool is_written)
{
    bool queues = asked->asked->send.ask == SNK_ASK_RENEW || asked->asked->send.queue;
    if (!standing->is_there) {
        snk_zk_answer_gone(asked, claim);
        return SNK_ZK_DECIDED;
    }
    if (standing->is_let_in && is_written) {
        snk_zk_queue_held(asked, claim);
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
