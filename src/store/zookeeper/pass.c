/* Latches: those who wait need no node, as nobody waits for them. */
#include <stdlib.h>

#include "store/zookeeper/claims.h"

static void answer_pass(const snk_zk_asked *asked, snk_zk_claim *claim, const snk_zk_reply *reply)
{
    if (reply->rc == ZNONODE || (reply->rc == ZOK && strtoll(reply->text, NULL, 10) == 0)) {
        claim->czxid = reply->rc == ZOK ? reply->stat.mzxid : 1;
        snk_zk_answer_held(asked, claim);
    } else if (reply->rc != ZOK) {
        snk_zk_answer_refusal(asked, reply->rc);
    } else if (asked->asked->send.ask == SNK_ASK_ACQUIRE && !asked->asked->send.queue) {
        asked->answer->kind = SNK_ANSWER_BUSY;
    } else {
        snk_zk_answer_queued(asked, claim, asked->asked->send.lease_ns / 3);
    }
}

void snk_zk_pass(const snk_zk_asked *asked, snk_zk_claim *claim)
{
    snk_zk_path count;
    snk_zk_below(claim->folder, "count", count);
    snk_zk_trip trip = { .until_ns = asked->until_ns };
    (void)snk_zk_ask(&trip, SNK_ZK_SYNC, asked->store->root);
    (void)snk_zk_ask(&trip, SNK_ZK_GET_WATCH, count);
    snk_zk_claim_watch(&asked->store->table, claim, count, NULL, false);
    snk_zk_back back;
    snk_zk_outcome outcome = snk_zk_insist(asked->store, &trip, &back);
    if (outcome == SNK_ZK_ANSWERED)
        answer_pass(asked, claim, &back.replies[1]);
    else
        snk_zk_answer_failure(asked, outcome, false);
    if (asked->asked->send.ask == SNK_ASK_ACQUIRE && asked->answer->kind != SNK_ANSWER_HELD &&
        asked->answer->kind != SNK_ANSWER_QUEUED)
        (void)snk_zk_claim_remove(&asked->store->table, claim);
    snk_zk_trip_end(&back);
}
