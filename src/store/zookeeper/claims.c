/* What can be done to claims: acquire, renew, release. Each is a trip or two, on the thread that asks. */
#include "store/zookeeper/claims.h"

#include "base/clock.h"
#include "base/error.h"
#include "store/zookeeper/node.h"

static bool lease_is_too_long(const snk_zk_asked *asked)
{
    int64_t longest_ns = snk_zk_lease_max_ns(asked->store);
    if (asked->asked->send.lease_ns <= longest_ns || longest_ns == 0)
        return false;
    (void)snk_fail(&asked->answer->error, SNECK_INVALID, 0,
                   "%s: a lease of %lld ms is longer than the session allows (%lld ms); session= in the store's URL "
                   "asks for more, up to the server's maxSessionTimeout",
                   asked->store->where, (long long)(asked->asked->send.lease_ns / SNK_NS_PER_MS),
                   (long long)(longest_ns / SNK_NS_PER_MS));
    asked->answer->kind = SNK_ANSWER_FAILED;
    return true;
}

static void do_acquire(const snk_zk_asked *asked)
{
    snk_zk_store *store = asked->store;
    snk_zk_path folder;
    if (snk_zk_is_buried(&store->table, &asked->asked->send.claim)) {
        asked->answer->kind = SNK_ANSWER_GONE;
        return;
    }
    if (lease_is_too_long(asked))
        return;
    snk_zk_folder(store->root, store->prefix, snk_zk_mark(asked->asked->grip.object), asked->asked->name, folder);
    snk_zk_claim *claim = snk_zk_claim_new(&store->table, asked->asked, folder);
    if (claim == NULL) {
        snk_zk_answer_failure(asked, SNK_ZK_NO_MEMORY, true);
        return;
    }
    snk_zk_node_describe(store, asked->asked, folder, &claim->note);
    snk_zk_janitor_expect(store, snk_time_add(snk_now_ns(), asked->asked->send.lease_ns));
    if (claim->grip.mode == SNK_MODE_PASS)
        snk_zk_pass(asked, claim);
    else
        snk_zk_enter(asked, claim);
    snk_zk_claim_unref(claim);
}

static void do_renew(const snk_zk_asked *asked)
{
    snk_zk_table *table = &asked->store->table;
    snk_zk_claim *claim = snk_zk_claim_find(table, &asked->asked->send.claim);
    if (claim == NULL || lease_is_too_long(asked)) {
        if (claim == NULL)
            asked->answer->kind = SNK_ANSWER_GONE;
        snk_zk_claim_unref(claim);
        return;
    }
    (void)pthread_mutex_lock(&table->mutex);
    bool holds = claim->held;
    bool is_let_in = claim->is_let_in;
    (void)pthread_mutex_unlock(&table->mutex);
    if (claim->grip.mode == SNK_MODE_PASS) {
        if (holds)
            snk_zk_answer_held(asked, claim);
        else
            snk_zk_pass(asked, claim);
    } else if (snk_zk_node_find(asked, claim)) {
        bool decided = (holds || is_let_in) && snk_zk_queue_hold(asked, claim, 0, !holds);
        if (!decided)
            snk_zk_queue_look(asked, claim);
    }
    snk_zk_claim_unref(claim);
}

void snk_zk_submit(snk_store *base, snk_call *call)
{
    snk_zk_store *store = snk_zk_store_of(base);
    for (size_t i = 0; i < call->count; i++) {
        call->answers[i] = (snk_answer){ .kind = SNK_ANSWER_FAILED };
        snk_zk_asked asked = {
            .store = store,
            .asked = &call->claims[i],
            .answer = &call->answers[i],
            .until_ns = snk_zk_limit_ns(store),
            /* Before anything leaves, so that news before the answer is not slept over. */
            .ticket = snk_bell_ticket(&store->bell, &call->claims[i].send.claim),
        };
        switch (call->claims[i].send.ask) {
        case SNK_ASK_ACQUIRE:
            do_acquire(&asked);
            break;
        case SNK_ASK_RENEW:
            do_renew(&asked);
            break;
        case SNK_ASK_RELEASE:
            snk_zk_release(&asked);
            break;
        }
    }
    call->done(call);
}
