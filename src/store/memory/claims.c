/* What can be done to claims in the table. Everything here runs under table.mutex. */
#include <stdio.h>

#include "base/clock.h"
#include "base/error.h"
#include "store/memory/table.h"

static void answer_held(const snk_memory_claim *holder, snk_answer *answer)
{
    answer->kind = SNK_ANSWER_HELD;
    answer->token_first = holder->tokens.first;
    answer->token_last = holder->tokens.last;
    answer->units = holder->grip.units;
}

static void answer_queued(snk_memory_table *table, const snk_memory_lock *lock, const snk_memory_claim *claim,
                          int64_t now_ns, snk_answer *answer)
{
    size_t index = snk_memory_word_of(&claim->id);
    answer->kind = SNK_ANSWER_QUEUED;
    answer->ticket = UINT64_C(1) << 63 | (uint64_t)index << 32 | atomic_load(&table->words[index]);
    /* Nobody but a lease ends a hold here without a word, so that is when to look at the latest. */
    answer->look_after_ns = claim->lease_ns / 3;
    for (size_t i = 0; i < lock->holders.count; i++) {
        int64_t remaining_ns = lock->holders.at[i].expires_at_ns - now_ns + SNK_NS_PER_MS;
        if (remaining_ns < answer->look_after_ns)
            answer->look_after_ns = remaining_ns;
    }
}

static snk_memory_claim make_claim(const snk_memory *memory, const snk_claim *from, int64_t now_ns)
{
    snk_memory_claim claim = {
        .id = from->send.claim,
        .lease_ns = from->send.lease_ns,
        .since_ns = now_ns,
        .expires_at_ns = snk_time_add(now_ns, from->send.lease_ns),
        .tokens_asked = from->send.tokens,
        .grip = from->grip,
        .fair = from->send.fair,
        .pid = memory->identity.pid,
    };
    (void)snprintf(claim.owner, sizeof claim.owner, "%s:%lld", memory->identity.uuid, (long long)from->thread);
    (void)snk_copy_text(claim.host, sizeof claim.host, memory->identity.host);
    (void)snk_copy_text(claim.why, sizeof claim.why, from->why == NULL ? "" : from->why);
    return claim;
}

static void fail_without_memory(snk_answer *answer)
{
    answer->kind = SNK_ANSWER_FAILED;
    (void)snk_fail(&answer->error, SNECK_NO_MEMORY, 0, "out of memory");
}

static void grant_at_once(snk_memory_lock *lock, const snk_memory_claim *claim, int64_t now_ns, snk_answer *answer)
{
    const snk_memory_claim *holder = snk_memory_grant_locked(lock, claim, now_ns, claim->lease_ns);
    if (holder != NULL)
        answer_held(holder, answer);
    else
        fail_without_memory(answer);
}

static void do_acquire(snk_memory *memory, snk_memory_lock *lock, const snk_claim *asked, snk_answer *answer)
{
    int64_t now_ns = snk_now_ns();
    if (snk_memory_is_buried_locked(memory->table, &asked->send.claim, now_ns)) {
        answer->kind = SNK_ANSWER_GONE;
        return;
    }
    snk_memory_settle_locked(memory->table, lock, now_ns);
    snk_memory_claim claim = make_claim(memory, asked, now_ns);
    if (snk_memory_is_free_locked(lock, &claim.grip))
        grant_at_once(lock, &claim, now_ns, answer);
    else if (!asked->send.queue)
        answer->kind = SNK_ANSWER_BUSY;
    else if (snk_memory_append(&lock->queue, &claim))
        answer_queued(memory->table, lock, &claim, now_ns, answer);
    else
        fail_without_memory(answer);
}

static void refresh(snk_memory_claim *claim, int64_t now_ns, int64_t lease_ns)
{
    int64_t until_ns = snk_time_add(now_ns, lease_ns);
    if (until_ns > claim->expires_at_ns)
        claim->expires_at_ns = until_ns;
}

static void do_renew(snk_memory *memory, snk_memory_lock *lock, const snk_send *send, snk_answer *answer)
{
    int64_t now_ns = snk_now_ns();
    snk_memory_settle_locked(memory->table, lock, now_ns);
    size_t held = snk_memory_index(&lock->holders, &send->claim);
    size_t queued = snk_memory_index(&lock->queue, &send->claim);
    if (held < lock->holders.count) {
        refresh(&lock->holders.at[held], now_ns, send->lease_ns);
        answer_held(&lock->holders.at[held], answer);
    } else if (queued < lock->queue.count) {
        refresh(&lock->queue.at[queued], now_ns, send->lease_ns);
        answer_queued(memory->table, lock, &lock->queue.at[queued], now_ns, answer);
    } else {
        answer->kind = SNK_ANSWER_GONE;
    }
}

static bool leave_tombstone(snk_memory_table *table, const snk_send *send)
{
    int64_t life_ns = send->lease_ns > SNK_TOMBSTONE_NS ? send->lease_ns : SNK_TOMBSTONE_NS;
    return snk_memory_bury_locked(table, &send->claim, snk_time_add(snk_now_ns(), life_ns));
}

static void do_release(snk_memory *memory, snk_memory_lock *lock, const snk_send *send, snk_answer *answer)
{
    if (send->unanswered && !leave_tombstone(memory->table, send)) {
        fail_without_memory(answer);
        return;
    }
    int64_t now_ns = snk_now_ns();
    snk_memory_settle_locked(memory->table, lock, now_ns);
    answer->kind = SNK_ANSWER_DONE;
    size_t held = snk_memory_index(&lock->holders, &send->claim);
    size_t queued = snk_memory_index(&lock->queue, &send->claim);
    if (held < lock->holders.count)
        snk_memory_end_locked(lock, held, !send->ends_hold);
    else if (queued < lock->queue.count)
        snk_memory_remove(&lock->queue, queued);
    else
        answer->kind = SNK_ANSWER_GONE;
    /* Whoever stood behind it in the queue may be next as well, not only whoever waited for the hold. */
    snk_memory_settle_locked(memory->table, lock, now_ns);
}

void snk_memory_do_locked(snk_memory *memory, const snk_claim *claim, snk_answer *answer)
{
    *answer = (snk_answer){ .kind = SNK_ANSWER_FAILED };
    char full_name[SNK_FULL_NAME_SIZE];
    snk_memory_name(memory, claim->grip.object, claim->name, full_name);
    snk_memory_lock *lock = snk_memory_find_locked(memory->table, full_name, true);
    if (lock == NULL) {
        fail_without_memory(answer);
        return;
    }
    switch (claim->send.ask) {
    case SNK_ASK_ACQUIRE:
        do_acquire(memory, lock, claim, answer);
        return;
    case SNK_ASK_RENEW:
        do_renew(memory, lock, &claim->send, answer);
        return;
    case SNK_ASK_RELEASE:
        do_release(memory, lock, &claim->send, answer);
        return;
    }
}
