#include "store/sql/waiters.h"

#include "base/error.h"

/* Before a request leaves: whoever may come to wait is in the table, and whoever leaves is not. */
static bool prepare(snk_sql_waiters *waiters, const snk_claim *claim, snk_answer *answer)
{
    char name[SNK_NAME_LENGTH_MAX + 1];
    if (claim->send.ask == SNK_ASK_RELEASE)
        (void)snk_waiting_remove(&waiters->claims, &claim->send.claim, name);
    if (claim->send.ask != SNK_ASK_ACQUIRE || !claim->send.queue ||
        snk_waiting_add(&waiters->claims, &claim->send.claim, claim->name))
        return true;
    *answer = (snk_answer){ .kind = SNK_ANSWER_FAILED };
    (void)snk_fail(&answer->error, SNECK_NO_MEMORY, 0, "out of memory");
    return false;
}

static void look_soon(const snk_sql_waiters *waiters, snk_answer *answer)
{
    if (waiters->retry_ns < answer->look_after_ns)
        answer->look_after_ns = waiters->retry_ns;
}

void snk_sql_waiters_follow(snk_sql_waiters *waiters, const snk_send *send, uint64_t ticket, snk_answer *answer)
{
    char name[SNK_NAME_LENGTH_MAX + 1];
    answer->ticket = ticket;
    if (answer->kind == SNK_ANSWER_QUEUED) {
        if (!waiters->listen(waiters->store))
            look_soon(waiters, answer);
        return;
    }
    /* A renewal that failed, or a request that was not answered: the claim may wait, or may come to wait yet. */
    bool may_wait =
        answer->kind == SNK_ANSWER_UNCERTAIN || (answer->kind == SNK_ANSWER_FAILED && send->ask != SNK_ASK_ACQUIRE);
    if (!may_wait)
        (void)snk_waiting_remove(&waiters->claims, &send->claim, name);
}

void snk_sql_waiters_do(snk_sql_waiters *waiters, const snk_claim *claim, snk_answer *answer)
{
    if (!prepare(waiters, claim, answer))
        return;
    uint64_t ticket = snk_bell_ticket(&waiters->bell, &claim->send.claim);
    waiters->ask(waiters->store, claim, answer);
    snk_sql_waiters_follow(waiters, &claim->send, ticket, answer);
}

void snk_sql_waiters_tell(snk_sql_waiters *waiters, const snk_id *claim)
{
    char name[SNK_NAME_LENGTH_MAX + 1];
    if (snk_waiting_find(&waiters->claims, claim, name))
        snk_bell_ring(&waiters->bell, name, claim);
}

void snk_sql_waiters_tell_all(snk_sql_waiters *waiters)
{
    snk_waiting_tell(&waiters->claims, NULL, snk_bell_ring, &waiters->bell);
}
