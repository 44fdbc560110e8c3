#include "base/error.h"
#include "store/zookeeper/claims.h"

void snk_zk_answer_failure(const snk_zk_asked *asked, snk_zk_outcome outcome, bool changes)
{
    sneck_status status = snk_zk_failure(asked->store, outcome, changes, &asked->answer->error);
    asked->answer->kind = status == SNECK_UNKNOWN ? SNK_ANSWER_UNCERTAIN : SNK_ANSWER_FAILED;
}

void snk_zk_answer_refusal(const snk_zk_asked *asked, int rc)
{
    (void)snk_zk_refusal(asked->store, rc, &asked->answer->error);
    asked->answer->kind = SNK_ANSWER_FAILED;
}

void snk_zk_answer_gone(const snk_zk_asked *asked, snk_zk_claim *claim)
{
    if (claim != NULL)
        (void)snk_zk_claim_remove(&asked->store->table, claim);
    asked->answer->kind = SNK_ANSWER_GONE;
}

void snk_zk_answer_held(const snk_zk_asked *asked, snk_zk_claim *claim)
{
    snk_zk_table *table = &asked->store->table;
    if (!snk_zk_claim_prolong(table, claim, asked->asked->send.lease_ns)) {
        asked->answer->kind = SNK_ANSWER_GONE;
        return;
    }
    asked->answer->kind = SNK_ANSWER_HELD;
    asked->answer->token_first = snk_zk_claim_hold(table, claim);
    asked->answer->token_last = asked->answer->token_first;
    asked->answer->units = claim->note.units;
}

void snk_zk_answer_queued(const snk_zk_asked *asked, snk_zk_claim *claim, int64_t look_after_ns)
{
    if (!snk_zk_claim_prolong(&asked->store->table, claim, asked->asked->send.lease_ns)) {
        asked->answer->kind = SNK_ANSWER_GONE;
        return;
    }
    asked->answer->kind = SNK_ANSWER_QUEUED;
    asked->answer->ticket = asked->ticket;
    asked->answer->run = claim->session;
    asked->answer->look_after_ns = look_after_ns;
}
