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

bool snk_sql_waiters_follow(snk_sql_waiters *waiters, const snk_send *send, uint64_t ticket, snk_answer *answer)
{
    char name[SNK_NAME_LENGTH_MAX + 1];
    bool ask_again = false;
    answer->ticket = ticket;
    if (answer->kind == SNK_ANSWER_QUEUED) {
        int64_t wait_ns = send->ask == SNK_ASK_ACQUIRE ? send->lease_ns / 3 : 0;
        if (!waiters->listen(waiters->store, wait_ns, &ask_again))
            look_soon(waiters, answer);
        return ask_again;
    }
    /* A renewal that failed, or a request that was not answered: the claim may wait, or may come to wait yet. */
    bool may_wait =
        answer->kind == SNK_ANSWER_UNCERTAIN || (answer->kind == SNK_ANSWER_FAILED && send->ask != SNK_ASK_ACQUIRE);
    if (!may_wait)
        (void)snk_waiting_remove(&waiters->claims, &send->claim, name);
    return false;
}

/* Asks once more about a claim that waits, because what was said before anybody listened was missed. */
static void look_again(snk_sql_waiters *waiters, const snk_claim *claim, snk_answer *answer)
{
    snk_claim look = *claim;
    look.send.ask = SNK_ASK_RENEW;
    snk_answer again;
    uint64_t ticket = snk_bell_ticket(&waiters->bell, &claim->send.claim);
    waiters->ask(waiters->store, &look, &again);
    if (again.kind == SNK_ANSWER_FAILED || again.kind == SNK_ANSWER_UNCERTAIN) {
        look_soon(waiters, answer); /* the claim still waits, as far as anybody knows */
        return;
    }
    *answer = again;
    (void)snk_sql_waiters_follow(waiters, &look.send, ticket, answer);
}

void snk_sql_waiters_do(snk_sql_waiters *waiters, const snk_claim *claim, snk_answer *answer)
{
    if (!prepare(waiters, claim, answer))
        return;
    uint64_t ticket = snk_bell_ticket(&waiters->bell, &claim->send.claim);
    waiters->ask(waiters->store, claim, answer);
    if (snk_sql_waiters_follow(waiters, &claim->send, ticket, answer))
        look_again(waiters, claim, answer);
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
